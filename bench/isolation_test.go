package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/wire"
)

// after waits in fake time.
func after(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fakeChecker takes a time that the kind of phase decides, and knows the proofs of the trace.
type fakeChecker struct {
	t     *testing.T
	trace *trace
	takes atomic.Int64 // ns
	slots chan struct{}
	fails atomic.Bool
}

func (c *fakeChecker) Check(ctx context.Context, claim prover.Claim, proof []byte) (prover.Verdict, error) {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	if !slices.ContainsFunc(c.trace.children, func(ch prover.Child) bool {
		return bytes.Equal(ch.Proof, proof) && bytes.Equal(ch.Claim.SignerSet, claim.SignerSet) && ch.Claim.Message == claim.Message && ch.Claim.Epoch == claim.Epoch
	}) {
		c.t.Error("a check of something else than the trace")
	}
	if c.fails.Load() {
		return prover.Verdict{}, prover.ErrUnavailable
	}
	takes := time.Duration(c.takes.Load())
	return prover.Verdict{Wall: takes - ms, CPU: takes - ms}, after(ctx, takes)
}

// fakeMaker proves in a fixed time.
type fakeMaker struct{ takes time.Duration }

func (m fakeMaker) Prove(ctx context.Context, _ prover.Job) (prover.Result, error) {
	return prover.Result{}, after(ctx, m.takes)
}

// fakeRig is a rig over the real pipeline and verifier, whose checks take idle, and idle times a factor while a load runs.
func fakeRig(t *testing.T, ctx context.Context, idle time.Duration) (*rig, *fakeChecker) {
	t.Helper()
	tr, err := loadTrace()
	require.NoError(t, err)
	checker := &fakeChecker{t: t, trace: tr, slots: make(chan struct{}, 1)}
	checker.takes.Store(int64(idle))
	other := &fakeChecker{t: t, trace: tr, slots: make(chan struct{}, 1)}
	other.takes.Store(int64(3 * idle))
	r, err := newRig(tr, checker, 2, new(meters))
	require.NoError(t, err)
	r.otherWay = other
	slowing := func(factor float64, l load) load {
		return func(ctx context.Context) ([]span, error) {
			checker.takes.Store(int64(factor * float64(idle)))
			defer checker.takes.Store(int64(idle))
			return l(ctx)
		}
	}
	job := tr.job(jobVotes, 0)
	r.loads = map[Kind]load{
		KindAbsent:    noLoad,
		KindBudget:    slowing(1.05, proveJobs(ctx, fakeMaker{800 * ms}, job, func(context.Context) (func(), error) { return func() {}, nil })),
		KindPlain:     slowing(1.8, proveJobs(ctx, fakeMaker{720 * ms}, job, nil)),
		KindInProcess: slowing(2.6, noLoad),
		KindOtherWay:  noLoad,
	}
	r.usage = func() usage { return usage{} }
	r.report = func(Phase) {}
	return r, checker
}

func TestIsolationInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakeRig(t, t.Context(), 16*ms)
		var reported []Phase
		r.report = func(p Phase) { reported = append(reported, p) }
		all, err := r.run(t.Context(), 2, 3*time.Second)
		require.NoError(t, err)
		report := newIsolationReport(all, machine{tier: "T0", cpuModel: "none", cores: 2, verifier: checkNative})
		require.InDelta(t, 16, report.NativeMS, 0)
		require.InDelta(t, 48, report.ChildMS, 0)
		require.InDelta(t, 0.333, report.RatioCheck, 0)
		require.InDelta(t, 1.05, report.RatioP50, 0)
		require.InDelta(t, 1.05, report.RatioP99, 0)
		require.InDelta(t, 1.8, report.RatioPlainP50, 0)
		require.InDelta(t, 2.6, report.RatioInProcessP50, 0)
		require.InDelta(t, 0.9, report.ProofsRatio, 0.01)
		require.True(t, report.Conclusive, report.Doubts())
		require.Equal(t, reported, report.Phases)
		require.Len(t, report.Phases, 10)
		for _, p := range report.Phases {
			if p.Kind == KindOtherWay {
				require.InDelta(t, 48, p.Single.P50MS, 0)
				continue // its lengths are other ones
			}
			for name, part := range map[string]Part{"single": p.Single, "burst": p.Burst} {
				where := p.Kind.String() + " " + name
				require.Zero(t, part.Drops, "%s: %v", where, part.DropReasons)
				require.Zero(t, part.Votes.Drops, where)
				require.Zero(t, part.Late, where)
				require.Zero(t, part.DispatchP99MS, where)
			}
			require.Equal(t, 44, p.Single.Checks, "20 a second for 2.2 s")
			require.Equal(t, 20, p.Burst.Checks, "two bursts in 0.8 s")
			require.Equal(t, 440, p.Single.Votes.Checks, "200 a second for 2.2 s")
			require.Equal(t, 160, p.Burst.Votes.Checks)
			require.InDelta(t, p.Single.P50MS-1, p.Single.StageMS.Check, 1, "what the child says of itself")
			require.InDelta(t, 1, p.Single.StageMS.Pipe, 1e-3, "the rest of the call")
			if p.Kind == KindAbsent {
				require.InDelta(t, 16, p.Single.MaxMS, 0)
				require.InDelta(t, 160, p.Burst.MaxMS, 0, "the last of ten waits for nine")
				require.InDelta(t, 72, p.Burst.StageMS.Queue, 0)
				require.Zero(t, p.Single.Proofs)
			}
		}
		require.NoError(t, report.Print(io.Discard))
	})
}

