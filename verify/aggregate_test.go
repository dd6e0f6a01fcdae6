package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/telemetry/leanmetricstest"
	"aggnode/wire"
	"aggnode/xmss"
)

func (f *fixture) aggregate(t testing.TB, indices ...wire.ValidatorIndex) *wire.SignedAggregate {
	t.Helper()
	p, err := wire.NewParticipants(indices)
	require.NoError(t, err)
	return &wire.SignedAggregate{Data: testData(510, "block"), Participants: p, Proof: bytes.Repeat([]byte{7}, 200)}
}

func TestTheCheckerGetsExactlyTheClaimOfTheAggregate(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	c := &fakeChecker{}
	r := f.rig(t, c)
	a := f.aggregate(t, 3, 0, 2)
	require.Equal(t, wire.ReasonNone, r.Aggregate(t.Context(), a))
	keys := [][]byte{f.validators[3].AttestationKey, f.validators[0].AttestationKey, f.validators[2].AttestationKey}
	slices.SortFunc(keys, bytes.Compare)
	require.Equal(t, prover.Claim{Message: a.Data.HashTreeRoot(), Epoch: 510, SignerSet: bytes.Join(keys, nil)}, c.claim)
	require.Equal(t, 1, r.cache.Stats().SignerSets)
}

func TestAnAggregateIsRefusedBeforeTheProofIsChecked(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	n := wire.ValidatorIndex(len(f.validators))
	type row struct {
		change func(*testing.T, *wire.SignedAggregate)
		want   wire.Reason
	}
	rows := map[string]row{
		"no participant": {func(_ *testing.T, a *wire.SignedAggregate) { a.Participants = wire.Participants{} }, wire.ReasonEmptyParticipants},
		"first index past the registry": {func(t *testing.T, a *wire.SignedAggregate) {
			a.Participants = f.aggregate(t, 0, n).Participants
		}, wire.ReasonUnknownValidator},
		"last index of all": {func(t *testing.T, a *wire.SignedAggregate) {
			a.Participants = f.aggregate(t, wire.MaxRegistryLimit-1).Participants
		}, wire.ReasonUnknownValidator},
		"slot 2^32":       {func(_ *testing.T, a *wire.SignedAggregate) { a.Data.Slot = 1 << 32 }, wire.ReasonEarly},
		"slot 2^64-1":     {func(_ *testing.T, a *wire.SignedAggregate) { a.Data.Slot = ^wire.Slot(0) }, wire.ReasonEarly},
		"proof too long":  {func(_ *testing.T, a *wire.SignedAggregate) { a.Proof = make([]byte, wire.MaxProofSize+1) }, wire.ReasonMalformed},
		"proof of no use": {func(_ *testing.T, a *wire.SignedAggregate) { a.Proof = nil }, wire.ReasonBadProof},
	}
	for size := range minProofSize {
		rows[fmt.Sprintf("proof of %d bytes", size)] = row{func(_ *testing.T, a *wire.SignedAggregate) { a.Proof = make([]byte, size) }, wire.ReasonBadProof}
	}
	for fault, tc := range rows {
		for _, noProofs := range []bool{false, true} {
			c := &fakeChecker{} // accepts everything that reaches it
			r := f.rig(t, c, func(cfg *Config) { cfg.NoProofs = noProofs })
			a := f.aggregate(t, 0, 1)
			tc.change(t, a)
			require.Equal(t, tc.want, r.Aggregate(t.Context(), a), "%s, no proofs: %t", fault, noProofs)
			require.Zero(t, c.calls, fault)
			require.Zero(t, r.cache.Stats().SignerSets, fault)
		}
	}
}

func TestWithoutProofsNothingIsEverValid(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	r := f.rig(t, nil, func(cfg *Config) { cfg.NoProofs = true })
	require.Equal(t, wire.ReasonUnverified, r.Aggregate(t.Context(), f.aggregate(t, 0, 1)))
	require.Zero(t, r.cache.Stats().SignerSets)
	require.Equal(t, wire.ReasonNone, r.attestation(t, f.votes[0]), "votes are verified all the same")
}

