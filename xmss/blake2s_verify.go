package xmss

import "aggnode/internal/lanes"

// b2Group is the working memory for a group of signatures that are checked together.
type b2Group struct {
	params [groupSize]b2Param
	digits [groupSize][b2Chains]uint8
	// The chains of all signatures, ordered by digit: those that take part in a step are a prefix.
	chains [groupSize * b2Chains]lanes.Blake2sBlock
	owners [groupSize * b2Chains]chainOwner
	out    [groupSize * b2Chains]lanes.Blake2sDigest
	// The leaf inputs, by block and then by place in the batch, so that block k of all signatures is one call.
	leaves [b2LeafBlocks][groupSize]lanes.Blake2sBlock
	nodes  [groupSize]lanes.Blake2sDigest // by place in the batch
}

// chainOwner says where a chain's tip goes.
type chainOwner struct {
	place uint8 // in the batch
	chain uint8
}

// b2VerifyGroup answers at most groupSize checks.
func b2VerifyGroup(checks []Check, answers []Answer) {
	var g b2Group
	var live batch
	for i := range checks {
		c := &checks[i]
		answers[i] = Answer{}
		if len(c.Signature) != b2SignatureSize {
			answers[i].Err = ErrLength
			continue
		}
		g.params[i] = b2ParamOf(&c.PublicKey)
		var e b2Encoder
		e.init(&g.params[i], c.Epoch, &c.Message)
		b2PutWords(e.block[:b2RandomizerSize/4], c.Signature[b2RandomizerAt:b2PathAt])
		d := e.digest()
		var ok bool
		if g.digits[i], ok = b2Digits(&d); !ok {
			answers[i].Err = ErrCodeword
			continue
		}
		live.add(i)
	}
	g.walk(checks, &live)
	g.hashLeaves(checks, &live)
	g.climb(checks, &live, 0, subtreeHeight)

	var above batch
	for k, i := range live.all() {
		c := &checks[i]
		from := b2Bytes(&g.nodes[k])
		if c.Known.matches(Blake2s, c, &from, c.Signature[b2UpperAt:]) {
			continue
		}
		answers[i].Upper = newUpper(Blake2s, c, &from, c.Signature[b2UpperAt:])
		g.nodes[above.n] = g.nodes[k]
		above.add(int(i))
	}
	g.climb(checks, &above, subtreeHeight, b2Height)
	for k, i := range above.all() {
		if root := b2Bytes(&g.nodes[k]); root != node(checks[i].PublicKey[:nodeSize]) {
			answers[i] = Answer{Err: ErrRoot}
		}
	}
}

// walk takes every chain of the batch from its digit to its tip and puts the tips into the leaf inputs.
func (g *b2Group) walk(checks []Check, live *batch) {
	var upTo [b2ChainTop + 2]int // upTo[d+1]: chains with a digit of at most d
	for _, i := range live.all() {
		for _, d := range g.digits[i] {
			upTo[d+1]++
		}
	}
	for d := range b2ChainTop + 1 {
		upTo[d+1] += upTo[d]
	}
	next := upTo
	for k, i := range live.all() {
		c := &checks[i]
		for chain, d := range g.digits[i] {
			at := next[d]
			next[d]++
			g.owners[at] = chainOwner{place: uint8(k), chain: uint8(chain)}
			b := &g.chains[at]
			g.params[i].step(b, chain, int(d), c.Epoch)
			b2PutWords(b[8:12], c.Signature[chain*nodeSize:])
		}
	}
	for s := range b2ChainTop {
		n := upTo[s+1]
		b2StepAll(g.chains[:n], g.out[:n])
	}
	for at := range g.chains[:live.n*b2Chains] {
		o := g.owners[at]
		word := 8 + 4*int(o.chain) // of the leaf input
		copy(g.leaves[word/16][o.place][word%16:][:4], g.chains[at][8:12])
	}
}

// b2StepAll takes one chain step in every block: the value moves on and so does the position in the tweak.
func b2StepAll(blocks []lanes.Blake2sBlock, out []lanes.Blake2sDigest) {
	lanes.Blake2s48(out, blocks)
	for i := range blocks {
		b, d := &blocks[i], &out[i]
		b[1]++
		b[8], b[9], b[10], b[11] = d[0], d[1], d[2], d[3]
	}
}

// hashLeaves hashes the leaf inputs of the batch into nodes.
func (g *b2Group) hashLeaves(checks []Check, live *batch) {
	var states [groupSize]lanes.Blake2sState
	for k, i := range live.all() {
		g.params[i].tweak(&g.leaves[0][k], b2Leaf, 0, checks[i].Epoch)
		states[k] = lanes.Blake2sInitial()
	}
	for b := range b2LeafBlocks {
		lanes.Blake2sAbsorb(states[:live.n], g.leaves[b][:live.n], uint32(64*(b+1)), b == b2LeafBlocks-1)
	}
	for k := range live.n {
		g.nodes[k] = states[k].Digest()
	}
}

// climb folds the authentication paths of the batch from level lo up to level hi.
func (g *b2Group) climb(checks []Check, live *batch, lo, hi int) {
	var in [groupSize]lanes.Blake2sBlock
	for l := lo; l < hi; l++ {
		for k, i := range live.all() {
			c := &checks[i]
			b := &in[k]
			g.params[i].tweak(b, b2Node, uint32(l+1), uint32(uint64(c.Epoch)>>(l+1)))
			mine, sibling := b[8:12], b[12:16]
			if c.Epoch>>l&1 != 0 {
				mine, sibling = sibling, mine
			}
			copy(mine, g.nodes[k][:])
			b2PutWords(sibling, c.Signature[b2PathAt+l*nodeSize:])
		}
		lanes.Blake2s64(g.nodes[:live.n], in[:live.n])
	}
}
