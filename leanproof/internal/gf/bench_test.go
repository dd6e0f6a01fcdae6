package gf_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aggnode/leanproof/internal/gf"
)

// perProduct reports the time of one of n operations in each iteration.
func perProduct(b *testing.B, n int, unit string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/"+unit)
}

func BenchmarkMul(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 192))
	x, y := randomE(r), randomE(r)
	const n = 100
	b.Run("chain", func(b *testing.B) {
		for b.Loop() {
			for range n {
				x = gf.Add(gf.Mul(x, y), y)
			}
		}
		perProduct(b, n, "product")
	})
	b.Run("independent", func(b *testing.B) {
		var s gf.E
		for b.Loop() {
			for range n {
				s = gf.Add(s, gf.Mul(x, y))
			}
		}
		perProduct(b, n, "product")
	})
	b.Run("portable", func(b *testing.B) {
		defer gf.SetPath(gf.PathGeneric)()
		for b.Loop() {
			for range n {
				x = gf.Add(gf.Mul(x, y), y)
			}
		}
		perProduct(b, n, "product")
	})
}

func BenchmarkVectors(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 192))
	const n = 1024
	x, y, k := sample(r, n), sample(r, n), make([]uint64, n)
	var planes gf.Planes
	for i := range planes {
		planes[i] = make([]uint64, n)
	}
	for i := range k {
		k[i] = r.Uint64()
		planes[0][i], planes[1][i], planes[2][i] = x[i].C0, x[i].C1, x[i].C2
	}
	columns := slices.Concat(k, k, k, k)
	point := sample(r, 10)
	for _, c := range []struct {
		name string
		n    int
		run  func()
	}{
		{"Dot", n, func() { gf.Dot(x, y) }},
		{"DotK", n, func() { gf.DotK(x, k) }},
		{"DotColumns", 4 * n, func() { gf.DotColumns(y[:4], &planes, columns) }},
		{"Scale", n, func() { gf.Scale(y, x, x[1]) }},
		{"EqTable", n, func() { gf.EqTable(point, y) }},
		{"SquareN", n, func() { gf.SquareN(x[1], n) }},
	} {
		for p := gf.PathGeneric; p <= gf.Current(); p++ {
			b.Run(c.name+"/"+p.String(), func(b *testing.B) {
				defer gf.SetPath(p)()
				for b.Loop() {
					c.run()
				}
				perProduct(b, c.n, "element")
			})
		}
	}
}
