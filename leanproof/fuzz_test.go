package leanproof

import (
	"bytes"
	"testing"
)

// Nothing but the genuine proofs is accepted, and nothing panics.
func FuzzCheck(f *testing.F) {
	v := newVerifier(f)
	known := map[string]bool{}
	for _, g := range genuine {
		proof := readProof(f, g.name)
		known[string(proof)] = true
		f.Add(proof)
	}
	f.Fuzz(func(t *testing.T, proof []byte) {
		claims, err := v.Check(t.Context(), proof)
		if err == nil && !known[string(proof)] {
			t.Fatalf("accepted with %d claims", len(claims.XMSS)+len(claims.SPHINCS))
		}
	})
}

// What decodes is what its parts encode to.
func FuzzDecode(f *testing.F) {
	f.Add(readProof(f, "two"))
	for _, garbage := range garbageProofs(f) {
		if len(garbage) < 1<<14 {
			f.Add(garbage)
		}
	}
	f.Fuzz(func(t *testing.T, proof []byte) {
		var p parts
		if p.decode(proof) != nil {
			return
		}
		if !bytes.Equal(newDraft(t, proof).encode(), proof) {
			t.Fatal("the parts do not make up the proof")
		}
		var s sizes
		_ = s.checkSizes(&p)
	})
}
