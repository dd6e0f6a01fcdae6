package xmss

import (
	"encoding/binary"

	"aggnode/internal/lanes"
)

// kcPart is one signature's part of a layer, on the way from what it signs to the root it leads to.
type kcPart struct {
	check  int // place of the signature in its group
	param  kcParam
	index  uint32 // leaf of the layer's tree
	part   []byte // randomizer, chain values, path: as in the signature
	input  kcDigestInput
	digits [kcChains]uint8
	at     lanes.KeccakDigest // the node reached
}

// newPart takes a layer's part of signature check of its group; signed is not kept.
func (layer kcLayer) newPart(check int, param kcParam, index uint32, signed, part []byte) kcPart {
	return kcPart{
		check: check, param: param, index: index, part: part,
		input: param.digestInput(layer, index, signed, kcWords(part)),
	}
}

// kcParts are the parts of a group that are led through a layer together.
type kcParts [groupSize]kcPart

// kcVerifyGroup answers at most groupSize checks.
func kcVerifyGroup(checks []Check, answers []Answer) {
	var parts kcParts
	n := 0
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
		parts[n] = kcBottom.newPart(i, kcParamOf(&c.PublicKey), c.Epoch, c.Message[:], c.Signature[kcIndexSize:kcTopAt])
		n++
	}
	bottom := kcBottom.encode(parts[:n], answers)
	kcBottom.climb(bottom)

	n = 0
	for i := range bottom {
		b := &bottom[i]
		c := &checks[b.check]
		from, part := kcBytes(&b.at), c.Signature[kcTopAt:]
		if c.Known.matches(Keccak, c, &from, part) {
			continue
		}
		parts[n] = kcTop.newPart(b.check, b.param, c.Epoch>>kcHeight, from[:], part)
		n++
	}
	top := kcTop.encode(parts[:n], answers)
	kcTop.climb(top)
	for i := range top {
		t := &top[i]
		c := &checks[t.check]
		if kcBytes(&t.at) != node(c.PublicKey[:nodeSize]) {
			answers[t.check].Err = ErrRoot
			continue
		}
		from := kcBytes((*lanes.KeccakDigest)(t.input.signed()))
		answers[t.check].Upper = newUpper(Keccak, c, &from, t.part)
	}
}

// encode sets the digits of the parts, answers ErrCodeword for those whose digest is not a codeword, and gives the others,
// moved together.
func (layer kcLayer) encode(parts []kcPart, answers []Answer) []kcPart {
	var digests [groupSize / lanes.KeccakLanes]lanes.KeccakWideDigest
	layer.digests(parts, digests[:])
	n := 0
	for k := range parts {
		p := &parts[k]
		d := kcLane(&digests[k/lanes.KeccakLanes], k%lanes.KeccakLanes)
		digits, ok := kcDigits(&d)
		if !ok {
			answers[p.check].Err = ErrCodeword
			continue
		}
		p.digits = digits
		if n != k {
			parts[n] = *p
		}
		n++
	}
	return parts[:n]
}

// digests computes the digest of each part.
func (layer kcLayer) digests(parts []kcPart, out []lanes.KeccakWideDigest) {
	var long [groupSize / lanes.KeccakLanes]lanes.KeccakWide80
	var short [groupSize / lanes.KeccakLanes]lanes.KeccakWide64
	for k := range parts {
		p := &parts[k]
		rows := long[k/lanes.KeccakLanes][:]
		if layer == kcTop {
			rows = short[k/lanes.KeccakLanes][:]
		}
		kcSetLane(rows, k%lanes.KeccakLanes, p.input.words())
	}
	if layer == kcTop {
		lanes.Keccak64Wide(out, short[:], len(parts))
	} else {
		lanes.Keccak80Wide(out, long[:], len(parts))
	}
}

// kcLeafInput is the inputs of eight one-time leaves.
type kcLeafInput [kcLeafWords]lanes.KeccakRow

// climb leads the parts to the roots of their trees.
func (layer kcLayer) climb(parts []kcPart) {
	var leaves [groupSize / lanes.KeccakLanes]kcLeafInput
	layer.walk(parts, leaves[:])
	for first := 0; first < len(parts); first += lanes.KeccakLanes {
		eight := parts[first:min(first+lanes.KeccakLanes, len(parts))]
		layer.hashLeaves(eight, &leaves[first/lanes.KeccakLanes])
		layer.fold(eight)
	}
}

// kcChunk is the number of chains that are walked at one time: eight kernel calls a step.
const kcChunk = 8 * lanes.KeccakLanes

// kcChain names a chain of one of the parts.
type kcChain struct{ part, chain uint8 }

