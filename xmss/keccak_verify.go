package xmss

import (
	"encoding/binary"

	"aggnode/internal/lanes"
)

// kcGroup is the working memory for a group of signatures that are checked together, one layer at a time.
type kcGroup struct {
	params [groupSize]kcParam
	digits [groupSize][kcChains]uint8
	// The chains of all signatures, ordered by digit: those that take part in a step are a prefix.
	chains [groupSize * kcChains]lanes.KeccakBlock64
	owners [groupSize * kcChains]chainOwner
	out    [groupSize * kcChains]lanes.KeccakDigest
	leaves [groupSize][kcLeafWords]uint64 // by place in the batch
	nodes  [groupSize]lanes.KeccakDigest  // by place in the batch
}

// kcVerifyGroup answers at most groupSize checks.
func kcVerifyGroup(checks []Check, answers []Answer) {
	var g kcGroup
	var live batch
	for i := range checks {
		c := &checks[i]
		answers[i] = Answer{}
		switch {
		case len(c.Signature) != kcSignatureSize:
			answers[i].Err = ErrLength
			continue
		case binary.LittleEndian.Uint32(c.Signature) != c.Epoch:
			answers[i].Err = ErrEpoch
			continue
		}
		g.params[i] = kcParamOf(&c.PublicKey)
		if g.encode(i, kcBottom, c.Epoch, c.Message[:], c.Signature[kcIndexSize:kcTopAt]) {
			live.add(i)
		} else {
			answers[i].Err = ErrCodeword
		}
	}
	g.climbLayer(checks, &live, kcBottom)

	var above batch
	for k, i := range live.all() {
		c := &checks[i]
		from, part := kcBytes(&g.nodes[k]), c.Signature[kcTopAt:]
		if c.Known.matches(Keccak, c, &from, part) {
			continue
		}
		if !g.encode(int(i), kcTop, c.Epoch>>kcHeight, from[:], part) {
			answers[i].Err = ErrCodeword
			continue
		}
		answers[i].Upper = newUpper(Keccak, c, &from, part)
		above.add(int(i))
	}
	g.climbLayer(checks, &above, kcTop)
	for k, i := range above.all() {
		if root := kcBytes(&g.nodes[k]); root != node(checks[i].PublicKey[:nodeSize]) {
			answers[i] = Answer{Err: ErrRoot}
		}
	}
}

// encode sets the digits of signature i in one layer, or reports that its digest is not a codeword.
func (g *kcGroup) encode(i int, layer kcLayer, index uint32, signed, part []byte) (ok bool) {
	d := g.params[i].digest(layer, index, signed, kcWords(part))
	g.digits[i], ok = kcDigits(&d)
	return ok
}

// climbLayer leads the signatures of the batch through one layer and leaves the roots they reach in nodes.
func (g *kcGroup) climbLayer(checks []Check, live *batch, layer kcLayer) {
	partAt, shift := kcIndexSize, 0
	if layer == kcTop {
		partAt, shift = kcTopAt, kcHeight
	}
	g.walk(checks, live, layer, partAt, shift)
	for k, i := range live.all() {
		g.nodes[k] = g.params[i].leaf(&g.leaves[k], layer, checks[i].Epoch>>shift)
	}
	var in [groupSize]lanes.KeccakBlock64
	for l := range kcHeight {
		for k, i := range live.all() {
			c := &checks[i]
			b := &in[k]
			index := c.Epoch >> shift
			g.params[i].nodeBlock(b, layer, uint32(l+1), index>>(l+1))
			sibling := kcWords(c.Signature[partAt+kcPathAt+l*nodeSize:])
			left, right := [2]uint64(g.nodes[k]), sibling
			if index>>l&1 != 0 {
				left, right = right, left
			}
			b[4], b[5], b[6], b[7] = left[0], left[1], right[0], right[1]
		}
		lanes.Keccak64(g.nodes[:live.n], in[:live.n])
	}
}

// walk takes every chain of the batch from its digit to its tip and puts the tips into the leaf inputs.
func (g *kcGroup) walk(checks []Check, live *batch, layer kcLayer, partAt, shift int) {
	var upTo [kcChainTop + 2]int // upTo[d+1]: chains with a digit of at most d
	for _, i := range live.all() {
		for _, d := range g.digits[i] {
			upTo[d+1]++
		}
	}
	for d := range kcChainTop + 1 {
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
			g.params[i].step(b, layer, chain, int(d), c.Epoch>>shift)
			v := kcWords(c.Signature[partAt+kcValuesAt+chain*nodeSize:])
			b[4], b[5] = v[0], v[1]
		}
	}
	for s := range kcChainTop {
		n := upTo[s+1]
		kcStepAll(g.chains[:n], g.out[:n])
	}
	for at := range g.chains[:live.n*kcChains] {
		o := g.owners[at]
		copy(g.leaves[o.place][4+2*int(o.chain):], g.chains[at][4:6])
	}
}

// kcStepAll takes one chain step in every block: the value moves on and so does the position in the address.
func kcStepAll(blocks []lanes.KeccakBlock64, out []lanes.KeccakDigest) {
	lanes.Keccak64(out, blocks)
	for i := range blocks {
		b, d := &blocks[i], &out[i]
		b[2] += kcStep
		b[4], b[5] = d[0], d[1]
	}
}

// kcTopRoot is the root that a top layer's part leads to from the bottom root it signs; false when its digest is no codeword.
func kcTopRoot(p *kcParam, index uint32, signed *node, part []byte) (root node, ok bool) {
	var g kcGroup
	g.params[0] = *p
	if !g.encode(0, kcTop, index, signed[:], part) {
		return root, false
	}
	check := Check{Epoch: index << kcHeight, Signature: append(make([]byte, kcTopAt), part...)}
	var one batch
	one.add(0)
	g.climbLayer([]Check{check}, &one, kcTop)
	return kcBytes(&g.nodes[0]), true
}
