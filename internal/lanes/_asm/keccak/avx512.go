package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A register holds one lane of eight states. Z0 to Z24 are the state, Z25 to Z31 are free.
var zmm = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10,
	reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20,
	reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

const (
	rowSize = 64 // bytes: one lane of eight states

	// truth tables of VPTERNLOGQ
	xor3 = U8(0x96) // a ^ b ^ c
	chi  = U8(0xd2) // a ^ ^b & c
)

// theta512 adds the column parities to the lanes that wanted names. Two rotated parities are alive at a time: ten do not fit.
func theta512(i int, wanted func(x, y int) bool) {
	t := zmm[25:]
	lane := func(x, y int) reg.VecPhysical { return zmm[place(i, x, y)] }
	for x := range 5 {
		VMOVDQA64(lane(x, 0), t[x])
		VPTERNLOGQ(xor3, lane(x, 1), lane(x, 2), t[x])
		VPTERNLOGQ(xor3, lane(x, 3), lane(x, 4), t[x])
	}
	for x := range 5 {
		rotated := t[5+x%2]
		VPROLQ(U8(1), t[(x+1)%5], rotated)
		for y := range 5 {
			if wanted(x, y) {
				VPTERNLOGQ(xor3, rotated, t[(x+4)%5], lane(x, y))
			}
		}
	}
}

// round512 is round i on the registers. The copies cost no execution unit: the processor renames registers instead.
func round512(i int, constant Mem) {
	theta512(i, func(int, int) bool { return true })
	t := zmm[25:]
	for y := range 5 {
		for x := range 5 {
			fromX, fromY := source(x, y)
			from := zmm[place(i, fromX, fromY)]
			if n := rotation(fromX, fromY); n != 0 {
				VPROLQ(U8(n), from, t[x])
			} else {
				VMOVDQA64(from, t[x])
			}
		}
		for x := range 5 {
			to := zmm[place(i+1, x, y)]
			VMOVDQA64(t[x], to)
			VPTERNLOGQ(chi, t[(x+2)%5], t[(x+1)%5], to)
		}
		if y == 0 {
			first := zmm[place(i+1, 0, 0)]
			VPXORQ_BCST(constant, first, first)
		}
	}
}

// lastRound512 computes only lanes 0 to 3 of the output, the digest, and gives their registers.
func lastRound512(constant Mem) (digest [4]reg.VecPhysical) {
	const i = rounds - 1
	theta512(i, func(x, y int) bool { return x == y }) // the lanes that pi moves to row 0
	var b [5]reg.VecPhysical
	for x := range 5 {
		b[x] = zmm[place(i, x, x)]
		if n := rotation(x, x); n != 0 {
			VPROLQ(U8(n), b[x], b[x])
		}
	}
	copied := zmm[25]
	VMOVDQA64(b[0], copied)
	for x := range digest {
		next := b[(x+2)%5]
		if x == 3 {
			next = copied
		}
		VPTERNLOGQ(chi, next, b[x+1], b[x])
		digest[x] = b[x]
	}
	VPXORQ_BCST(constant, b[0], b[0])
	return digest
}

// roundLoop512 runs groups of four rounds; c is left at the constant of the round after them.
func roundLoop512(groups uint32, c reg.GPVirtual) {
	n := GP32()
	MOVL(U32(groups), n)
	Label("rounds")
	for i := range unrolled {
		round512(i, Mem{Base: c, Disp: 8 * i})
	}
	ADDQ(U8(8*unrolled), c)
	DECL(n)
	JNE(LabelRef("rounds"))
}

// hashRounds512 turns the padded block in the registers into its digest.
func hashRounds512(constants Mem) [4]reg.VecPhysical {
	c := GP64()
	LEAQ(constants, c)
	roundLoop512(rounds/unrolled-1, c)
	for i := range unrolled - 1 {
		round512(i, Mem{Base: c, Disp: 8 * i})
	}
	return lastRound512(Mem{Base: c, Disp: 8 * (unrolled - 1)})
}

// loadBlock512 loads a message of 8 words with the padding of Keccak-256.
func loadBlock512(message reg.Register) {
	for w := range 8 {
		VMOVDQU64(Mem{Base: message, Disp: rowSize * w}, zmm[w])
	}
	pad := GP64()
	MOVQ(U32(1), pad)
	VPBROADCASTQ(pad, zmm[8])
	SHLQ(U8(63), pad)
	VPBROADCASTQ(pad, zmm[16])
	for w := 9; w < 25; w++ {
		if w != 16 {
			VPXORQ(zmm[w], zmm[w], zmm[w])
		}
	}
}

func permuteAVX512(constants Mem) {
	TEXT("keccakPermuteAVX512", NOSPLIT, "func(a *[25][8]uint64)")
	Pragma("noescape")
	Doc("keccakPermuteAVX512 permutes eight states.")
	a, c := Load(Param("a"), GP64()), GP64()
	for w := range 25 {
		VMOVDQU64(Mem{Base: a, Disp: rowSize * w}, zmm[w])
	}
	LEAQ(constants, c)
	roundLoop512(rounds/unrolled, c.(reg.GPVirtual))
	for w := range 25 {
		VMOVDQU64(zmm[w], Mem{Base: a, Disp: rowSize * w})
	}
	VZEROUPPER()
	RET()
}

// hashAVX512 hashes messages of 8 or 10 words.
func hashAVX512(constants Mem) {
	TEXT("keccakHashAVX512", NOSPLIT, "func(out *[4][8]uint64, message *[8]uint64, words int)")
	Pragma("noescape")
	Doc("keccakHashAVX512 sets out to the digests of eight messages of 8 or 10 words, whose first row message points to.")
	message, words := Load(Param("message"), GP64()), Load(Param("words"), GP64())
	loadBlock512(message)
	CMPQ(words, U8(8))
	JEQ(LabelRef("loaded"))
	VMOVDQA64(zmm[8], zmm[10]) // the padding comes two words later
	for w := 8; w < 10; w++ {
		VMOVDQU64(Mem{Base: message, Disp: rowSize * w}, zmm[w])
	}
	Label("loaded")
	digest := hashRounds512(constants)
	out := Load(Param("out"), GP64())
	for w, r := range digest {
		VMOVDQU64(r, Mem{Base: out, Disp: rowSize * w})
	}
	VZEROUPPER()
	RET()
}

// stepAVX512 is one step of the chains whose hash inputs are the messages.
func stepAVX512(constants Mem) {
	TEXT("keccakStepAVX512", NOSPLIT, "func(message *[8][8]uint64, increment uint64)")
	Pragma("noescape")
	Doc("keccakStepAVX512 puts the first 16 bytes of the digests of eight messages in place of their words 4 and 5 and adds the",
		"increment to their word 2.")
	message := Load(Param("message"), GP64())
	loadBlock512(message)
	digest := hashRounds512(constants)
	increment, moved := Load(Param("increment"), GP64()), zmm[31]
	row := func(w int) Mem { return Mem{Base: message, Disp: rowSize * w} }
	VMOVDQU64(digest[0], row(4))
	VMOVDQU64(digest[1], row(5))
	VPBROADCASTQ(increment, moved)
	VPADDQ(row(2), moved, moved)
	VMOVDQU64(moved, row(2))
	VZEROUPPER()
	RET()
}
