package leanproof

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkVerify(b *testing.B) {
	v := newVerifier(b)
	for _, g := range genuine {
		proof := readProof(b, g.name)
		b.Run(g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Check(b.Context(), proof); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/proof")
		})
	}
}

func BenchmarkVerifyBatch(b *testing.B) {
	v := newVerifier(b)
	for _, name := range []string{"eight", "kids2"} {
		proof := readProof(b, name)
		items := make([]Item, 8)
		for i := range items {
			items[i] = Item{Proof: proof, Want: claimsOf(b, proof)}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range v.VerifyBatch(b.Context(), items) {
					require.NoError(b, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(items)), "us/proof")
		})
	}
}
