package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// permuteAVX2 works on four of the eight states of the wide form, in memory: a row is loaded, worked on and stored in the
// places that its inputs left. The parities of the next round are added up on the way.
func permuteAVX2(constants Mem) {
	rotate8 := GLOBL("keccakRotate8", RODATA|NOPTR) // byte shuffles, one instruction where shifts take three
	for i := range 32 {
		DATA(i, U8(uint8(i&^7|(i+7)&7)))
	}
	rotate56 := GLOBL("keccakRotate56", RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(uint8(i&^7|(i+1)&7)))
	}

	TEXT("keccakPermuteAVX2", NOSPLIT, "func(a *[25][8]uint64, half uint64)")
	Pragma("noescape")
	Doc("keccakPermuteAVX2 permutes states 0 to 3 (half 0) or 4 to 7 (half 1).")
	a, half := Load(Param("a"), GP64()), Load(Param("half"), GP64())
	SHLQ(U8(5), half)
	ADDQ(half, a)
	c, n := GP64(), GP32()
	LEAQ(constants, c)
	MOVL(U32(rounds/unrolled), n)

	parity := [5]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4}
	effect := [5]reg.VecPhysical{reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9}
	b := [5]reg.VecPhysical{reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14}
	t := reg.Y15
	lane := func(i, x, y int) Mem { return Mem{Base: a, Disp: rowSize * place(i, x, y)} }

	for x := range 5 {
		VMOVDQU(lane(0, x, 0), parity[x])
		for y := 1; y < 5; y++ {
			VPXOR(lane(0, x, y), parity[x], parity[x])
		}
	}
	Label("rounds")
	for i := range unrolled {
		for x := range 5 {
			next := parity[(x+1)%5]
			VPADDQ(next, next, effect[x])
			VPSRLQ(U8(63), next, t)
			VPXOR(parity[(x+4)%5], t, t)
			VPXOR(t, effect[x], effect[x])
		}
		for y := range 5 {
			for x := range 5 {
				fromX, fromY := source(x, y)
				VPXOR(lane(i, fromX, fromY), effect[fromX], b[x])
				switch n := rotation(fromX, fromY); n {
				case 0:
				case 8:
					VPSHUFB(rotate8, b[x], b[x])
				case 56:
					VPSHUFB(rotate56, b[x], b[x])
				default:
					VPSRLQ(U8(64-n), b[x], t)
					VPSLLQ(U8(n), b[x], b[x])
					VPOR(t, b[x], b[x])
				}
			}
			for x := range 5 {
				e := t
				if y == 0 {
					e = parity[x]
				}
				VPANDN(b[(x+2)%5], b[(x+1)%5], e)
				VPXOR(b[x], e, e)
				if x == 0 && y == 0 {
					VPBROADCASTQ(Mem{Base: c, Disp: 8 * i}, t)
					VPXOR(t, e, e)
				}
				VMOVDQU(e, lane(i+1, x, y))
				if y != 0 {
					VPXOR(e, parity[x], parity[x])
				}
			}
		}
	}
	ADDQ(U8(8*unrolled), c)
	DECL(n)
	JNE(LabelRef("rounds"))
	VZEROUPPER()
	RET()
}