func TestAggregatesThatAreNotAcceptedAreDropsAndNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, checker := fakeRig(t, t.Context(), 16*ms)
		checker.fails.Store(true)
		p, err := r.phase(t.Context(), 1, KindAbsent, time.Second)
		require.NoError(t, err)
		s := p.summary()
		require.Zero(t, s.Single.Checks)
		require.Equal(t, map[string]int{wire.ReasonVerifierUnavailable.String(): s.Single.Drops}, s.Single.DropReasons)
		require.NotZero(t, s.Single.Drops)
		require.NotZero(t, s.Single.Votes.Checks)
		report := newIsolationReport([]*phase{p}, machine{})
		require.False(t, report.Conclusive)
		require.NoError(t, json.NewEncoder(io.Discard).Encode(report), "figures that are not there are zero, not NaN")
		require.NoError(t, report.WriteHTML(io.Discard))
	})
}

func TestChecksThatAreSlowerThanTheirRateAreSentLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakeRig(t, t.Context(), 70*ms)
		p, err := r.phase(t.Context(), 1, KindAbsent, 3*time.Second)
		require.NoError(t, err)
		s := p.summary().Single
		require.Equal(t, 31, s.Late, "all but the first of those that fit into 2.2 s")
		require.InDelta(t, 70, s.MaxMS, 0, "one at a time: none waits for another")
		require.Zero(t, s.Drops, s.DropReasons)
	})
}

func TestAProverThatFailsEndsTheMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakeRig(t, t.Context(), 16*ms)
		broken := errors.New("the child is gone")
		r.loads[KindBudget] = func(context.Context) ([]span, error) { return nil, broken }
		began := time.Now()
		_, err := r.run(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "round 1, prover under the budget")
		require.Less(t, time.Since(began), 2*time.Minute, "the phase was not run to its end")
	})
}

func TestCancellingEndsAMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1700*ms)
		defer cancel()
		r, _ := fakeRig(t, ctx, 16*ms)
		_, err := r.run(ctx, 5, 3*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestTheFieldsOfTheJSONAreFixed(t *testing.T) {
	t.Parallel()
	keys := func(v any) []string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(b, &fields))
		var names []string
		for n := range fields {
			names = append(names, n)
		}
		slices.Sort(names)
		return names
	}
	require.Equal(t, strings.Fields("check_child_ms_p50 check_native_ms_p50 check_native_over_child_p50 conclusive cores cpu_model phases proofs_ratio ratio_in_process_p50 ratio_p50 ratio_p99 ratio_plain_p50 real_time tier verifier votes"),
		keys(newIsolationReport(nil, machine{})))
	require.Equal(t, strings.Fields("p99_added_ms ratio_p50"), keys(VotesRatio{}))
	require.Equal(t, strings.Fields("check decode pipe queue signer_set"), keys(StageMS{}))
	require.Equal(t, strings.Fields("burst kind round single"), keys(Phase{Kind: KindPlain}))
	require.Subset(t, keys(Part{}), strings.Fields("p50_ms p90_ms p99_ms max_ms checks_per_second drops cpu_seconds gc_cpu_s proofs stage_ms votes"))
	require.Subset(t, keys(ProverResult{}), strings.Fields("threads raw children wall_ms cpu_ms peak_bytes proof_bytes"))
}

func TestThePageIsWellFormedAndNeedsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakeRig(t, t.Context(), 16*ms)
		all, err := r.run(t.Context(), 1, time.Second)
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, newIsolationReport(all, machine{tier: "T0", cpuModel: "a <b> & c", cores: 2}).WriteHTML(&b))
		page := b.String()
		require.Equal(t, 3*len(Kinds()), strings.Count(page, "<polyline"))
		require.Contains(t, page, "a &lt;b&gt; &amp; c")
		require.NotContains(t, page, "ZgotmplZ")
		for _, outside := range []string{"http://", "https://", "<script", "<link", "src=", "url("} {
			require.NotContains(t, page, outside)
		}
		d := xml.NewDecoder(strings.NewReader(strings.NewReplacer("&nbsp;", " ", `<meta charset="utf-8">`, "", `<meta name="viewport" content="width=device-width, initial-scale=1">`, "").Replace(page)))
		for err == nil {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF)
	})
}

// Not in parallel: a process has one CPU profile at a time.
func TestProfilesAreWrittenForEachPhase(t *testing.T) {
	dir := t.TempDir()
	r := &rig{profile: dir}
	stop, err := r.startProfile(2, KindPlain)
	require.NoError(t, err)
	require.NoError(t, stop())
	info, err := os.Stat(filepath.Join(dir, "round-02-plain.pprof"))
	require.NoError(t, err)
	require.Positive(t, info.Size())
	r.profile = filepath.Join(dir, "gone")
	_, err = r.startProfile(1, KindPlain)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestConfigurationsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]IsolationConfig{
		"no command":        {},
		"a negative round":  {Command: []string{"x"}, Rounds: -1},
		"a phase too short": {Command: []string{"x"}, Phase: time.Millisecond},
		"a tier of no name": {Command: []string{"x"}, Tier: "T9"},
		"a negative worker": {Command: []string{"x"}, Workers: -1},
		"nobody who checks": {Command: []string{"x"}, Verifier: "both"},
	} {
		_, err := Isolation(t.Context(), cfg)
		require.Error(t, err, name)
	}
	for name, cfg := range map[string]ProverConfig{
		"no command":     {},
		"65 signatures":  {Command: []string{"x"}, Raw: []int{65}},
		"17 children":    {Command: []string{"x"}, Children: []int{17}},
		"negative":       {Command: []string{"x"}, Threads: []int{-1}},
		"a thousand and": {Command: []string{"x"}, Repeat: 1001},
	} {
		_, err := Prover(t.Context(), cfg)
		require.Error(t, err, name)
	}
}

func TestJobsOfTheProverBench(t *testing.T) {
	t.Parallel()
	cfg := ProverConfig{Raw: []int{1, 64}, Children: []int{0, 1, 17}}
	require.Equal(t, []jobSize{{1, 0}, {64, 0}, {0, 1}, {1, 1}, {64, 1}}, jobs(&cfg, &prover.Capabilities{MaxRaw: 64, MaxChildren: 16, MinInputs: 1}))
	require.Equal(t, []jobSize{{1, 1}}, jobs(&cfg, &prover.Capabilities{MaxRaw: 8, MaxChildren: 2, MinInputs: 2}))
}
