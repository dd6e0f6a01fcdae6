package gf

import "math/bits"

// wide is a product in GF(2)[x] before reduction, of degree at most 127.
type wide struct{ lo, hi uint64 }

func (w wide) add(v wide) wide { return wide{w.lo ^ v.lo, w.hi ^ v.hi} }

// reduce returns w mod x^64 + x^4 + x^3 + x + 1. The second fold takes the four bits that the first pushes beyond x^63.
func (w wide) reduce() uint64 {
	over := w.hi>>63 ^ w.hi>>61 ^ w.hi>>60
	hi := w.hi ^ over
	return w.lo ^ hi ^ hi<<1 ^ hi<<3 ^ hi<<4
}

// everyFourth has bits 0, 4, 8, ..., 60.
const everyFourth = 0x1111111111111111

// spread is a factor in the form that carryless takes: four numbers, each with every fourth bit, and the top nibble apart.
type spread struct {
	all   uint64
	class [4]uint64
}

func spreadOf(a uint64) spread {
	low := a &^ (0xf << 60)
	s := spread{all: a}
	for i := range s.class {
		s.class[i] = low & (everyFourth << i)
	}
	return s
}

// carryless returns a*b in GF(2)[x] by integer products of numbers whose bits stand four apart: a column sums at most 15
// ones, since the top nibble of a is left out and added by shifts, so no sum reaches the next column that is kept.
func (a *spread) carryless(b uint64) wide {
	b0, b1, b2, b3 := b&everyFourth, b&(everyFourth<<1), b&(everyFourth<<2), b&(everyFourth<<3)
	a0, a1, a2, a3 := a.class[0], a.class[1], a.class[2], a.class[3]
	h00, l00 := bits.Mul64(a0, b0)
	h01, l01 := bits.Mul64(a0, b1)
	h02, l02 := bits.Mul64(a0, b2)
	h03, l03 := bits.Mul64(a0, b3)
	h10, l10 := bits.Mul64(a1, b0)
	h11, l11 := bits.Mul64(a1, b1)
	h12, l12 := bits.Mul64(a1, b2)
	h13, l13 := bits.Mul64(a1, b3)
	h20, l20 := bits.Mul64(a2, b0)
	h21, l21 := bits.Mul64(a2, b1)
	h22, l22 := bits.Mul64(a2, b2)
	h23, l23 := bits.Mul64(a2, b3)
	h30, l30 := bits.Mul64(a3, b0)
	h31, l31 := bits.Mul64(a3, b1)
	h32, l32 := bits.Mul64(a3, b2)
	h33, l33 := bits.Mul64(a3, b3)
	w := wide{
		lo: (l00^l13^l22^l31)&everyFourth | (l01^l10^l23^l32)&(everyFourth<<1) |
			(l02^l11^l20^l33)&(everyFourth<<2) | (l03^l12^l21^l30)&(everyFourth<<3),
		hi: (h00^h13^h22^h31)&everyFourth | (h01^h10^h23^h32)&(everyFourth<<1) |
			(h02^h11^h20^h33)&(everyFourth<<2) | (h03^h12^h21^h30)&(everyFourth<<3),
	}
	for i := 60; i < 64; i++ {
		on := -(a.all >> i & 1)
		w.lo ^= b << i & on
		w.hi ^= b >> (64 - i) & on
	}
	return w
}

func carryless(a, b uint64) wide {
	s := spreadOf(a)
	return s.carryless(b)
}

// product is a product in GF(2)[x][y] before both reductions: p[i] is the coefficient of y^i. Products can be summed and
// reduced once.
type product [5]wide

// addProduct adds a*b to p, by Karatsuba's three pairs.
func (p *product) addProduct(a, b *E) {
	p0, p1, p2 := carryless(a.C0, b.C0), carryless(a.C1, b.C1), carryless(a.C2, b.C2)
	m01 := carryless(a.C0^a.C1, b.C0^b.C1)
	m02 := carryless(a.C0^a.C2, b.C0^b.C2)
	m12 := carryless(a.C1^a.C2, b.C1^b.C2)
	p[0] = p[0].add(p0)
	p[1] = p[1].add(m01).add(p0).add(p1)
	p[2] = p[2].add(m02).add(p0).add(p2).add(p1)
	p[3] = p[3].add(m12).add(p1).add(p2)
	p[4] = p[4].add(p2)
}

// addProductBase adds a*k to p.
func (p *product) addProductBase(a *E, k uint64) {
	s := spreadOf(k)
	p[0] = p[0].add(s.carryless(a.C0))
	p[1] = p[1].add(s.carryless(a.C1))
	p[2] = p[2].add(s.carryless(a.C2))
}

// reduce returns p mod y^3 + y + 1: y^3 = y + 1 and y^4 = y^2 + y.
func (p *product) reduce() E {
	return E{
		p[0].add(p[3]).reduce(),
		p[1].add(p[3]).add(p[4]).reduce(),
		p[2].add(p[4]).reduce(),
	}
}

func mulGeneric(a, b *E) E {
	var p product
	p.addProduct(a, b)
	return p.reduce()
}

func mulKGeneric(a *E, k uint64) E {
	s := spreadOf(k)
	return E{s.carryless(a.C0).reduce(), s.carryless(a.C1).reduce(), s.carryless(a.C2).reduce()}
}

func mulBaseGeneric(a, b uint64) uint64 { return carryless(a, b).reduce() }

func dotGeneric(a, b []E) E {
	var p product
	for i := range a {
		p.addProduct(&a[i], &b[i])
	}
	return p.reduce()
}

func dotKGeneric(a []E, k []uint64) E {
	var p product
	for i := range a {
		p.addProductBase(&a[i], k[i])
	}
	return p.reduce()
}

func scaleGeneric(out, a []E, by *E) {
	for i := range a {
		out[i] = mulGeneric(&a[i], by)
	}
}

// squareNGeneric squares n times. Squaring is linear: (a0 + a1 y + a2 y^2)^2 = a0^2 + a1^2 y^2 + a2^2 (y^2 + y).
func squareNGeneric(a *E, n int) E {
	c := *a
	for range n {
		s1, s2 := squareBase(c.C1), squareBase(c.C2)
		c = E{squareBase(c.C0), s2, s1 ^ s2}
	}
	return c
}

// squareBase returns k^2: its bits spread to the even places, reduced.
func squareBase(k uint64) uint64 {
	return wide{spreadHalf(uint32(k)), spreadHalf(uint32(k >> 32))}.reduce()
}

// spreadHalf moves bit i to bit 2i.
func spreadHalf(h uint32) uint64 {
	k := uint64(h)
	k = (k | k<<16) & 0x0000ffff0000ffff
	k = (k | k<<8) & 0x00ff00ff00ff00ff
	k = (k | k<<4) & 0x0f0f0f0f0f0f0f0f
	k = (k | k<<2) & 0x3333333333333333
	return (k | k<<1) & 0x5555555555555555
}
