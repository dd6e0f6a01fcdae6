package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotColumns256 takes four elements at a time, each by one word of each column, and the last three at most one by one. The
// columns, one or two, lie one behind the other; more of them do not fit in sixteen registers.
func dotColumns256(columns int) {
	const lanes, wordSize = 4, 8
	begin(fmt.Sprintf("dotColumns%dAVX2", columns), planesSignature)
	k, n := pointer("k"), pointer("n")
	planes := [3]reg.GPVirtual{pointer("a0"), pointer("a1"), pointer("a2")}
	words := []operand.Mem{{Base: k}}
	if columns == 2 {
		words = append(words, operand.Mem{Base: k, Index: GP64(), Scale: wordSize})
		MOVQ(n, words[1].Index)
	}
	advance := func(elements int) {
		for _, p := range append(planes[:], k) {
			ADDQ(operand.Imm(uint64(wordSize*elements)), p)
		}
	}

	sums := make([][3]reg.VecVirtual, columns)
	for c := range sums {
		for i := range sums[c] {
			sums[c][i] = YMM()
			zero(sums[c][i])
		}
	}
	x := make([]reg.VecVirtual, columns)
	for c := range x {
		x[c] = YMM()
	}
	a, even, odd := YMM(), YMM(), YMM()
	whole := GP64()
	MOVQ(n, whole)
	SHRQ(operand.U8(2), whole)
	loop("columns", whole, func() {
		for c := range words {
			VMOVDQU(words[c], x[c])
		}
		for i, p := range planes {
			VMOVDQU(operand.Mem{Base: p}, a)
			for c := range words {
				carrylessWide("AVX2", 0x00, x[c], a, even)
				carrylessWide("AVX2", 0x11, x[c], a, odd)
				VPXOR(even, sums[c][i], sums[c][i])
				VPXOR(odd, sums[c][i], sums[c][i])
			}
		}
		advance(lanes)
	})
	for c := range sums {
		for i, s := range sums[c] {
			half := XMM()
			VEXTRACTI128(operand.U8(1), s, half)
			sums[c][i] = s.AsX().(reg.VecVirtual)
			VPXOR(half, sums[c][i], sums[c][i])
		}
	}
	ANDQ(operand.Imm(lanes-1), n)
	loop("rest", n, func() {
		for c := range words {
			VMOVQ(words[c], x[c].AsX())
		}
		for i, p := range planes {
			VMOVQ(operand.Mem{Base: p}, a.AsX())
			for c := range words {
				VPCLMULQDQ(operand.U8(0x00), x[c].AsX(), a.AsX(), even.AsX())
				VPXOR(even.AsX(), sums[c][i], sums[c][i])
			}
		}
		advance(1)
	})
	out, r := pointer("out"), reduction()
	for c, sum := range sums {
		for i := range sum {
			reduce(r, sum[i]) // one by one: registers are short
		}
		store(sum, operand.Mem{Base: out, Disp: size * c})
	}
	VZEROUPPER()
	RET()
}
