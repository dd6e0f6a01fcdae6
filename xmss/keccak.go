package xmss

import (
	"encoding/binary"

	"aggnode/internal/lanes"
)

// Numbers of scheme keccak (leanXMSS of py-lean-pq 0.7.0).
const (
	kcChains    = 58
	kcDigitBits = 2
	kcChainTop  = 1<<kcDigitBits - 1 // last position of a chain
	kcTargetSum = 106
	kcHeight    = 16 // of each of the two layers

	// a signature: leaf index u32 | bottom part | top part
	kcIndexSize = 4
	// a part: randomizer | 58 chain values | 16 siblings
	kcValuesAt      = nodeSize
	kcPathAt        = kcValuesAt + kcChains*nodeSize
	kcPartSize      = kcPathAt + kcHeight*nodeSize
	kcTopAt         = kcIndexSize + kcPartSize
	kcSignatureSize = kcTopAt + kcPartSize

	kcLeafWords = 4 + 2*kcChains // parameter, address and tips: 960 bytes, 7 whole blocks and one more
)

// Types of an address, in their place in its first word: bits 56..60, with the step of a chain above them.
const (
	kcChainStep = 1 << 56
	kcLeaf      = 2 << 56
	kcNode      = 3 << 56
	kcDigest    = 12 << 56

	kcStep = 1 << 61 // one position further along a chain
)

// kcLayer is the layer's part of an address: bit 23 of its 24-bit `hi`, which starts at bit 32.
type kcLayer uint64

const (
	kcBottom kcLayer = 0
	kcTop    kcLayer = 1 << (32 + 23)
)

// kcParam is a key's public parameter as words.
type kcParam [2]uint64

func kcParamOf(pk *PublicKey) kcParam { return kcParam(kcWords(pk[nodeSize:])) }

// step sets a block to the input of the chain step of chain i from position s, without the value. index is the epoch in
// the bottom layer and epoch >> 16 in the top one.
func (p *kcParam) step(b *lanes.KeccakBlock64, layer kcLayer, i, s int, index uint32) {
	b[0], b[1] = p[0], p[1]
	b[2], b[3] = uint64(index)|uint64(layer)|kcChainStep|uint64(s)*kcStep, 0
	b[6], b[7] = uint64(i), 0
}

// nodeBlock sets the first half of the input of node j of level l.
func (p *kcParam) nodeBlock(b *lanes.KeccakBlock64, layer kcLayer, l, j uint32) {
	b[0], b[1] = p[0], p[1]
	b[2], b[3] = uint64(j)|uint64(layer)|uint64(l)<<32|kcNode, 0
}

// leaf hashes the chain tips, which lie in words[4:], to the leaf of one index.
func (p *kcParam) leaf(words *[kcLeafWords]uint64, layer kcLayer, index uint32) lanes.KeccakDigest {
	words[0], words[1], words[2], words[3] = p[0], p[1], uint64(index)|uint64(layer)|kcLeaf, 0
	var a lanes.KeccakState
	rest := words[:]
	for len(rest) >= lanes.KeccakRate {
		a.Absorb((*[lanes.KeccakRate]uint64)(rest))
		rest = rest[lanes.KeccakRate:]
	}
	a.Finish(rest)
	return a.Digest()
}

// kcEncoder computes digests of one signed value under many randomizers. An input is parameter, address, signed value (the message,
// 32 bytes, in the bottom layer; the bottom root, 16 bytes, in the top one) and randomizer.
type kcEncoder struct {
	long  [trialLanes]lanes.KeccakBlock80 // used in the bottom layer
	short [trialLanes]lanes.KeccakBlock64 // used in the top layer
	isTop bool
	out   [trialLanes]lanes.KeccakDigest
}

// init sets all of the inputs but their randomizers; signed is 32 or 16 bytes by layer.
func (e *kcEncoder) init(p *kcParam, layer kcLayer, index uint32, signed []byte) {
	address := uint64(index) | uint64(layer) | kcDigest
	first := kcWords(signed)
	e.isTop = layer == kcTop
	if e.isTop {
		for k := range e.short {
			e.short[k] = lanes.KeccakBlock64{p[0], p[1], address, 0, first[0], first[1]}
		}
		return
	}
	second := kcWords(signed[16:])
	for k := range e.long {
		e.long[k] = lanes.KeccakBlock80{p[0], p[1], address, 0, first[0], first[1], second[0], second[1]}
	}
}

// digests are the digests under the randomizers of trials a, a+1, …: base with the trial added to its first word. They are
// overwritten by the next call.
func (e *kcEncoder) digests(base [2]uint64, a uint64) []lanes.KeccakDigest {
	for k := range trialLanes {
		r := base[0] + a + uint64(k)
		if e.isTop {
			e.short[k][6], e.short[k][7] = r, base[1]
		} else {
			e.long[k][8], e.long[k][9] = r, base[1]
		}
	}
	if e.isTop {
		lanes.Keccak64(e.out[:], e.short[:])
	} else {
		lanes.Keccak80(e.out[:], e.long[:])
	}
	return e.out[:]
}

// digest is the digest of a signed value under randomizer r.
func (p *kcParam) digest(layer kcLayer, index uint32, signed []byte, r [2]uint64) lanes.KeccakDigest {
	words := [10]uint64{p[0], p[1], uint64(index) | uint64(layer) | kcDigest}
	n := 4
	for ; len(signed) > 0; signed = signed[16:] {
		w := kcWords(signed)
		words[n], words[n+1] = w[0], w[1]
		n += 2
	}
	words[n], words[n+1] = r[0], r[1]
	var a lanes.KeccakState
	a.Finish(words[:n+2])
	return a.Digest()
}

// kcDigits reads the digits of a digest, or reports that it is not a codeword: bits 116..127 must be zero and the digits
// must sum to the target.
func kcDigits(d *lanes.KeccakDigest) (digits [kcChains]uint8, ok bool) {
	const perWord = 64 / kcDigitBits
	if d[1]>>(kcDigitBits*kcChains-64) != 0 {
		return digits, false
	}
	sum := 0
	for i := range kcChains {
		digit := uint8(d[i/perWord]>>(kcDigitBits*(i%perWord))) & kcChainTop
		digits[i] = digit
		sum += int(digit)
	}
	return digits, sum == kcTargetSum
}

func kcWords(b []byte) [2]uint64 {
	return [2]uint64{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func kcBytes(d *lanes.KeccakDigest) (n node) {
	binary.LittleEndian.PutUint64(n[:], d[0])
	binary.LittleEndian.PutUint64(n[8:], d[1])
	return n
}
