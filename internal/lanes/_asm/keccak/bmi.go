package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// permuteBMI works on one state in memory, a row at a time.
func permuteBMI(constants Mem) {
	TEXT("keccakPermuteBMI", NOSPLIT, "func(a *[25]uint64)")
	Pragma("noescape")
	Doc("keccakPermuteBMI permutes one state.")
	Load(Param("a"), reg.RDI)
	a, c, n, t := reg.RDI, reg.RSI, reg.ECX, reg.RAX
	b := [5]reg.GPPhysical{reg.RBX, reg.RDX, reg.R8, reg.R9, reg.R10} // first the parities, then a row
	effect := [5]reg.GPPhysical{reg.R11, reg.R12, reg.R13, reg.R14, reg.R15}
	lane := func(i, x, y int) Mem { return Mem{Base: a, Disp: 8 * place(i, x, y)} }

	LEAQ(constants, c)
	MOVL(U32(rounds/unrolled), n)
	Label("rounds")
	for i := range unrolled {
		for x := range 5 {
			MOVQ(lane(i, x, 0), b[x])
			for y := 1; y < 5; y++ {
				XORQ(lane(i, x, y), b[x])
			}
		}
		for x := range 5 {
			RORXQ(U8(63), b[(x+1)%5], effect[x])
			XORQ(b[(x+4)%5], effect[x])
		}
		for y := range 5 {
			for x := range 5 {
				fromX, fromY := source(x, y)
				MOVQ(lane(i, fromX, fromY), b[x])
				XORQ(effect[fromX], b[x])
				if n := rotation(fromX, fromY); n != 0 {
					ROLQ(U8(n), b[x])
				}
			}
			for x := range 5 {
				ANDNQ(b[(x+2)%5], b[(x+1)%5], t)
				XORQ(b[x], t)
				if x == 0 && y == 0 {
					XORQ(Mem{Base: c, Disp: 8 * i}, t)
				}
				MOVQ(t, lane(i+1, x, y))
			}
		}
	}
	ADDQ(U8(8*unrolled), c)
	DECL(n)
	JNE(LabelRef("rounds"))
	RET()
}