// paddedAggregate goes through the decoder with three unset bits after the highest participant.
func TestAPaddedBitlistCountsItsSetBits(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	encoded, err := f.profile.EncodeAggregate(f.aggregate(t, 0, 2)) // bits 101, delimiter at 3
	require.NoError(t, err)
	at := bytes.Index(encoded, []byte{0b1101, 7})
	require.Positive(t, at)
	encoded[at] = 0b100_0101 // delimiter at 6
	a, err := f.profile.DecodeAggregate(encoded)
	require.NoError(t, err)
	require.Equal(t, 6, a.Participants.Len(), "longer than the registry of %d", len(f.validators))
	c := &fakeChecker{}
	require.Equal(t, wire.ReasonNone, f.rig(t, c).Aggregate(t.Context(), a))
	require.Equal(t, 2, c.claim.Signers())
}

func TestErrorsOfTheCheckerBecomeReasons(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	for name, tc := range map[string]struct {
		err             error
		want            wire.Reason
		valid, invalid  float64
		checksWithTimes uint64
	}{
		"valid":                        {nil, wire.ReasonNone, 1, 0, 1},
		"bad proof":                    {fmt.Errorf("x: %w", prover.ErrBadProof), wire.ReasonBadProof, 0, 1, 1},
		"refused as no proof":          {&prover.RefusedError{Code: prover.CodeInvalidProof}, wire.ReasonBadProof, 0, 1, 1},
		"other claims":                 {prover.ErrClaimMismatch, wire.ReasonClaimMismatch, 0, 1, 1},
		"proof of another scheme":      {prover.ErrSchemeMismatch, wire.ReasonSchemeMismatch, 0, 1, 1},
		"no child":                     {prover.ErrUnavailable, wire.ReasonVerifierUnavailable, 0, 0, 0},
		"crash":                        {&prover.CrashError{Exit: 1}, wire.ReasonVerifierUnavailable, 0, 0, 0},
		"time-out":                     {fmt.Errorf("%w: %w", prover.ErrUnavailable, prover.ErrTimeout), wire.ReasonVerifierUnavailable, 0, 0, 0},
		"our child is for another one": {fmt.Errorf("%w: %w", prover.ErrUnavailable, prover.ErrSchemeMismatch), wire.ReasonVerifierUnavailable, 0, 0, 0},
		"child broke after bad proof":  {fmt.Errorf("%w: %w", prover.ErrUnavailable, prover.ErrBadProof), wire.ReasonVerifierUnavailable, 0, 0, 0},
		"refused for our own mistake":  {&prover.RefusedError{Code: prover.CodeUnsupported}, wire.ReasonVerifierUnavailable, 0, 0, 0},
		"anything else":                {errors.New("surprise"), wire.ReasonVerifierUnavailable, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := f.rig(t, &fakeChecker{answer: func(context.Context, prover.Claim, []byte) error { return tc.err }})
			require.Equal(t, tc.want, r.Aggregate(t.Context(), f.aggregate(t, 0, 1)))
			require.Equal(t, tc.valid, testutil.ToFloat64(r.Verifier.metrics.aggregatesValid))
			require.Equal(t, tc.invalid, testutil.ToFloat64(r.Verifier.metrics.aggregatesInvalid))
			require.Equal(t, float64(1), testutil.ToFloat64(r.Verifier.metrics.aggregate[tc.want]))
			require.Equal(t, int(tc.valid), r.cache.Stats().SignerSets, "stored only after a success")
			require.Equal(t, tc.checksWithTimes, histogramCount(t, r, "lean_pq_sig_aggregated_signatures_verification_time_seconds", ""))
		})
	}
}

