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

// tweak sets the first 32 bytes of a hash input: tweak (0 | type | 0 0 | sub | 0 0 0 0 | index) and public parameter.
func (p *b2Param) tweak(b *lanes.Blake2sBlock, kind, sub, index uint32) {
	b[0], b[1], b[2], b[3] = kind, sub, 0, index
	b[4], b[5], b[6], b[7] = p[0], p[1], p[2], p[3]
}

// tweakAll is tweak in all lanes of m, but for sub, which stays as it is.
func (p *b2Param) tweakAll(m *lanes.Blake2sWide, kind, index uint32) {
	b2Fill(&m[0], kind)
	b2Fill(&m[2], 0)
	b2Fill(&m[3], index)
	for i, w := range p {
		b2Fill(&m[4+i], w)
	}
}

// encoding is the state of the encoding hash before the randomizer: all that the trials for one message have in common.
func (p *b2Param) encoding(epoch uint32, message *[MessageSize]byte) lanes.Blake2sState {
	var b lanes.Blake2sBlock
	p.tweak(&b, b2Encoding, 0, epoch)
	b2PutWords(b[8:], message[:])
	h := lanes.Blake2sInitial()
	h.Absorb(&b, 64, false)
	return h
}

// b2Fill sets a row to one value.
func b2Fill(row *lanes.Blake2sRow, v uint32) {
	for k := range row {
		row[k] = v
	}
}

// b2PutWords unpacks 4 bytes of b a word, little-endian.
func b2PutWords(w []uint32, b []byte) {
	b = b[:4*len(w)]
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
}

// b2Rows are 16 bytes of each lane.
type b2Rows = [4]lanes.Blake2sRow

// b2PutColumn puts 16 bytes into lane k of four rows.
func b2PutColumn(rows *b2Rows, k uint, n *node) {
	k %= lanes.Blake2sWidth
	rows[0][k] = binary.LittleEndian.Uint32(n[0:])
	rows[1][k] = binary.LittleEndian.Uint32(n[4:])
	rows[2][k] = binary.LittleEndian.Uint32(n[8:])
	rows[3][k] = binary.LittleEndian.Uint32(n[12:])
}

// b2Column is what lane k holds in four rows.
func b2Column(rows *b2Rows, k int) (n node) {
	for i := range rows {
		binary.LittleEndian.PutUint32(n[4*i:], rows[i][k])
	}
	return n
}

func b2Bytes(d *lanes.Blake2sDigest) (n node) {
	for i, w := range d {
		binary.LittleEndian.PutUint32(n[4*i:], w)
	}
	return n
}
