package xmss

import (
	"encoding/binary"

	"aggnode/internal/lanes"
)

// Numbers of scheme blake2s (ethereum/cryptography-specs, Xmss).
const (
	b2Chains         = 42
	b2DigitBits      = 3
	b2ChainTop       = 1<<b2DigitBits - 1 // last position of a chain
	b2TargetSum      = 195
	b2Height         = 32
	b2RandomizerSize = 24 // bytes

	b2RandomizerAt  = b2Chains * nodeSize
	b2PathAt        = b2RandomizerAt + b2RandomizerSize
	b2UpperAt       = b2PathAt + subtreeHeight*nodeSize
	b2SignatureSize = b2PathAt + b2Height*nodeSize

	b2LeafBlocks = 11 // 32 + 42*16 = 704 bytes, exactly 11 blocks
)

// Type byte of a tweak, shifted to its place in word 0.
const (
	b2ChainStart = iota << 8
	b2ChainStep
	b2Leaf
	b2Node
	b2Encoding
	b2Parameter
	b2Filler
	b2Randomizer
)

// b2Param is a key's public parameter as words.
type b2Param [4]uint32

func b2ParamOf(pk *PublicKey) b2Param { return b2Param(b2Words(pk[nodeSize:])) }

// tweak sets the first 32 bytes of a hash input: tweak (0 | type | 0 0 | sub | 0 0 0 0 | index) and public parameter.
func (p *b2Param) tweak(b *lanes.Blake2sBlock, kind, sub, index uint32) {
	b[0], b[1], b[2], b[3] = kind, sub, 0, index
	b[4], b[5], b[6], b[7] = p[0], p[1], p[2], p[3]
}

// step sets a block to the input of the chain step of chain i from position s, without the value.
func (p *b2Param) step(b *lanes.Blake2sBlock, i, s int, epoch uint32) {
	p.tweak(b, b2ChainStep, uint32(8*i+s), epoch)
	b[12], b[13], b[14], b[15] = 0, 0, 0, 0
}

// b2Encoder computes digests of one message under many randomizers: the first block of the input (tweak, parameter, message)
// is the same for all of them and its state is kept.
type b2Encoder struct {
	prefix lanes.Blake2sState
	block  lanes.Blake2sBlock // randomizer in words 0..5, then zeros
}

func (e *b2Encoder) init(p *b2Param, epoch uint32, message *[MessageSize]byte) {
	var b lanes.Blake2sBlock
	p.tweak(&b, b2Encoding, 0, epoch)
	b2PutWords(b[8:16], message[:])
	e.prefix = lanes.Blake2sInitial()
	e.prefix.Absorb(&b, 64, false)
}

// digest is the encoding digest under the randomizer that lies in e.block.
func (e *b2Encoder) digest() lanes.Blake2sDigest {
	h := e.prefix
	h.Absorb(&e.block, 96, true)
	return h.Digest()
}

// b2Digits reads the digits of a digest, or reports that it is not admissible: bit 63 of both halves must be zero and
// the digits must sum to the target.
func b2Digits(d *lanes.Blake2sDigest) (digits [b2Chains]uint8, ok bool) {
	lo, hi := uint64(d[0])|uint64(d[1])<<32, uint64(d[2])|uint64(d[3])<<32
	if (lo|hi)>>63 != 0 {
		return digits, false
	}
	sum := 0
	for r := range b2Chains / 2 {
		a, b := uint8(lo>>(b2DigitBits*r))&b2ChainTop, uint8(hi>>(b2DigitBits*r))&b2ChainTop
		digits[r], digits[r+b2Chains/2] = a, b
		sum += int(a) + int(b)
	}
	return digits, sum == b2TargetSum
}

// b2PutWords unpacks 4 bytes of b a word, little-endian.
func b2PutWords(w []uint32, b []byte) {
	b = b[:4*len(w)]
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
}

func b2Words(b []byte) (w [4]uint32) {
	b2PutWords(w[:], b)
	return w
}

func b2Bytes(d *lanes.Blake2sDigest) (n node) {
	for i, w := range d {
		binary.LittleEndian.PutUint32(n[4*i:], w)
	}
	return n
}
