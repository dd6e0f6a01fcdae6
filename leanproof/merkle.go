package leanproof

import (
	"slices"

	"aggnode/internal/lanes"
)

// merkle climbs the opened rows of one tree to its root, all paths together and eight hashes at a time.
type merkle struct {
	drawn     [maxQueries]uint32 // the distinct positions of the rows, ascending
	positions [maxQueries]uint32 // of the nodes known on the current level, ascending
	nodes     [maxQueries]digest
	known     int

	row   [maxRowWords][lanes.KeccakLanes]uint64
	pairs [1]lanes.KeccakWide64
	out   [1]lanes.KeccakWideDigest
}

// start takes the positions as they were drawn and returns the distinct ones, ascending: those of the rows that the proof must
// open.
func (m *merkle) start(drawn []uint32) []uint32 {
	sorted := m.drawn[:copy(m.drawn[:], drawn)]
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	m.known = copy(m.positions[:], sorted)
	return sorted
}

// climb refuses opened rows that are not leaves of the tree with this root, at the positions given to start. Its depth is bits.
// Siblings are taken level by level, one for each node whose partner is not known, by ascending position. The
// rows of the first tree have words in front that hold nothing and are not sent: zeros.
// It assumes that there is a row for each position, all of the ladder's width.
func (c *check) climb(rows *openedRows, first bool, bits int, root digest) error {
	m := &c.opening.tree
	m.hashRows(rows, first)
	siblings, enough := rows.siblings, true
	for range bits {
		siblings, enough = m.up(siblings)
		if !enough {
			return MerkleMissing
		}
	}
	if err := c.holds(len(siblings) == 0, MerkleUnused); err != nil {
		return err
	}
	return c.holds(m.nodes[0] == root, MerkleRoot)
}

// hashRows sets nodes to the digests of the rows.
func (m *merkle) hashRows(rows *openedRows, first bool) {
	empty := 0
	if first {
		empty = maxRowWords - rows.width
	}
	for start := 0; start < rows.count; start += lanes.KeccakLanes {
		n := min(lanes.KeccakLanes, rows.count-start)
		clear(m.row[:empty])
		for l := range n {
			row := rows.row(start + l)
			for w := range rows.width {
				m.row[empty+w][l] = word(row, w)
			}
		}
		lanes.KeccakLongWide(&m.out[0], m.row[:empty+rows.width], n)
		m.take(start, n)
	}
}

// up replaces the known nodes by their parents and returns the siblings that are left. It reports false when there were too
// few.
func (m *merkle) up(siblings []byte) (rest []byte, enough bool) {
	parents, filled := 0, 0
	for i := 0; i < m.known; i++ {
		at := m.positions[i]
		left, right := m.nodes[i], m.nodes[i]
		switch {
		case at&1 == 0 && i+1 < m.known && m.positions[i+1] == at+1:
			i++
			right = m.nodes[i]
		case len(siblings) < digestSize:
			return nil, false
		default:
			var sibling digest
			for w := range sibling {
				sibling[w] = word(siblings, w)
			}
			siblings = siblings[digestSize:]
			if at&1 == 0 {
				right = sibling
			} else {
				left = sibling
			}
		}
		// A parent stands at or before its first child, so nothing that is still to be read is overwritten: the hashes of a
		// group are taken when it is full, and they are fewer than the nodes read so far.
		m.positions[parents+filled] = at >> 1
		for w := range left {
			m.pairs[0][w][filled] = left[w]
			m.pairs[0][4+w][filled] = right[w]
		}
		if filled++; filled == lanes.KeccakLanes {
			m.hashPairs(parents, filled)
			parents, filled = parents+filled, 0
		}
	}
	m.hashPairs(parents, filled)
	m.known = parents + filled
	return siblings, true
}

// hashPairs hashes the first n pairs to the nodes from start on.
func (m *merkle) hashPairs(start, n int) {
	if n > 0 {
		lanes.Keccak64Wide(m.out[:], m.pairs[:], n)
		m.take(start, n)
	}
}

// take moves the first n digests to the nodes from start on.
func (m *merkle) take(start, n int) {
	for l := range n {
		for w := range m.out[0] {
			m.nodes[start+l][w] = m.out[0][w][l]
		}
	}
}
