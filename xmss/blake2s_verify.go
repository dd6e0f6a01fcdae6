package xmss

import (
	"sync"

	"aggnode/internal/lanes"
)

// Places in a record: parameter, message and signature of one check, and what else the lanes read of it is its epoch. The chain
// values in it become tips.
const (
	b2MessageAt  = nodeSize
	b2ValuesAt   = b2MessageAt + MessageSize
	b2RecordSize = (b2ValuesAt + b2SignatureSize + nodeSize - 1) / nodeSize * nodeSize
)

// b2Group is the working memory for a group of signatures that are checked together. Check i has record i and, but in the
// chains, lane i from the first hash to the last. What a group leaves is overwritten where the next one reads it, or is zero.
//
// It is 44 KB. Memory as large as this begins at a page, and the rows come first, so each of them lies in one cache line.
type b2Group struct {
	owners   lanes.Blake2sOwners // of the chain steps
	message  lanes.Blake2sWide   // word 2 stays zero; words 4 to 7 are the parameters throughout
	block    lanes.Blake2sWide
	states   lanes.Blake2sStates
	siblings [4 * b2Height]lanes.Blake2sRow
	records  [groupSize * b2RecordSize]byte
	digits   [groupSize]b2Digits
	walk     b2Walk
	run      lanes.Blake2s
}

// b2Groups keeps the memory of groups for the next ones. Nothing in it refers to a signature.
var b2Groups = sync.Pool{New: func() any { return new(b2Group) }}

// b2VerifyGroup answers at most groupSize checks.
func b2VerifyGroup(checks []Check, answers []Answer) {
	g := b2Groups.Get().(*b2Group)
	g.verify(checks, answers)
	b2Groups.Put(g)
}

func (g *b2Group) verify(checks []Check, answers []Answer) {
	g.run = lanes.NewBlake2s()
	defer g.run.Done()
	live := g.encode(g.read(checks, answers), answers)
	if live == 0 {
		return
	}
	g.toTips(live)
	g.hashLeaves(live)
	g.climb(checks, live, 0, subtreeHeight)

	var above lanes.LaneSet
	for s := live; s != 0; s = s.Without() {
		i := s.First()
		c := &checks[i]
		from := b2Column((*b2Rows)(g.message[8:]), i)
		if !c.Known.matches(Blake2s, c, &from, c.Signature[b2UpperAt:]) {
			answers[i].Upper = newUpper(Blake2s, c, &from, c.Signature[b2UpperAt:])
			above |= 1 << i
		}
	}
	g.climb(checks, above, subtreeHeight, b2Height)
	for ; above != 0; above = above.Without() {
		i := above.First()
		if root := b2Column((*b2Rows)(g.message[8:]), i); root != node(checks[i].PublicKey[:nodeSize]) {
			answers[i] = Answer{Err: ErrRoot}
		}
	}
}

// read makes records of the checks. It returns the set of those whose signatures have the right length; the others are
// answered.
func (g *b2Group) read(checks []Check, answers []Answer) (live lanes.LaneSet) {
	for i := range checks {
		c := &checks[i]
		answers[i] = Answer{}
		if len(c.Signature) != b2SignatureSize {
			answers[i].Err = ErrLength
			continue
		}
		live |= 1 << i
		record := (*[b2RecordSize]byte)(g.records[i*b2RecordSize:])
		*(*node)(record[:]) = node(c.PublicKey[nodeSize:])
		*(*[MessageSize]byte)(record[b2MessageAt:]) = c.Message
		*(*[b2SignatureSize]byte)(record[b2ValuesAt:]) = [b2SignatureSize]byte(c.Signature)
		g.message[3][i] = c.Epoch
	}
	return live
}

// gather reads words of each record into the lanes of live.
func (g *b2Group) gather(rows []lanes.Blake2sRow, at int, live lanes.LaneSet) {
	g.run.Gather(rows, g.records[at:], b2RecordSize, live)
}

// encode sets the digits of the signatures of live. It returns the set of those that have an admissible digest; the others
// are answered.
func (g *b2Group) encode(live lanes.LaneSet, answers []Answer) lanes.LaneSet {
	first, second := &g.message, &g.block
	b2Fill(&first[0], b2Encoding)
	b2Fill(&first[1], 0)
	g.gather(first[4:], 0, live)
	g.gather(second[:8], b2ValuesAt+b2RandomizerAt, live)
	clear(second[b2RandomizerSize/4:])
	g.states.Reset()
	g.run.Absorb(&g.states, first, 64, false, live)
	g.run.Absorb(&g.states, second, 96, true, live)
	for s := live; s != 0; s = s.Without() {
		k := s.First()
		var ok bool
		if g.digits[k], ok = b2DigitsOf(g.states[0][k], g.states[1][k], g.states[2][k], g.states[3][k]); !ok {
			answers[k].Err = ErrCodeword
			live &^= 1 << k
		}
	}
	return live
}

// hashLeaves hashes the tips, which are in the records, to leaves.
func (g *b2Group) hashLeaves(live lanes.LaneSet) {
	b2Fill(&g.block[0], b2Leaf)
	clear(g.block[1:3])
	copy(g.block[3:8], g.message[3:8]) // epoch and parameter
	g.states.Reset()
	at, words := b2ValuesAt, g.block[8:]
	for b := range b2LeafBlocks {
		g.gather(words, at, live)
		g.run.Absorb(&g.states, &g.block, uint32(64*(b+1)), b == b2LeafBlocks-1, live)
		at, words = at+4*len(words), g.block[:]
	}
	copy(g.message[8:12], g.states[:4])
}

// climb folds the authentication paths of live from level lo up to level hi.
func (g *b2Group) climb(checks []Check, live lanes.LaneSet, lo, hi int) {
	if live == 0 {
		return
	}
	b2Fill(&g.message[0], b2Node)
	b2Fill(&g.message[1], uint32(lo))
	for i := range checks {
		g.message[3][i] = checks[i].Epoch >> lo
	}
	siblings := g.siblings[4*lo : 4*hi]
	g.gather(siblings, b2ValuesAt+b2PathAt+lo*nodeSize, live)
	g.run.Climb(&g.message, siblings, live)
}
