package verify

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/wire"
)

// sharingFake answers by the first byte of a proof, and counts the batches that it is asked.
type sharingFake struct {
	fakeChecker
	batches []int
}

func answerByFirstByte(_ context.Context, _ prover.Claim, proof []byte) error {
	switch proof[0] {
	case 'b':
		return prover.ErrBadProof
	case 'c':
		return prover.ErrClaimMismatch
	case 'u':
		return prover.ErrUnavailable
	}
	return nil
}

func (c *sharingFake) VerifyBatch(ctx context.Context, checks []ProofCheck) []error {
	c.batches = append(c.batches, len(checks))
	errs := make([]error, len(checks))
	for i, check := range checks {
		errs[i] = answerByFirstByte(ctx, check.Claim, check.Proof)
	}
	return errs
}

func TestABatchOfAggregatesHasAReasonForEach(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	for name, checker := range map[string]proofChecker{
		"sharing":     &sharingFake{},
		"not sharing": &fakeChecker{answer: answerByFirstByte},
	} {
		r := f.rig(t, checker)
		var batch []*wire.SignedAggregate
		var want []wire.Reason
		add := func(first byte, reason wire.Reason, participants ...wire.ValidatorIndex) {
			a := f.aggregate(t, participants...)
			a.Proof = append([]byte{first}, bytes.Repeat([]byte{1}, 100)...)
			batch, want = append(batch, a), append(want, reason)
		}
		add('a', wire.ReasonNone, 0, 1)
		add('a', wire.ReasonUnknownValidator, 0, 1000)
		add('b', wire.ReasonBadProof, 1, 2)
		add('a', wire.ReasonNone, 0, 1) // the same signer set again
		add('u', wire.ReasonVerifierUnavailable, 0, 2)
		add('c', wire.ReasonClaimMismatch, 0, 3)
		out := make([]wire.Reason, len(batch)+1)
		r.Aggregates(t.Context(), batch, out)
		require.Equal(t, append(want, 0), out, name)
		require.Equal(t, 1, r.cache.Stats().SignerSets, "that of what was valid alone")
		for reason, count := range map[wire.Reason]float64{wire.ReasonNone: 2, wire.ReasonBadProof: 1, wire.ReasonUnknownValidator: 1} {
			require.InDelta(t, count, testutil.ToFloat64(r.Verifier.metrics.aggregate[reason]), 0, fmt.Sprint(name, reason))
		}
		if s, ok := checker.(*sharingFake); ok {
			require.Equal(t, []int{5}, s.batches, "asked once, without what does not get that far")
			require.Zero(t, s.calls)

			r.Aggregates(t.Context(), batch[1:2], out)
			require.Equal(t, wire.ReasonUnknownValidator, out[0])
			r.Aggregates(t.Context(), batch[:1], out)
			require.Equal(t, 1, s.calls, "one alone is no batch")
			s.batches = nil
			r.Aggregates(t.Context(), []*wire.SignedAggregate{batch[1], batch[1]}, out)
			require.Empty(t, s.batches, "nothing to ask")
		}
	}
}

func TestABatchIsNotCheckedAfterItsTime(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	c := &sharingFake{}
	r := f.rig(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := make([]wire.Reason, 2)
	r.Aggregates(ctx, []*wire.SignedAggregate{f.aggregate(t, 0, 1), f.aggregate(t, 1, 2)}, out)
	require.Equal(t, []wire.Reason{wire.ReasonStopping, wire.ReasonStopping}, out)
	require.Empty(t, c.batches)
}