// walk takes every chain of the parts from its digit to its tip and puts the tips into the leaf inputs. In the order of digits,
// the chains that take part in a step come first in every chunk.
func (layer kcLayer) walk(parts []kcPart, leaves []kcLeafInput) {
	var order [groupSize * kcChains]kcChain
	ends := kcOrder(parts, &order)
	var blocks [kcChunk / lanes.KeccakLanes]lanes.KeccakWide64
	total := len(parts) * kcChains
	for first := 0; first < total; first += kcChunk {
		chains := order[first:min(first+kcChunk, total)]
		for k, o := range chains {
			p, lane := &parts[o.part], k%lanes.KeccakLanes
			b := &blocks[k/lanes.KeccakLanes]
			v := p.part[kcValuesAt+int(o.chain)*nodeSize:][:nodeSize]
			b[0][lane], b[1][lane] = p.param[0], p.param[1]
			b[2][lane] = layer.chainStep(p.index, p.digits[o.chain])
			b[4][lane], b[5][lane] = binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
			b[6][lane] = uint64(o.chain) // words 3 and 7 stay zero
		}
		for position := range kcChainTop {
			lanes.KeccakStepWide(blocks[:], kcStep, min(max(ends[position]-first, 0), len(chains)))
		}
		for k, o := range chains {
			b, lane := &blocks[k/lanes.KeccakLanes], k%lanes.KeccakLanes
			in, to := &leaves[o.part/lanes.KeccakLanes], o.part%lanes.KeccakLanes
			w := 4 + 2*int(o.chain)
			in[w][to], in[w+1][to] = b[4][lane], b[5][lane]
		}
	}
}

// kcOrder lists the chains of the parts by digit; ends[d] is the number of those with a digit of at most d.
func kcOrder(parts []kcPart, order *[groupSize * kcChains]kcChain) (ends [kcChainTop + 1]int) {
	const width = 16 // bits of a counter: one a digit, all in a word that stays in a register
	var counts uint64
	for k := range parts {
		for _, d := range parts[k].digits {
			counts += 1 << (width * d)
		}
	}
	next := counts<<width + counts<<(2*width) + counts<<(3*width) // counter d: how many have a digit below d
	for d := range ends {
		ends[d] = int(uint16((next + counts) >> (width * d)))
	}
	for k := range parts {
		for chain, d := range parts[k].digits {
			order[uint16(next>>(width*d))] = kcChain{part: uint8(k), chain: uint8(chain)}
			next += 1 << (width * d)
		}
	}
	return ends
}

// hashLeaves hashes the tips of at most eight parts to leaves.
func (layer kcLayer) hashLeaves(parts []kcPart, in *kcLeafInput) {
	for lane := range parts {
		p := &parts[lane]
		in[0][lane], in[1][lane], in[2][lane] = p.param[0], p.param[1], layer.leaf(p.index)
	}
	var d lanes.KeccakWideDigest
	lanes.KeccakLongWide(&d, in[:], len(parts))
	for lane := range parts {
		parts[lane].at = kcLane(&d, lane)
	}
}

// fold takes at most eight parts from their leaves up their paths.
func (layer kcLayer) fold(parts []kcPart) {
	var in [1]lanes.KeccakWide64
	var out [1]lanes.KeccakWideDigest
	b, d := &in[0], &out[0]
	for lane := range parts {
		p := &parts[lane]
		b[0][lane], b[1][lane] = p.param[0], p.param[1]
		d[0][lane], d[1][lane] = p.at[0], p.at[1]
	}
	for l := range kcHeight {
		for lane := range parts {
			p := &parts[lane]
			sibling := kcWords(p.part[kcPathAt+l*nodeSize:])
			left, right := 4, 6
			if p.index>>l&1 != 0 {
				left, right = right, left
			}
			b[2][lane] = layer.node(l+1, p.index>>(l+1))
			b[left][lane], b[left+1][lane] = d[0][lane], d[1][lane]
			b[right][lane], b[right+1][lane] = sibling[0], sibling[1]
		}
		lanes.Keccak64Wide(out[:], in[:], len(parts))
	}
	for lane := range parts {
		parts[lane].at = kcLane(d, lane)
	}
}

// kcTopRoot is the root that a top layer's part leads to from the bottom root it signs; false when its digest is no codeword.
func kcTopRoot(p *kcParam, index uint32, signed *node, part []byte) (root node, ok bool) {
	var answers [1]Answer
	one := [1]kcPart{kcTop.newPart(0, *p, index, signed[:], part)}
	if len(kcTop.encode(one[:], answers[:])) == 0 {
		return root, false
	}
	kcTop.climb(one[:])
	return kcBytes(&one[0].at), true
}
