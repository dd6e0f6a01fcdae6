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

	kcSpareShift = kcDigitBits*kcChains - 64 // of the bits of a digest's second word that must be zero

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

// Addresses of hash inputs; index is the epoch in the bottom layer and epoch >> 16 in the top one.
func (layer kcLayer) chainStep(index uint32, position uint8) uint64 {
	return uint64(index) | uint64(layer) | kcChainStep | uint64(position)*kcStep
}

func (layer kcLayer) leaf(index uint32) uint64 { return uint64(index) | uint64(layer) | kcLeaf }

func (layer kcLayer) digest(index uint32) uint64 { return uint64(index) | uint64(layer) | kcDigest }

// node is for node j of level l, 1 to 16.
func (layer kcLayer) node(l int, j uint32) uint64 {
	return uint64(j) | uint64(layer) | uint64(l)<<32 | kcNode
}

// kcDigestInput is the input of a digest: parameter, address, signed value (the message, 32 bytes, in the bottom layer; the
// bottom root, 16 bytes, in the top one) and randomizer.
type kcDigestInput struct {
	all  [10]uint64
	size int // 10 or 8 words
}

func (p *kcParam) digestInput(layer kcLayer, index uint32, signed []byte, randomizer [2]uint64) (in kcDigestInput) {
	in.all = [10]uint64{p[0], p[1], layer.digest(index), 0}
	in.size = 4
	for ; len(signed) > 0; signed = signed[16:] {
		w := kcWords(signed)
		in.size += copy(in.all[in.size:], w[:])
	}
	in.size += copy(in.all[in.size:], randomizer[:])
	return in
}

func (in *kcDigestInput) words() []uint64 { return in.all[:in.size] }

// signed is the signed value.
func (in *kcDigestInput) signed() []uint64 { return in.all[4 : in.size-2] }

// kcSetLane puts words down one lane of a wide message, from row 0.
func kcSetLane(rows []lanes.KeccakRow, lane int, words []uint64) {
	for w, v := range words {
		rows[w][lane] = v
	}
}

// kcLane is the first half of the digest in one lane.
func kcLane(d *lanes.KeccakWideDigest, lane int) lanes.KeccakDigest {
	return lanes.KeccakDigest{d[0][lane], d[1][lane]}
}

// kcDigits reads the digits of a digest, or reports that it is not a codeword: bits 116..127 must be zero and the digits
// must sum to the target.
func kcDigits(d *lanes.KeccakDigest) (digits [kcChains]uint8, ok bool) {
	const perWord = 64 / kcDigitBits
	if d[1]>>kcSpareShift != 0 {
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
