package lanes

import "encoding/binary"

// nodeBytes is the size of a chain value and of a tree node.
const nodeBytes = 16

// Gather sets each used lane k of rows to the bytes from[k*stride:], as many little-endian words as there are rows, which must
// be a multiple of four. It panics when from ends before those of lane 15, used or not.
func (b *Blake2s) Gather(rows []Blake2sRow, from []byte, stride uint32, used LaneSet) {
	nodes := len(rows) / 4
	if nodes == 0 {
		return
	}
	_ = from[(Blake2sWidth-1)*uint64(stride):][nodes*nodeBytes-1]
	if gathersWide(b.path, used) {
		gatherWide(b.path, rows, from, stride, used)
		return
	}
	for s := used; s != 0; s = s.Without() {
		k := s.First()
		bytes := from[uint64(k)*uint64(stride):]
		for n := range nodes {
			node, four := (*[nodeBytes]byte)(bytes[n*nodeBytes:]), (*[4]Blake2sRow)(rows[4*n:])
			// Written out, which is 2% of a lone signature's check.
			four[0][k] = binary.LittleEndian.Uint32(node[0:])
			four[1][k] = binary.LittleEndian.Uint32(node[4:])
			four[2][k] = binary.LittleEndian.Uint32(node[8:])
			four[3][k] = binary.LittleEndian.Uint32(node[12:])
		}
	}
}

// Blake2sChain names a chain of one of 16 owners and says how far it has come: its position is in bits 0 to 2, its number in
// bits 3 to 8, and its owner in bits 9 to 12. Adding to it moves it on.
type Blake2sChain uint16

const (
	chainPositionBits = 3
	chainNumberBits   = 6
	chainNumbers      = 1 << chainNumberBits
	chainPositionMask = 1<<chainPositionBits - 1
	chainStepMask     = 1<<(chainPositionBits+chainNumberBits) - 1
)

// NewBlake2sChain is chain number, below 64, of owner, below 16, at its start.
func NewBlake2sChain(owner, number int) Blake2sChain {
	return Blake2sChain(owner<<(chainPositionBits+chainNumberBits) | number<<chainPositionBits)
}

// Position is the number of steps from the start of the chain.
func (c Blake2sChain) Position() int { return int(c & chainPositionMask) }

func (c Blake2sChain) owner() int { return int(c>>(chainPositionBits+chainNumberBits)) % Blake2sWidth }

// value is the place of the chain's value.
func (c Blake2sChain) value(stride uint32) uint64 {
	number := uint64(c>>chainPositionBits) % chainNumbers
	return uint64(c.owner())*uint64(stride) + number*nodeBytes
}

// Blake2sOwners is the first 8 words of the chain steps of 16 owners. Words 1 and 2 are not read: word 1 of a step is the
// chain without its owner, and word 2 is zero. It serves one Advance at a time.
type Blake2sOwners struct {
	Words   [8]Blake2sRow
	working Blake2sWide // of Advance, which so needs no memory of its own
}

// Advance makes steps, as Walk does, of at most 16 different chains of any owners. The value of chain number c of owner w is
// the 16 bytes values[w*stride+16*c:], and the new value takes their place; the caller adds the steps to the chains. It panics
// when values ends before that of chain 63 of owner 15, in use or not, and when there are more chains than lanes.
func (b *Blake2s) Advance(o *Blake2sOwners, values []byte, stride uint32, chains []Blake2sChain, steps int) {
	if len(chains) > Blake2sWidth {
		panic("lanes: more chains than lanes")
	}
	_ = values[NewBlake2sChain(Blake2sWidth-1, chainNumbers-1).value(stride):][nodeBytes-1]
	if len(chains) == 0 || steps == 0 {
		return
	}
	if b.isWide(FirstLanes(len(chains)), steps) {
		advanceWide(b.path, o, values, stride, chains, steps)
		return
	}
	for _, c := range chains {
		value := values[c.value(stride):]
		block := o.block(c, value)
		for range steps {
			state := Blake2sInitial()
			compress(&state, &block, 48, true)
			copy(block[8:12], state[:])
			block[1]++
		}
		putWords(value, block[8:12])
	}
}

// block is the input of the next step of a chain that has come to value.
func (o *Blake2sOwners) block(c Blake2sChain, value []byte) (b Blake2sBlock) {
	owner := c.owner()
	for w := range o.Words {
		b[w] = o.Words[w][owner]
	}
	b[1], b[2] = uint32(c)&chainStepMask, 0
	bytes := (*[nodeBytes]byte)(value)
	for w := range 4 {
		b[8+w] = binary.LittleEndian.Uint32(bytes[4*w:])
	}
	return b
}

func putWords(b []byte, words []uint32) {
	b = b[:4*len(words)]
	for i, w := range words {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
}
