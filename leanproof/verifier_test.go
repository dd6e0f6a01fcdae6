package leanproof

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGenuineProofsAreAccepted(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	for _, g := range genuine {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			proof := readProof(t, g.name)
			claims, err := v.Check(t.Context(), proof)
			require.NoError(t, err)
			require.Equal(t, claimsOf(t, proof), claims)
			require.Len(t, claims.XMSS, g.xmss)
			require.Len(t, claims.SPHINCS, g.sphincs)

			err = v.Verify(t.Context(), proof, claims)
			if g.sphincs > 0 {
				require.Equal(t, OtherScheme, err)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestOtherClaimsThanTheWantedAreRefused(t *testing.T) {
	t.Parallel()
	proof := readProof(t, "eight")
	genuine := claimsOf(t, proof)
	for name, edit := range map[string]func(*Claims){
		"another key":              func(c *Claims) { c.XMSS[3].PublicKey[31] ^= 1 },
		"another message":          func(c *Claims) { c.XMSS[7].Message[0] ^= 0x80 },
		"a claim less":             func(c *Claims) { c.XMSS = c.XMSS[:7] },
		"a claim more":             func(c *Claims) { c.XMSS = append(c.XMSS, c.XMSS[7]) },
		"another order":            func(c *Claims) { c.XMSS[0], c.XMSS[1] = c.XMSS[1], c.XMSS[0] },
		"none":                     func(c *Claims) { c.XMSS = nil },
		"one of the other scheme":  func(c *Claims) { c.SPHINCS = c.XMSS[:1] },
		"all of the other scheme":  func(c *Claims) { c.XMSS, c.SPHINCS = nil, c.XMSS },
		"the list in both schemes": func(c *Claims) { c.SPHINCS = c.XMSS },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := Claims{XMSS: slices.Clone(genuine.XMSS)}
			edit(&want)
			require.Equal(t, ClaimMismatch, Verify(proof, want))
		})
	}
	require.NoError(t, Verify(proof, genuine))
}

func TestABatchHasAVerdictForEachProof(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	var (
		items []Item
		want  []error
	)
	for round := range 4 {
		for _, g := range genuine {
			proof := readProof(t, g.name)
			item := Item{Proof: proof, Want: claimsOf(t, proof)}
			var err error
			switch {
			case g.sphincs > 0:
				err = OtherScheme
			case round == 1:
				item.Proof[len(item.Proof)-1] ^= 1
				err = MerkleRoot
			case round == 2:
				item.Proof = item.Proof[:len(item.Proof)-1]
				err = Encoding
			}
			items, want = append(items, item), append(want, err)
		}
	}
	require.Greater(t, len(items), 2*maxBatch)
	require.Equal(t, want, v.VerifyBatch(t.Context(), items))
	require.Empty(t, v.VerifyBatch(t.Context(), nil))
}

func TestChecksRunConcurrently(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	good, bad := readProof(t, "two"), readProof(t, "kids2")
	goodClaims, badClaims := claimsOf(t, good), claimsOf(t, bad)
	bad[len(bad)/2] ^= 1
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				if err := v.Verify(t.Context(), good, goodClaims); err != nil {
					t.Error(err)
				}
				if err := v.Verify(t.Context(), bad, badClaims); err == nil {
					t.Error("accepted")
				}
			}
		})
	}
	wg.Wait()
}

// cancelAfter is a context that ends after it was looked at some times.
type cancelAfter struct {
	context.Context
	looks *int
}

func (c cancelAfter) Err() error {
	*c.looks--
	if *c.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestACheckEndsBetweenStagesWithItsContext(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	proof := readProof(t, "kids2")
	want := claimsOf(t, proof)
	ended := 0
	for looks := 0; ; looks++ {
		left := looks
		err := v.Verify(cancelAfter{t.Context(), &left}, proof, want)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		ended++
	}
	require.Equal(t, len(transcriptStages)+2, ended, "before each stage and before both evaluations")
}

func TestAnEndedContextIsTheErrorOfEveryItem(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	proof := readProof(t, "two")
	for _, err := range newVerifier(t).VerifyBatch(ctx, []Item{{proof, claimsOf(t, proof)}, {proof, claimsOf(t, proof)}}) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestTimesAddUpOverAllStages(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	times, err := v.Time(t.Context(), readProof(t, "kids2"))
	require.NoError(t, err)
	for s := StageDecode; s < stages; s++ {
		require.Positive(t, times[s], s.String())
	}
	_, err = v.Time(t.Context(), nil)
	require.Equal(t, Encoding, err)
}

func TestAVerifierSaysWhoseProofsItAccepts(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	require.Contains(t, v.Prover(), "0.7.0")
	require.Equal(t, byte(0xd1), v.Seed()[0])
	require.NotEmpty(t, Path())
}