func TestAContextThatEndsDuringTheCheckIsNotTheCheckersFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := blake2sFixture()
		c := &fakeChecker{answer: func(ctx context.Context, _ prover.Claim, _ []byte) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", prover.ErrUnavailable, ctx.Err())
		}}
		r := f.rig(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, wire.ReasonExpired, r.Aggregate(ctx, f.aggregate(t, 1)))
		require.Equal(t, wire.ReasonExpired, r.Aggregate(ctx, f.aggregate(t, 1)))
		require.Equal(t, 1, c.calls, "an item that is over before the start is not checked")
		stopping, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		require.Equal(t, wire.ReasonStopping, r.Aggregate(stopping, f.aggregate(t, 1)))
	})
}

// A good answer stands even if the item's time ran out meanwhile: the pool still wants it.
func TestAnAnswerAfterTheDeadlineCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := blake2sFixture()
		r := f.rig(t, &fakeChecker{answer: func(ctx context.Context, _ prover.Claim, _ []byte) error {
			<-ctx.Done()
			return nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, wire.ReasonNone, r.Aggregate(ctx, f.aggregate(t, 1)))
	})
}

// As many checks as there are workers are inside the checker at once, also for one and the same signer set: nothing
// here holds a lock around a check.
func TestChecksRunSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := blake2sFixture()
		const workers = 16
		var inside sync.WaitGroup
		inside.Add(workers)
		r := f.rig(t, &fakeChecker{answer: func(context.Context, prover.Claim, []byte) error {
			inside.Done()
			inside.Wait() // for all of them
			return nil
		}})
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				if reason := r.Aggregate(t.Context(), f.aggregate(t, wire.ValidatorIndex(i%2))); reason != wire.ReasonNone {
					t.Error(reason)
				}
			})
		}
		wg.Wait()
	})
}

func TestVotesAndAggregatesConcurrently(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	r := f.rig(t, &fakeChecker{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			out := make([]wire.Reason, len(f.votes))
			for range 5 {
				r.Attestations(t.Context(), f.votes, out)
				for _, reason := range out {
					if reason != wire.ReasonNone {
						t.Error(reason)
					}
				}
				if reason := r.Aggregate(t.Context(), f.aggregate(t, wire.ValidatorIndex(w%4))); reason != wire.ReasonNone {
					t.Error(reason)
				}
				if reason := r.Block(t.Context(), f.block); reason != wire.ReasonNone {
					t.Error(reason)
				}
			}
		})
	}
	wg.Wait()
}

func histogramCount(t testing.TB, r *rig, name, label string) uint64 {
	t.Helper()
	families, err := r.metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || m.GetLabel()[0].GetValue() == label {
				return m.GetHistogram().GetSampleCount()
			}
		}
	}
	t.Fatalf("no histogram %s %s", name, label)
	return 0
}

func TestCheckTimesAreSplitByTheProversState(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	busy := false
	r := f.rig(t, &fakeChecker{}, func(cfg *Config) { cfg.ProverBusy = func() bool { return busy } })
	for range 3 {
		require.Equal(t, wire.ReasonNone, r.Aggregate(t.Context(), f.aggregate(t, 0, 1)))
		busy = true
	}
	require.EqualValues(t, 1, histogramCount(t, r, "aggnode_aggregate_check_seconds", "idle"))
	require.EqualValues(t, 2, histogramCount(t, r, "aggnode_aggregate_check_seconds", "busy"))
	require.EqualValues(t, 3, histogramCount(t, r, "lean_pq_sig_aggregated_signatures_verification_time_seconds", ""))
}

