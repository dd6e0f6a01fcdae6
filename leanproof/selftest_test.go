package leanproof

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
)

func TestSelfTestPasses(t *testing.T) {
	t.Parallel()
	before := slices.Clone(genuineProof)
	require.NoError(t, newVerifier(t).SelfTest(t.Context()))
	require.Equal(t, before, genuineProof)
}

func TestSelfTestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newVerifier(t).SelfTest(ctx), context.Canceled)
}

func TestSelfTestFindsAVerifierThatDoesNotWork(t *testing.T) {
	t.Parallel()
	t.Run("one of another prover refuses the genuine proof", func(t *testing.T) {
		t.Parallel()
		v := newVerifier(t)
		v.seed[0] ^= 1
		require.ErrorIs(t, v.SelfTest(t.Context()), ErrSelfTest)
	})
	t.Run("one without checks accepts an edit", func(t *testing.T) {
		t.Parallel()
		v := newVerifier(t)
		v.scratch.New = func() any { return &check{audit: func(Refusal, gf.E) bool { return true }} }
		require.ErrorIs(t, v.SelfTest(t.Context()), ErrSelfTest)
	})
}
