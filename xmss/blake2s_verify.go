package xmss

import (
	"encoding/binary"

	"aggnode/internal/lanes"
)

// b2Group is the working memory for a group of signatures that are checked together. But in the chains, lane k belongs to
// check k from the first hash to the last.
type b2Group struct {
	run      lanes.Blake2s
	checks   []Check
	sigs     [groupSize]*[b2SignatureSize]byte // nil when of another length
	digits   [groupSize]b2Digits
	message  lanes.Blake2sWide // words 4 to 7 are the parameters throughout
	states   lanes.Blake2sStates
	leaf     [16 * b2LeafBlocks]lanes.Blake2sRow // all words of the leaf's input
	siblings [b2Height]lanes.Blake2sSiblings
}

// b2VerifyGroup answers at most groupSize checks.
func b2VerifyGroup(checks []Check, answers []Answer) {
	var w b2Walk
	g := &w.b2Group
	g.run, g.checks = lanes.NewBlake2s(), checks
	defer g.run.Done()
	var live lanes.LaneSet
	for i := range checks {
		answers[i] = Answer{}
		if sig := checks[i].Signature; len(sig) == b2SignatureSize {
			g.sigs[i] = (*[b2SignatureSize]byte)(sig)
			live |= 1 << i
		} else {
			answers[i].Err = ErrLength
		}
	}
	live = g.encode(live, answers)
	if live == 0 {
		return
	}
	w.toTips(live)
	g.hashLeaves(live)
	g.climb(live, 0, subtreeHeight)

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
	g.climb(above, subtreeHeight, b2Height)
	for ; above != 0; above = above.Without() {
		i := above.First()
		if root := b2Column((*b2Rows)(g.message[8:]), i); root != node(checks[i].PublicKey[:nodeSize]) {
			answers[i] = Answer{Err: ErrRoot}
		}
	}
}

// encode sets the digits of the signatures of live. It returns the set of those that have an admissible digest; the others
// are answered.
func (g *b2Group) encode(live lanes.LaneSet, answers []Answer) lanes.LaneSet {
	first, second := &g.message, lanes.Blake2sWide{}
	b2Fill(&first[0], b2Encoding)
	for s := live; s != 0; s = s.Without() {
		k := s.First()
		c := &g.checks[k]
		first[3][k] = c.Epoch
		b2PutColumn((*b2Rows)(first[4:]), uint(k), (*node)(c.PublicKey[nodeSize:]))
		b2PutColumn((*b2Rows)(first[8:]), uint(k), (*node)(c.Message[:]))
		b2PutColumn((*b2Rows)(first[12:]), uint(k), (*node)(c.Message[nodeSize:]))
		for w := range b2RandomizerSize / 4 {
			second[w][k] = binary.LittleEndian.Uint32(g.sigs[k][b2RandomizerAt+4*w:])
		}
	}
	g.states.Reset()
	g.run.Absorb(&g.states, first, 64, false, live)
	g.run.Absorb(&g.states, &second, 96, true, live)
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

// value is what signature i shows of a chain.
func (g *b2Group) value(i, chain uint8) *node {
	return (*node)(g.sigs[i%groupSize][uint(chain)*nodeSize:])
}

// hashLeaves hashes the tips, which are in place, to leaves.
func (g *b2Group) hashLeaves(live lanes.LaneSet) {
	b2Fill(&g.leaf[0], b2Leaf)
	copy(g.leaf[3:8], g.message[3:8]) // epoch and parameter
	g.states.Reset()
	for b := range b2LeafBlocks {
		block := (*lanes.Blake2sWide)(g.leaf[16*b:])
		g.run.Absorb(&g.states, block, uint32(64*(b+1)), b == b2LeafBlocks-1, live)
	}
	copy(g.message[8:12], g.states[:4])
}

// climb folds the authentication paths of live from level lo up to level hi.
func (g *b2Group) climb(live lanes.LaneSet, lo, hi int) {
	b2Fill(&g.message[0], b2Node)
	b2Fill(&g.message[1], uint32(lo))
	for s := live; s != 0; s = s.Without() {
		k := s.First()
		g.message[3][k] = g.checks[k].Epoch >> lo
		for l := lo; l < hi; l++ {
			b2PutColumn((*b2Rows)(&g.siblings[l]), uint(k), (*node)(g.sigs[k][b2PathAt+l*nodeSize:]))
		}
	}
	g.run.Climb(&g.message, g.siblings[lo:hi], live)
}
