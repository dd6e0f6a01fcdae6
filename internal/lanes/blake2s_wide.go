package lanes

import "math/bits"

// Blake2sWidth is the number of messages that wide calls of BLAKE2s take side by side, on every path.
const Blake2sWidth = 16

// Blake2sRow is one word of each of 16 messages: element k belongs to lane k.
type Blake2sRow = [Blake2sWidth]uint32

// Blake2sWide is one block of each of 16 messages, by word and then by lane. What one call writes is where the next reads it,
// so that nothing is moved between the steps of a chain or the levels of a tree.
type Blake2sWide [16]Blake2sRow

// Blake2sStates is the chaining value of each of 16 messages, by word and then by lane.
type Blake2sStates [8]Blake2sRow

// LaneSet is a set of lanes: bit k stands for lane k. Lanes outside the set of a call hold anything before and after it.
type LaneSet uint16

// FirstLanes is the set of lanes 0 to n-1.
func FirstLanes(n int) LaneSet { return 1<<n - 1 }

// Len is the number of lanes in the set.
func (s LaneSet) Len() int { return bits.OnesCount16(uint16(s)) }

// First is the lowest lane of a set that is not empty. Without removes it.
func (s LaneSet) First() int { return bits.TrailingZeros16(uint16(s)) & (Blake2sWidth - 1) }

// Without is s without its lowest lane.
func (s LaneSet) Without() LaneSet { return s & (s - 1) }

// Blake2s makes wide calls and counts how full they were. It belongs to one goroutine and to one batch of work: NewBlake2s,
// any number of calls, Done. It keeps to the path it began with.
type Blake2s struct {
	path    Path
	counted Occupancy
}

// NewBlake2s begins a batch on the current path.
func NewBlake2s() Blake2s { return Blake2s{path: Current()} }

// Done adds the lanes of the batch to the process's count.
func (b *Blake2s) Done() {
	blake2sLanes.add(b.counted)
	b.counted = Occupancy{}
}

// isWide says whether a call over used lanes, each of compressions, goes to a wide kernel, and counts it. Otherwise the lanes
// are computed one after another.
func (b *Blake2s) isWide(used LaneSet, compressions int) bool {
	n := used.Len()
	width := wideLanes(b.path, used)
	isWide := width > 0
	if !isWide {
		width = n
	}
	b.counted.Used += uint64(n * compressions)
	b.counted.Capacity += uint64(width * compressions)
	return isWide
}

// Reset puts all states before the first block of an unkeyed BLAKE2s-256.
func (h *Blake2sStates) Reset() { *h = initialStates }

var initialStates = func() (h Blake2sStates) {
	for w, v := range Blake2sInitial() {
		for k := range h[w] {
			h[w][k] = v
		}
	}
	return h
}()

// Absorb takes a block into the state of each used lane; total and last are as for Blake2sState.Absorb.
func (b *Blake2s) Absorb(h *Blake2sStates, m *Blake2sWide, total uint32, last bool, used LaneSet) {
	if b.isWide(used, 1) {
		absorbWide(b.path, h, m, total, last, used)
		return
	}
	for s := used; s != 0; s = s.Without() {
		k := s.First()
		block := m.lane(k)
		var state Blake2sState
		for w := range state {
			state[w] = h[w][k]
		}
		compress(&state, &block, total, last)
		for w := range state {
			h[w][k] = state[w]
		}
	}
}

// Walk makes steps of chains. A step hashes the first 48 bytes of the message, puts the digest into words 8 to 11 and adds
// one to word 1. Words 2 and 12 to 15 must be zero in all lanes.
func (b *Blake2s) Walk(m *Blake2sWide, steps int, used LaneSet) {
	if steps == 0 {
		return
	}
	if b.isWide(used, steps) {
		walkWide(b.path, m, steps, used)
		return
	}
	for s := used; s != 0; s = s.Without() {
		k := s.First()
		block := m.lane(k)
		for range steps {
			state := Blake2sInitial()
			compress(&state, &block, 48, true)
			copy(block[8:12], state[:])
			block[1]++
		}
		m.setLane(k, &block)
	}
}

// Climb goes up in trees, a level for each four rows of siblings, which are one node in each lane. Words 8 to 11 of a message
// are a node, word 3 is its number and word 1 its level. At each level number and level become those of the parent, the
// sibling goes behind the node, or before it when the number was odd, and the digest of these 64 bytes is the next node. Word
// 2 must be zero in all lanes; words 12 to 15 are overwritten.
func (b *Blake2s) Climb(m *Blake2sWide, siblings []Blake2sRow, used LaneSet) {
	levels := len(siblings) / 4
	if levels == 0 {
		return
	}
	if b.isWide(used, levels) {
		climbWide(b.path, m, siblings, used)
		return
	}
	for s := used; s != 0; s = s.Without() {
		k := s.First()
		block := m.lane(k)
		for l := range levels {
			at := 12
			if block[3]&1 != 0 {
				copy(block[12:16], block[8:12])
				at = 8
			}
			for w := range 4 {
				block[at+w] = siblings[4*l+w][k]
			}
			block[1]++
			block[3] >>= 1
			state := Blake2sInitial()
			compress(&state, &block, 64, true)
			copy(block[8:12], state[:])
		}
		m.setLane(k, &block)
	}
}

// Blake2sTrials is a search over trials. A trial goes on with a state that has taken 64 bytes, hashes the 32 bytes of Second
// with it, and takes the first 24 bytes of that digest for its suffix. The state Prefix, of 64 bytes, and the suffix followed
// by 8 zero bytes give the digest that decides.
type Blake2sTrials struct {
	Second [8]Blake2sRow // a row for a word, the same in all lanes: a kernel reads rows sooner than it spreads words
	Prefix Blake2sState
}

// Blake2sOutcome is what 16 trials give, by word and then by lane.
type Blake2sOutcome struct {
	Suffix [6]Blake2sRow
	Digest [4]Blake2sRow
}

// Try makes 16 trials that began with the states: two compressions each. It does not change the states.
func (b *Blake2s) Try(out *Blake2sOutcome, t *Blake2sTrials, begun *Blake2sStates) {
	if b.isWide(FirstLanes(Blake2sWidth), 2) {
		tryWide(b.path, out, t, begun)
		return
	}
	for k := range Blake2sWidth {
		var state Blake2sState
		var block Blake2sBlock
		for w := range t.Second {
			state[w], block[w] = begun[w][k], t.Second[w][k]
		}
		compress(&state, &block, 96, true)
		block = Blake2sBlock{}
		copy(block[:len(out.Suffix)], state[:])
		state = t.Prefix
		compress(&state, &block, 96, true)
		for w := range out.Suffix {
			out.Suffix[w][k] = block[w]
		}
		for w := range out.Digest {
			out.Digest[w][k] = state[w]
		}
	}
}

func (m *Blake2sWide) lane(k int) (block Blake2sBlock) {
	for w := range m {
		block[w] = m[w][k]
	}
	return block
}

func (m *Blake2sWide) setLane(k int, block *Blake2sBlock) {
	for w := range m {
		m[w][k] = block[w]
	}
}
