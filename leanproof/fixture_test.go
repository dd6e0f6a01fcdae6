package leanproof

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// genuine are the proofs of testdata/proofs, with the numbers of claims they make.
var genuine = []struct {
	name          string
	xmss, sphincs int
}{
	{"raw1", 1, 0},
	{"agg1", 1, 0},
	{"two", 2, 0},
	{"eight", 8, 0},
	{"raw32", 32, 0},
	{"raw64", 64, 0},
	{"kids2", 8, 0},
	{"kids", 8, 0},
	{"rec4", 16, 0},
	{"sph1", 0, 1},
	{"sph", 2, 1},
}

func readProof(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "proofs", name+".bin"))
	require.NoError(t, err)
	return b
}

func newVerifier(t testing.TB) *Verifier {
	t.Helper()
	v, err := New()
	require.NoError(t, err)
	return v
}

func claimsOf(t testing.TB, proof []byte) Claims {
	t.Helper()
	c, err := ParseClaims(proof)
	require.NoError(t, err)
	return c
}

// cases is the number of random alterations that a run tries, LEANPROOF_CASES or a few.
func cases() int {
	if n, err := strconv.Atoi(os.Getenv("LEANPROOF_CASES")); err == nil {
		return n
	}
	return 120
}

// thorough reports whether tests run in their long form: every layer, every code, every byte. A run with a number of cases
// does.
func thorough() bool { return os.Getenv("LEANPROOF_CASES") != "" }

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
