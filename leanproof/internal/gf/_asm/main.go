// Command asm writes the kernels of package gf: products in GF(2^192) = K[y]/(y^3 + y + 1), K = GF(2^64), by carry-less
// multiplication.
//
// A product before reduction is a 128-bit register, the coefficient of one power of y.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const size = 24 // bytes of an element

func main() {
	ConstraintExpr("amd64,!purego")
	mul()
	mulK()
	mulBase()
	squareN()
	scale()
	dot()
	dotK()
	dotPlanes()
	dotColumns256(1)
	dotColumns256(2)
	dotColumns512(1)
	dotColumns512(4)
	Generate()
}

// begin starts a kernel. Its declaration stands in kernels_amd64.go, which has names for the types.
func begin(name, signature string) { TEXT(name, NOSPLIT, "func"+signature) }

func pointer(name string) reg.GPVirtual {
	return Load(Param(name), GP64()).(reg.GPVirtual)
}

// reduction returns a register with x^4 + x^3 + x + 1 in both halves: x^64 in K.
func reduction() reg.VecVirtual {
	r, g := XMM(), GP64()
	MOVQ(operand.U32(0x1b), g)
	VMOVQ(g, r)
	VPUNPCKLQDQ(r, r, r)
	return r
}

// reduce reduces each of the coefficients; the results are their low halves. The high half times x^64 is added; what that
// pushes beyond the low half again, four bits, once more.
func reduce(r reg.Register, coefficients ...reg.VecVirtual) {
	n := len(coefficients)
	first, second := make([]reg.VecVirtual, n), make([]reg.VecVirtual, n)
	for i, w := range coefficients {
		first[i] = XMM()
		VPCLMULQDQ(operand.U8(0x11), r, w, first[i])
	}
	for i := range coefficients {
		second[i] = XMM()
		VPCLMULQDQ(operand.U8(0x11), r, first[i], second[i])
	}
	for i, w := range coefficients {
		VPXOR(first[i], w, w)
		VPXOR(second[i], w, w)
	}
}

// element is an element in three registers, each limb in both halves. Loads of single words forward from whatever wrote them.
type element [3]reg.VecVirtual

func load(m operand.Mem) element {
	e := element{XMM(), XMM(), XMM()}
	for i := range e {
		VMOVDDUP(m.Offset(8*i), e[i])
	}
	return e
}

// store writes three reduced coefficients.
func store(c [3]reg.VecVirtual, m operand.Mem) {
	for i := range c {
		VMOVQ(c[i], m.Offset(8*i))
	}
}

// factor is an element with the sums of Karatsuba's method.
type factor struct {
	element
	sum01, sum02, sum12 reg.VecVirtual
}

func (e element) factor() factor {
	f := factor{e, XMM(), XMM(), XMM()}
	VPXOR(e[1], e[2], f.sum12)
	VPXOR(e[0], e[1], f.sum01)
	VPXOR(e[0], e[2], f.sum02)
	return f
}

// pairs are the six products of Karatsuba's method: of the limbs and of the sums of two.
type pairs struct{ p0, p1, p2, m01, m02, m12 reg.VecVirtual }

func newPairs() pairs { return pairs{XMM(), XMM(), XMM(), XMM(), XMM(), XMM()} }

func (p pairs) each(do func(reg.VecVirtual)) {
	for _, r := range []reg.VecVirtual{p.p0, p.p1, p.p2, p.m01, p.m02, p.m12} {
		do(r)
	}
}

func product(a, b factor) pairs {
	p := newPairs()
	carryless(a.sum12, b.sum12, p.m12)
	carryless(a.element[0], b.element[0], p.p0)
	carryless(a.element[1], b.element[1], p.p1)
	carryless(a.element[2], b.element[2], p.p2)
	carryless(a.sum01, b.sum01, p.m01)
	carryless(a.sum02, b.sum02, p.m02)
	return p
}

// carryless sets c to the product of the low halves.
func carryless(a, b, c reg.VecVirtual) { VPCLMULQDQ(operand.U8(0), a, b, c) }

// fold brings the pairs to the coefficients of 1, y and y^2. With y^3 = y + 1 and y^4 = y^2 + y most of the products that
// Karatsuba's method subtracts cancel.
func (p pairs) fold() [3]reg.VecVirtual {
	VPXOR(p.p0, p.m12, p.m12)
	VPXOR(p.m12, p.m01, p.m01) // y: m01 + m12 + p0
	VPXOR(p.p1, p.p0, p.p0)
	VPXOR(p.p0, p.m02, p.m02) // y^2: m02 + p0 + p1
	VPXOR(p.p1, p.p2, p.p2)
	VPXOR(p.p2, p.m12, p.m12) // 1: m12 + p0 + p1 + p2
	return [3]reg.VecVirtual{p.m12, p.m01, p.m02}
}

