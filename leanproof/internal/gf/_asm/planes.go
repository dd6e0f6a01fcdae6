package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const planesSignature = "(out *[3]uint64, a0, a1, a2, k *uint64, n int)"

// dotPlanes takes two elements at a time, and the last one of an odd number alone.
func dotPlanes() {
	begin("dotPlanesCLMUL", planesSignature)
	out, k, n := pointer("out"), pointer("k"), pointer("n")
	planes := [3]reg.GPVirtual{pointer("a0"), pointer("a1"), pointer("a2")}
	r := reduction()
	sum := [3]reg.VecVirtual{XMM(), XMM(), XMM()}
	for _, s := range sum {
		zero(s)
	}
	x, y := XMM(), XMM()
	odd := GP64()
	MOVQ(n, odd)
	SHRQ(operand.U8(1), n)
	loop("planes", n, func() {
		VMOVDQU(operand.Mem{Base: k}, x)
		for i, p := range planes {
			even := XMM()
			VMOVDQU(operand.Mem{Base: p}, y)
			VPCLMULQDQ(operand.U8(0x00), x, y, even)
			VPCLMULQDQ(operand.U8(0x11), x, y, y)
			VPXOR(even, sum[i], sum[i])
			VPXOR(y, sum[i], sum[i])
			ADDQ(operand.Imm(16), p)
		}
		ADDQ(operand.Imm(16), k)
	})
	TESTQ(operand.U32(1), odd)
	JZ(operand.LabelRef("even"))
	VMOVQ(operand.Mem{Base: k}, x)
	for i, p := range planes {
		VMOVQ(operand.Mem{Base: p}, y)
		VPCLMULQDQ(operand.U8(0x00), x, y, y)
		VPXOR(y, sum[i], sum[i])
	}
	Label("even")
	reduce(r, sum[:]...)
	store(sum, operand.Mem{Base: out})
	RET()
}

// carrylessWide is VPCLMULQDQ on registers of more than 128 bits, a form that avo does not know. base is the extension that
// has such registers.
func carrylessWide(base string, halves uint8, x, y, out reg.VecVirtual) {
	Instruction(&ir.Instruction{
		Opcode:   "VPCLMULQDQ",
		Operands: []operand.Op{operand.U8(halves), x, y, out},
		Inputs:   []operand.Op{x, y},
		Outputs:  []operand.Op{out},
		ISA:      []string{base, "VPCLMULQDQ"},
	})
}

// dotColumns512 takes eight elements at a time, each by one word of each column; the rest is loaded under a mask, zeros behind it.
// The columns, one or four, lie one behind the other.
func dotColumns512(columns int) {
	const lanes, wordSize = 8, 8
	begin(fmt.Sprintf("dotColumns%dAVX512", columns), planesSignature)
	k, n := pointer("k"), pointer("n")
	planes := [3]reg.GPVirtual{pointer("a0"), pointer("a1"), pointer("a2")}
	words := []operand.Mem{{Base: k}}
	if columns == 4 {
		column, three := GP64(), GP64()
		MOVQ(n, column)
		SHLQ(operand.U8(3), column)
		LEAQ(operand.Mem{Base: column, Index: column, Scale: 2}, three)
		for _, m := range []operand.Mem{{Index: column, Scale: 1}, {Index: column, Scale: 2}, {Index: three, Scale: 1}} {
			m.Base = k
			words = append(words, m)
		}
	}

	sums := make([][3]reg.VecVirtual, columns)
	for c := range sums {
		for i := range sums[c] {
			sums[c][i] = ZMM()
			VPXORQ(sums[c][i], sums[c][i], sums[c][i])
		}
	}
	step := func(load func(m operand.Mem, z reg.VecVirtual)) {
		var a [3]reg.VecVirtual
		for i, p := range planes {
			a[i] = ZMM()
			load(operand.Mem{Base: p}, a[i])
		}
		for c := range sums {
			x := ZMM()
			load(words[c], x)
			for i := range a {
				even, odd := ZMM(), ZMM()
				carrylessWide("AVX512F", 0x00, x, a[i], even)
				carrylessWide("AVX512F", 0x11, x, a[i], odd)
				VPTERNLOGQ(operand.U8(0x96), even, odd, sums[c][i]) // the sum of all three
			}
		}
	}
	whole := GP64()
	MOVQ(n, whole)
	SHRQ(operand.U8(3), whole)
	loop("columns", whole, func() {
		step(func(m operand.Mem, z reg.VecVirtual) { VMOVDQU64(m, z) })
		for _, p := range append(planes[:], k) {
			ADDQ(operand.Imm(wordSize*lanes), p)
		}
	})
	ANDQ(operand.Imm(lanes-1), n)
	JZ(operand.LabelRef("fold"))
	ones, mask := GP64(), K()
	MOVQ(operand.U32(1<<lanes-1), ones)
	MOVQ(operand.U32(lanes), reg.RCX)
	SUBQ(n, reg.RCX)
	SHRQ(reg.CL, ones)
	KMOVW(ones.As32(), mask)
	step(func(m operand.Mem, z reg.VecVirtual) { VMOVDQU64_Z(m, mask, z) })
	Label("fold")
	out, r := pointer("out"), reduction()
	for c, sum := range sums {
		var x [3]reg.VecVirtual
		for i, s := range sum {
			half, quarter := YMM(), XMM()
			VEXTRACTI64X4(operand.U8(1), s, half)
			VPXORQ(half, s.AsY(), half)
			VEXTRACTI128(operand.U8(1), half, quarter)
			x[i] = XMM()
			VPXOR(half.AsX(), quarter, x[i])
			reduce(r, x[i]) // one by one: registers are short
		}
		store(x, operand.Mem{Base: out, Disp: size * c})
	}
	VZEROUPPER()
	RET()
}
