// Command blake2s writes the BLAKE2s kernels of package lanes. A wide kernel computes one compression of many messages side
// by side: register i holds word i of all of them, so that no instruction moves data between lanes.
//
// What one kernel does is written once, in kernels.go, over the few operations of machine.go, which come in two forms: AVX2
// and AVX-512. quad.go has kernels of another kind for few messages.
package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// sigma is the message schedule of RFC 7693 section 2.7.
var sigma = [10][16]int{
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}

// Places in the table of constants, in words.
const (
	atInitial = 0  // state before the first block of an unkeyed digest of 32 bytes
	atIV      = 8  // the initial values themselves
	atTotal48 = 16 // word 12 of the work vector when the message has 48 bytes so far; 64 and 96 follow
	atTotal64 = 17
	atTotal96 = 18
	atLast    = 19 // word 14 of the work vector in a last block
	atOne     = 20

	// Of a chain without what is below or above: its owner, and word 1 of a step.
	atOwnerMask = 21
	atStepMask  = 22

	atLanes    = 32 // 0, 1, …, 15
	atRotate16 = 48 // byte shuffles that rotate each word of 32 bytes right by 16 and by 8
	atRotate8  = 56
	atSpread   = 64 // bytes 0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3
	tableWords = 68
)

// constants is the table once main has written it.
var constants Mem

func constant(at int) Mem { return constants.Offset(4 * at) }

func table() Mem {
	iv := [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
	var words [tableWords]uint32
	copy(words[atInitial:], iv[:])
	words[atInitial] ^= 0x01010020
	copy(words[atIV:], iv[:])
	words[atTotal48], words[atTotal64], words[atTotal96] = iv[4]^48, iv[4]^64, iv[4]^96
	words[atLast] = ^iv[6]
	words[atOne] = 1
	words[atOwnerMask], words[atStepMask] = 15, 1<<stepBits-1
	for i := range 16 {
		words[atLanes+i] = uint32(i)
	}
	for i := range 8 { // a shuffle sees 16 bytes at a time
		at := uint32(i % 4 * 0x04040404)
		words[atRotate16+i] = at + 0x01000302
		words[atRotate8+i] = at + 0x00030201
	}
	for i := range 4 {
		words[atSpread+i] = uint32(i * 0x01010101)
	}
	t := GLOBL("blake2sTable", attr.RODATA|attr.NOPTR)
	for i, w := range words {
		DATA(4*i, U32(w))
	}
	return t
}

func main() {
	ConstraintExpr("amd64,!purego")
	constants = table()
	for _, x := range []machine{avx512{}, &avx2{}} {
		absorb(x)
		walk(x)
		climb(x)
		trials(x)
		gather(x)
		advance(x)
	}
	quadAbsorb()
	quadWalk()
	quadClimb()
	Generate()
}
