package verify

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/prover"
)

// scriptedJudge answers what it is told to, after a time.
type scriptedJudge struct {
	answer atomic.Pointer[error]
	takes  time.Duration
	asked  atomic.Int64
}

func says(err error) *scriptedJudge {
	j := &scriptedJudge{}
	j.answer.Store(&err)
	return j
}

func (j *scriptedJudge) Check(ctx context.Context, _ prover.Claim, _ []byte) (prover.Verdict, error) {
	j.asked.Add(1)
	timer := time.NewTimer(j.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return prover.Verdict{Wall: max(j.takes, 1)}, *j.answer.Load()
	case <-ctx.Done():
		return prover.Verdict{}, fmt.Errorf("%w: %w", prover.ErrUnavailable, ctx.Err())
	}
}

func (j *scriptedJudge) CheckBatch(ctx context.Context, checks []ProofCheck) (total prover.Verdict, errs []error) {
	for _, c := range checks {
		v, err := j.Check(ctx, c.Claim, c.Proof)
		total.Wall, errs = total.Wall+v.Wall, append(errs, err)
	}
	return total, errs
}

func TestABatchIsComparedProofByProof(t *testing.T) {
	t.Parallel()
	checks := make([]ProofCheck, 4)
	child := says(nil)
	a := newArbiter(ArbiterConfig{Compare: true}, says(nil), child)
	_, errs := a.CheckBatch(t.Context(), checks)
	require.Equal(t, make([]error, 4), errs)
	require.EqualValues(t, 1, child.asked.Load(), "the first alone")
	for range compareEvery / len(checks) {
		_, errs = a.CheckBatch(t.Context(), checks)
		require.Equal(t, make([]error, 4), errs)
	}
	require.Len(t, a.held, 1, "and one in 64")

	liar := says(prover.ErrBadProof)
	a = newArbiter(ArbiterConfig{Compare: true}, says(nil), liar)
	for range 2 {
		v, errs := a.CheckBatch(t.Context(), checks)
		require.Len(t, errs, 4)
		for _, err := range errs {
			require.ErrorIs(t, err, prover.ErrBadProof, "the child is believed from the first disagreement on")
		}
		require.Positive(t, v.Wall)
	}
	require.EqualValues(t, 8, liar.asked.Load())
}

func TestAgreementAndDisagreement(t *testing.T) {
	t.Parallel()
	gone := fmt.Errorf("%w: %w", prover.ErrUnavailable, prover.ErrSchemeMismatch)
	for _, c := range []struct {
		name          string
		native, child error
		disagree      bool
	}{
		{name: "both accept"},
		{name: "both refuse, each its own way", native: prover.ErrClaimMismatch, child: &prover.RefusedError{Code: prover.CodeInvalidProof}},
		{name: "native accepts", child: prover.ErrBadProof, disagree: true},
		{name: "the child accepts", native: prover.ErrBadProof, disagree: true},
		{name: "the child has other claims", child: prover.ErrClaimMismatch, disagree: true},
		{name: "the child gives no answer", native: prover.ErrBadProof, child: gone},
		{name: "the child has another fault", child: &prover.RefusedError{Code: prover.CodeMemory}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			registry := prometheus.NewRegistry()
			child := says(c.child)
			a := newArbiter(ArbiterConfig{Compare: true, Logger: slog.New(slog.NewTextHandler(&log, nil)), Registerer: registry}, says(c.native), child)
			_, err := a.Check(t.Context(), prover.Claim{}, nil)
			want := c.native
			if c.disagree {
				want = c.child
			}
			require.Equal(t, want, err, "a disagreement is answered as the child does")
			require.Equal(t, c.disagree, !a.IsNative())
			require.Equal(t, c.disagree, strings.Contains(log.String(), "level=ERROR"), log.String())
			count := 0.0
			if c.disagree {
				count = 1
				require.Contains(t, a.Why(), "disagreed")
				before := child.asked.Load()
				_, _ = a.Check(t.Context(), prover.Claim{}, nil)
				require.Equal(t, before+1, child.asked.Load(), "the child checks for the rest of the run")
			}
			require.InDelta(t, count, testutil.ToFloat64(a.metrics.disagreements), 0)
			require.InDelta(t, 1-count, testutil.ToFloat64(a.metrics.native), 0)
		})
	}
}

func TestTheFirstCheckWaitsForBothAndLaterOnesForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		native, child := says(nil), says(nil)
		native.takes, child.takes = 2*time.Millisecond, 20*time.Millisecond
		a := newArbiter(ArbiterConfig{Compare: true}, native, child)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		took := func() time.Duration {
			began := time.Now()
			_, err := a.Check(t.Context(), prover.Claim{}, nil)
			require.NoError(t, err)
			return time.Since(began)
		}
		require.Equal(t, 22*time.Millisecond, took())
		for range 2*compareEvery - 1 {
			require.Equal(t, 2*time.Millisecond, took())
		}
		require.EqualValues(t, 2, child.asked.Load(), "the first and one of 64")

		refusal := error(prover.ErrBadProof)
		child.answer.Store(&refusal)
		require.Equal(t, 2*time.Millisecond, took(), "the 64th again: the verdict is there before the child's")
		require.True(t, a.IsNative())
		<-a.ChildOnly()
		_, err := a.Check(t.Context(), prover.Claim{}, nil)
		require.ErrorIs(t, err, prover.ErrBadProof)
		cancel()
		require.NoError(t, <-done)
	})
}

// A child that is stuck holds up no verdict: what would be compared is left out.
func TestComparisonsThatFindNoRoomAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := says(nil)
		a := newArbiter(ArbiterConfig{Compare: true}, says(nil), child)
		_, err := a.Check(t.Context(), prover.Claim{}, nil)
		require.NoError(t, err)
		for range (heldComparisons + 3) * compareEvery {
			_, err := a.Check(t.Context(), prover.Claim{}, nil)
			require.NoError(t, err)
		}
		require.Len(t, a.held, heldComparisons)
		require.EqualValues(t, 1, child.asked.Load())
	})
}

func TestAChildTakesOverOnDemandWhereThereIsOne(t *testing.T) {
	t.Parallel()
	alone := newArbiter(ArbiterConfig{}, says(nil), nil)
	require.False(t, alone.UseChild("for no reason"))
	require.True(t, alone.IsNative())

	child := says(prover.ErrBadProof)
	a := newArbiter(ArbiterConfig{}, says(nil), child)
	_, err := a.Check(t.Context(), prover.Claim{}, nil)
	require.NoError(t, err)
	require.Zero(t, child.asked.Load(), "without Compare it is not asked")
	require.True(t, a.UseChild("unknown version"))
	require.True(t, a.UseChild("another reason"))
	require.Equal(t, "unknown version", a.Why())
	_, err = a.Check(t.Context(), prover.Claim{}, nil)
	require.ErrorIs(t, err, prover.ErrBadProof)

	fromStart := newArbiter(ArbiterConfig{Compare: true}, nil, child)
	require.False(t, fromStart.IsNative())
	require.Empty(t, fromStart.Why())
}

// A child that lies about real proofs is found out at the first of them.
func TestAChildThatLiesIsFoundOut(t *testing.T) {
	t.Parallel()
	claim, proof := genuine(t, "two")
	a := newArbiter(ArbiterConfig{Compare: true}, newNative(t), says(prover.ErrBadProof))
	_, err := a.Check(t.Context(), claim, proof)
	require.ErrorIs(t, err, prover.ErrBadProof)
	require.InDelta(t, 1, testutil.ToFloat64(a.metrics.disagreements), 0)
}
