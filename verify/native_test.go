package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof"
	"aggnode/prover"
)

func newNative(t testing.TB) *Native {
	t.Helper()
	n, err := NewNative(t.Context(), nil, nil)
	require.NoError(t, err)
	return n
}

// genuine is a proof of lean-pq and the claim that it makes of one message.
func genuine(t testing.TB, name string) (prover.Claim, []byte) {
	t.Helper()
	proof, err := os.ReadFile(filepath.Join("..", "leanproof", "testdata", "proofs", name+".bin"))
	require.NoError(t, err)
	listed, err := leanproof.ParseClaims(proof)
	require.NoError(t, err)
	claim := prover.Claim{Epoch: 7}
	for _, c := range append(listed.XMSS, listed.SPHINCS...) {
		claim.Message = c.Message
		claim.SignerSet = append(claim.SignerSet, c.PublicKey[:]...)
	}
	return claim, proof
}

func TestNativeAnswersLikeAChild(t *testing.T) {
	t.Parallel()
	n := newNative(t)
	for _, c := range []struct {
		name, proof string
		change      func(claim *prover.Claim, proof *[]byte)
		want        error
	}{
		{"a genuine proof", "eight", nil, nil},
		{"a genuine proof with children", "kids2", nil, nil},
		{"one signature", "raw1", nil, nil},
		{"a changed bit", "eight", func(_ *prover.Claim, p *[]byte) { (*p)[len(*p)/2] ^= 1 }, prover.ErrBadProof},
		{"cut", "eight", func(_ *prover.Claim, p *[]byte) { *p = (*p)[:len(*p)-1] }, prover.ErrBadProof},
		{"nothing", "eight", func(_ *prover.Claim, p *[]byte) { *p = nil }, prover.ErrBadProof},
		{"another message", "eight", func(c *prover.Claim, _ *[]byte) { c.Message[0] ^= 1 }, prover.ErrClaimMismatch},
		{"a signer less", "eight", func(c *prover.Claim, _ *[]byte) { c.SignerSet = c.SignerSet[32:] }, prover.ErrClaimMismatch},
		{"a cut signer set", "eight", func(c *prover.Claim, _ *[]byte) { c.SignerSet = c.SignerSet[:len(c.SignerSet)-1] }, prover.ErrClaimMismatch},
		{"signers beyond the proof's and a byte", "eight", func(c *prover.Claim, _ *[]byte) { c.SignerSet = append(c.SignerSet, 0) }, prover.ErrClaimMismatch},
		{"no signers", "eight", func(c *prover.Claim, _ *[]byte) { c.SignerSet = nil }, prover.ErrClaimMismatch},
		{"a claim of another scheme", "sph1", nil, prover.ErrClaimMismatch},
		{"claims of both schemes", "sph", nil, prover.ErrClaimMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claim, proof := genuine(t, c.proof)
			if c.change != nil {
				c.change(&claim, &proof)
			}
			before := slices.Clone(proof)
			err := n.Verify(t.Context(), claim, proof)
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
				require.NotErrorIs(t, err, prover.ErrUnavailable, "it is about the bytes")
			}
			require.Equal(t, before, proof)
		})
	}
}

func TestABatchAnswersEachProofAsItsOwnCheckDoes(t *testing.T) {
	t.Parallel()
	n := newNative(t)
	var checks []ProofCheck
	for _, name := range []string{"two", "eight", "kids2", "sph1", "raw1"} {
		claim, proof := genuine(t, name)
		checks = append(checks, ProofCheck{claim, proof})
	}
	checks[1].Proof[len(checks[1].Proof)/2] ^= 1
	checks[4].Claim.SignerSet = checks[4].Claim.SignerSet[1:]
	v, errs := n.CheckBatch(t.Context(), checks)
	require.Positive(t, v.Wall)
	for i, c := range checks {
		require.Equal(t, n.Verify(t.Context(), c.Claim, c.Proof), errs[i])
	}
	require.Equal(t, []bool{true, false, true, false, false}, []bool{errs[0] == nil, errs[1] == nil, errs[2] == nil, errs[3] == nil, errs[4] == nil})
}

func TestACheckThatIsEndedIsNoVerdict(t *testing.T) {
	t.Parallel()
	n := newNative(t)
	claim, proof := genuine(t, "two")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := n.Verify(ctx, claim, proof)
	require.ErrorIs(t, err, prover.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, isVerdict(err))

	_, err = NewNative(ctx, nil, nil)
	require.ErrorIs(t, err, context.Canceled, "a self-test that was not made is not passed")
}

func TestTheCostOfANativeCheckIsThatOfItsThread(t *testing.T) {
	t.Parallel()
	var used time.Duration
	n, err := NewNative(t.Context(), nil, func() time.Duration { used += 3 * time.Millisecond; return used })
	require.NoError(t, err)
	claim, proof := genuine(t, "two")
	v, err := n.Check(t.Context(), claim, proof)
	require.NoError(t, err)
	require.Equal(t, 3*time.Millisecond, v.CPU)
	require.Positive(t, v.Wall)
}

func TestANativeCheckRunsWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	claim, proof := genuine(t, "two")
	calls, full := 0, errors.New("no room")
	var refuse error
	n, err := NewNative(t.Context(), func(_ context.Context, work func()) error {
		calls++
		if refuse == nil {
			work()
		}
		return refuse
	}, nil)
	require.NoError(t, err)
	require.NoError(t, n.Verify(t.Context(), claim, proof))
	_, errs := n.CheckBatch(t.Context(), []ProofCheck{{Claim: claim, Proof: proof}, {Claim: claim, Proof: nil}})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], prover.ErrBadProof)
	require.Equal(t, 2, calls)

	refuse = full
	_, errs = n.CheckBatch(t.Context(), []ProofCheck{{Claim: claim, Proof: proof}, {Claim: claim, Proof: nil}})
	for _, err := range append(errs, n.Verify(t.Context(), claim, proof)) {
		require.ErrorIs(t, err, prover.ErrUnavailable, "what was not checked has no verdict")
		require.ErrorIs(t, err, full)
	}
}

func TestOnlyOneVersionOfTheProverIsKnown(t *testing.T) {
	t.Parallel()
	n := newNative(t)
	require.True(t, n.Knows("py_lean_pq "+prover.LeanPQVersion), "what the installed child says at hello")
	require.False(t, n.Knows("py_lean_pq 0.8.0"))
	require.False(t, n.Knows(""))
}