func mul() {
	begin("mulCLMUL", "(out, a, b *[3]uint64)")
	a, b := load(operand.Mem{Base: pointer("a")}).factor(), load(operand.Mem{Base: pointer("b")}).factor()
	out := pointer("out")
	r := reduction()
	c := product(a, b).fold()
	reduce(r, c[:]...)
	store(c, operand.Mem{Base: out})
	RET()
}

func mulK() {
	begin("mulKCLMUL", "(out, a *[3]uint64, k uint64)")
	a := load(operand.Mem{Base: pointer("a")})
	k := XMM()
	VMOVQ(pointer("k"), k)
	out := pointer("out")
	r := reduction()
	c := productBase(a, k)
	reduce(r, c[:]...)
	store(c, operand.Mem{Base: out})
	RET()
}

// productBase multiplies by the low half of k.
func productBase(a element, k reg.VecVirtual) [3]reg.VecVirtual {
	c := [3]reg.VecVirtual{XMM(), XMM(), XMM()}
	for i := range c {
		carryless(a[i], k, c[i])
	}
	return c
}

func mulBase() {
	begin("mulBaseCLMUL", "(a, b uint64) uint64")
	x, y, c := XMM(), XMM(), XMM()
	VMOVQ(pointer("a"), x)
	VMOVQ(pointer("b"), y)
	carryless(x, y, c)
	reduce(reduction(), c)
	g := GP64()
	VMOVQ(c, g)
	Store(g, ReturnIndex(0))
	RET()
}

// loop calls body until n, at least zero, is down to zero; body advances the pointers.
func loop(label string, n reg.GPVirtual, body func()) {
	TESTQ(n, n)
	JZ(operand.LabelRef(label + "Done"))
	Label(label + "Loop")
	body()
	DECQ(n)
	JNZ(operand.LabelRef(label + "Loop"))
	Label(label + "Done")
}

func squareN() {
	begin("squareNCLMUL", "(out, a *[3]uint64, n int)")
	a := load(operand.Mem{Base: pointer("a")})
	out, n := pointer("out"), pointer("n")
	r := reduction()
	loop("square", n, func() {
		// Squaring is linear: a0^2 + a2^2 y + (a1^2 + a2^2) y^2.
		t := XMM()
		carryless(a[0], a[0], a[0])
		carryless(a[1], a[1], t)
		carryless(a[2], a[2], a[1])
		VPXOR(a[1], t, a[2])
		reduce(r, a[:]...)
	})
	store(a, operand.Mem{Base: out})
	RET()
}

func scale() {
	begin("scaleCLMUL", "(out, a, by *[3]uint64, n int)")
	by := load(operand.Mem{Base: pointer("by")}).factor()
	out, a, n := pointer("out"), pointer("a"), pointer("n")
	r := reduction()
	loop("scale", n, func() {
		c := product(load(operand.Mem{Base: a}).factor(), by).fold()
		reduce(r, c[:]...)
		store(c, operand.Mem{Base: out})
		ADDQ(operand.Imm(size), a)
		ADDQ(operand.Imm(size), out)
	})
	RET()
}

func zero(r reg.VecVirtual) { VPXOR(r, r, r) }

func dot() {
	begin("dotCLMUL", "(out, a, b *[3]uint64, n int)")
	out, a, b, n := pointer("out"), pointer("a"), pointer("b"), pointer("n")
	r := reduction()
	sum := newPairs()
	sum.each(zero)
	loop("dot", n, func() {
		x, y := load(operand.Mem{Base: a}), load(operand.Mem{Base: b})
		u, v := XMM(), XMM()
		for i, s := range []reg.VecVirtual{sum.p0, sum.p1, sum.p2} {
			carryless(x[i], y[i], u)
			VPXOR(u, s, s)
		}
		for _, m := range []struct {
			i, j int
			sum  reg.VecVirtual
		}{{0, 1, sum.m01}, {0, 2, sum.m02}, {1, 2, sum.m12}} {
			VPXOR(x[m.i], x[m.j], u)
			VPXOR(y[m.i], y[m.j], v)
			carryless(u, v, u)
			VPXOR(u, m.sum, m.sum)
		}
		ADDQ(operand.Imm(size), a)
		ADDQ(operand.Imm(size), b)
	})
	c := sum.fold()
	reduce(r, c[:]...)
	store(c, operand.Mem{Base: out})
	RET()
}

func dotK() {
	begin("dotKCLMUL", "(out, a *[3]uint64, k *uint64, n int)")
	out, a, k, n := pointer("out"), pointer("a"), pointer("k"), pointer("n")
	r := reduction()
	sum := [3]reg.VecVirtual{XMM(), XMM(), XMM()}
	for _, s := range sum {
		zero(s)
	}
	loop("dotK", n, func() {
		x := XMM()
		VMOVQ(operand.Mem{Base: k}, x)
		for i, c := range productBase(load(operand.Mem{Base: a}), x) {
			VPXOR(c, sum[i], sum[i])
		}
		ADDQ(operand.Imm(size), a)
		ADDQ(operand.Imm(8), k)
	})
	reduce(r, sum[:]...)
	store(sum, operand.Mem{Base: out})
	RET()
}