func TestTheMetricsAreThoseOfTheSharedList(t *testing.T) {
	t.Parallel()
	r := blake2sFixture().rig(t, &fakeChecker{})
	problems, err := testutil.GatherAndLint(r.metrics)
	require.NoError(t, err)
	require.Empty(t, problems)

	list, err := os.ReadFile("../telemetry/testdata/leanmetrics.tsv")
	require.NoError(t, err)
	lines := strings.Split(string(list), "\n")
	ours := lines[:1]
	for _, line := range lines[1:] {
		name, _, _ := strings.Cut(line, "\t")
		switch name {
		case "lean_pq_sig_attestation_signatures_valid_total", "lean_pq_sig_attestation_signatures_invalid_total",
			"lean_pq_sig_attestation_verification_time_seconds", "lean_pq_sig_aggregated_signatures_valid_total",
			"lean_pq_sig_aggregated_signatures_invalid_total", "lean_pq_sig_aggregated_signatures_verification_time_seconds":
			ours = append(ours, line)
		}
	}
	require.Len(t, ours, 7)
	require.Empty(t, leanmetricstest.CheckLeanMetrics(r.metrics, strings.Join(ours, "\n")))
}

// Times of 50 ms to 12 s, as a slow machine has them, stay out of the overflow bucket.
func TestTheFineHistogramHoldsTheTail(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, proofBuckets[len(proofBuckets)-1], 12.0)
	for name, buckets := range map[string][]float64{"proof": proofBuckets, "signature": signatureBuckets} {
		require.True(t, slices.IsSorted(buckets), name)
		require.Len(t, slices.Compact(slices.Clone(buckets)), len(buckets), name)
	}
}

func TestWarningsComeOnceAMinuteAndSayHowOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := blake2sFixture()
		answer := error(prover.ErrSchemeMismatch)
		r := f.rig(t, &fakeChecker{answer: func(context.Context, prover.Claim, []byte) error { return answer }}, func(cfg *Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		check := func(n int) {
			for range n {
				r.Aggregate(t.Context(), f.aggregate(t, 0))
			}
		}
		check(100)
		require.Equal(t, 1, strings.Count(log.String(), "peers use another signature scheme"))
		time.Sleep(noticePeriod)
		check(1)
		require.Equal(t, 2, strings.Count(log.String(), "peers use another signature scheme"))
		require.Contains(t, log.String(), "events=100")
		answer = prover.ErrUnavailable
		check(50)
		require.Equal(t, 1, strings.Count(log.String(), "aggregates not checked"))
	})
}

func TestAnAggregateHasOneSpan(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("verify")
	r := f.rig(t, &fakeChecker{answer: func(context.Context, prover.Claim, []byte) error { return prover.ErrBadProof }},
		func(cfg *Config) { cfg.Tracer = tracer })
	r.Aggregate(t.Context(), f.aggregate(t, 0, 1))
	r.attestation(t, f.votes[0])
	require.Len(t, spans.Ended(), 1)
	require.Equal(t, "verify.aggregate", spans.Ended()[0].Name())
	require.Equal(t, "bad_proof", spans.Ended()[0].Status().Description)
}

func TestPartsThatDoNotFitTogetherAreRefused(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	reg, err := pubkeycache.NewRegistry(xmss.Blake2s, f.validators)
	require.NoError(t, err)
	cache, err := pubkeycache.New(pubkeycache.Config{}, reg, nil)
	require.NoError(t, err)
	keccak, err := wire.LookupProfile("lean-pq", "")
	require.NoError(t, err)
	odd := *f.profile
	odd.SignatureSize = 424
	for want, tc := range map[string]struct {
		cfg     Config
		reg     *pubkeycache.Registry
		cache   *pubkeycache.Cache
		checker proofChecker
	}{
		"no profile":           {Config{}, reg, cache, &fakeChecker{}},
		"no registry or cache": {Config{Profile: f.profile}, nil, nil, &fakeChecker{}},
		"no proof checker":     {Config{Profile: f.profile}, reg, cache, nil},
		"profile lean-pq has scheme keccak, the registry blake2s":           {Config{Profile: keccak}, reg, cache, &fakeChecker{}},
		"profile local has signatures of 424 bytes, scheme blake2s of 1208": {Config{Profile: &odd}, reg, cache, &fakeChecker{}},
	} {
		_, err := New(tc.cfg, tc.reg, tc.cache, tc.checker)
		require.ErrorContains(t, err, want)
	}
}
