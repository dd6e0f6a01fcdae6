package leanproof

import "aggnode/leanproof/internal/gf"

// affine is at0 + slope * t, in an unknown t that is known later: the value of the guest's table.
type affine struct{ at0, slope gf.E }

func (a affine) add(b affine) affine { return affine{gf.Add(a.at0, b.at0), gf.Add(a.slope, b.slope)} }

func (a affine) scale(by gf.E) affine { return affine{gf.Mul(a.at0, by), gf.Mul(a.slope, by)} }

func (a affine) at(t gf.E) gf.E { return gf.Add(a.at0, gf.Mul(a.slope, t)) }

// horner is the polynomial with coefficients p, constant first, at x.
func horner(p []gf.E, x gf.E) gf.E {
	var v gf.E
	for i := len(p) - 1; i >= 0; i-- {
		v = gf.Add(gf.Mul(v, x), p[i])
	}
	return v
}

// fold is the multilinear polynomial with the values v on the cube, low bit first, at point. It overwrites v, which has
// 2^len(point) elements.
func fold(v, point []gf.E) gf.E {
	for _, r := range point {
		half := len(v) / 2
		for i := range half {
			v[i] = gf.Add(v[2*i], gf.Mul(r, gf.Add(v[2*i], v[2*i+1])))
		}
		v = v[:half]
	}
	return v[0]
}

// complement is 1 + a.
func complement(a gf.E) gf.E { return gf.AddBase(a, 1) }

// selector is the eq polynomial between the bits of n, low bit first, and point: 1 where point spells n.
func selector(n uint64, point []gf.E) gf.E {
	r := gf.One
	for i, z := range point {
		if n>>i&1 == 0 {
			z = complement(z)
		}
		r = gf.Mul(r, z)
	}
	return r
}

// placements gives each of the lengths 2^logs[i] its offset, the longest first and equal ones in order, so that every range is
// aligned to its length. offsets is as long as logs.
func placements(logs []int, offsets []uint64) {
	var at uint64
	for l := maxCommittedLog; l >= 0; l-- {
		for i, have := range logs {
			if have == l {
				offsets[i] = at
				at += 1 << l
			}
		}
	}
}
