package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof"
	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/verify"
	"aggnode/wire"
)

// provedFiles are genuine proofs as the comparison takes them.
func provedFiles(t *testing.T) []provedJob {
	t.Helper()
	var out []provedJob
	for name, size := range map[string]jobSize{"eight": {8, 0}, "kids2": {0, 2}} {
		proof, err := os.ReadFile(filepath.Join("..", "leanproof", "testdata", "proofs", name+".bin"))
		require.NoError(t, err)
		claims, err := leanproof.ParseClaims(proof)
		require.NoError(t, err)
		p := provedJob{size: size, proof: proof, claim: prover.Claim{Message: claims.XMSS[0].Message}}
		for _, c := range claims.XMSS {
			p.claim.SignerSet = append(p.claim.SignerSet, c.PublicKey[:]...)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b provedJob) int { return b.size.raw - a.size.raw })
	return out
}

// slowChild answers after 1 ms that what it is asked about holds.
type slowChild struct{ err error }

func (c slowChild) Check(ctx context.Context, _ prover.Claim, _ []byte) (prover.Verdict, error) {
	return prover.Verdict{Wall: time.Millisecond / 2}, errors.Join(c.err, after(ctx, time.Millisecond))
}

func TestChecksAreComparedProofByProof(t *testing.T) {
	r, err := newCheckRig(t.Context(), slowChild{}, provedFiles(t))
	require.NoError(t, err)
	require.NoError(t, r.run(t.Context(), 0, nil))
	report := r.report("fake 1")
	require.Equal(t, fewestCheckRounds, report.Rounds)
	require.Equal(t, "raw 8", report.Name)
	require.Len(t, report.Cases, 2)
	require.Equal(t, "children 2", report.Cases[1].Name)
	for _, c := range append(report.Cases, report.CheckCase) {
		require.GreaterOrEqual(t, c.ChildMS, 1.0)
		require.InDelta(t, 0.5, c.ChildInsideMS, 0)
		require.Positive(t, c.NativeMS)
		require.Positive(t, c.BatchMS)
		require.Positive(t, c.Speedup)
		require.Positive(t, c.StageUS["table"])
		require.Positive(t, c.StageUS["opening"])
		require.NotEmpty(t, c.Path)
	}
	require.NoError(t, report.Print(io.Discard))

	b, err := json.Marshal(report)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(b, &fields))
	for _, name := range strings.Fields("child_ms_p50 native_ms_p50 native_batch8_ms speedup stage_us allocs rss_mib path cases") {
		require.Contains(t, fields, name)
	}
}

func TestAComparisonOfProofsThatAreRefusedEnds(t *testing.T) {
	t.Parallel()
	_, err := newCheckRig(t.Context(), slowChild{err: prover.ErrBadProof}, provedFiles(t))
	require.ErrorIs(t, err, prover.ErrBadProof)
	require.ErrorContains(t, err, "raw 8 in the child")

	altered := provedFiles(t)
	altered[1].proof[len(altered[1].proof)-1] ^= 1
	_, err = newCheckRig(t.Context(), slowChild{}, altered)
	require.ErrorIs(t, err, leanproof.MerkleRoot)
	require.ErrorContains(t, err, "children 2 natively")

	_, err = Check(t.Context(), CheckConfig{})
	require.Error(t, err)
	_, err = Check(t.Context(), CheckConfig{Command: []string{"x"}, Length: -1})
	require.Error(t, err)
}

func TestCheckWithRealProofs(t *testing.T) {
	command, environ := leanPQ(t)
	report, err := Check(t.Context(), CheckConfig{Command: command, Env: environ, Length: time.Second})
	require.NoError(t, err)
	require.Len(t, report.Cases, len(checkSizes))
	for _, c := range report.Cases {
		require.Positive(t, c.Speedup, c.Name)
	}
}

// nativeBatches has batches checked natively, as a node does.
type nativeBatches struct{ *verify.Native }

func (n nativeBatches) VerifyBatch(ctx context.Context, checks []verify.ProofCheck) []error {
	_, errs := n.CheckBatch(ctx, checks)
	return errs
}

func TestRecordedAggregatesAreVerifiedNativelyInBatches(t *testing.T) {
	t.Parallel()
	tr, err := loadTrace()
	require.NoError(t, err)
	native, err := verify.NewNative(t.Context(), nil, nil)
	require.NoError(t, err)
	cache, err := pubkeycache.New(pubkeycache.Config{}, tr.registry, nil)
	require.NoError(t, err)
	v, err := verify.New(verify.Config{Profile: tr.profile}, tr.registry, cache, nativeBatches{native})
	require.NoError(t, err)
	var batch []*wire.SignedAggregate
	for i, child := range tr.children {
		p, err := window(i)
		require.NoError(t, err)
		batch = append(batch, &wire.SignedAggregate{Data: tr.data, Participants: p, Proof: slices.Clone(child.Proof)})
	}
	batch[3].Proof[len(batch[3].Proof)/2] ^= 1
	batch[5].Proof = batch[6].Proof
	batch[7].Data.Slot++
	want := make([]wire.Reason, len(batch))
	want[3], want[5], want[7] = wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonClaimMismatch
	out := make([]wire.Reason, len(batch))
	for half := range 2 {
		from, to := half*len(batch)/2, (half+1)*len(batch)/2
		v.Aggregates(t.Context(), batch[from:to], out[from:to])
	}
	require.Equal(t, want, out)
}
