package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// startProver makes a process of the fake host, below this one, and has it watched until the end of the test's bubble.
func (h *host) startProver(t *testing.T, pid string, id int) (stop func()) {
	t.Helper()
	tasks := filepath.Join(h.proc, own, "task", "1")
	require.NoError(t, os.MkdirAll(tasks, 0o755))
	h.setAt(tasks, "children", pid)
	h.set("svc/cgroup.procs", h.get("svc/cgroup.procs")+"\n"+pid)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { _ = h.s.Watch(ClassProver)(ctx, id, 1<<40) })
	synctest.Wait()
	return func() { cancel(); watching.Wait() }
}

func TestTheTierChangesWhileAProverRuns(t *testing.T) {
	t.Parallel()
	var before string
	withHost(t, func(c *Config) { c.Budget = Budget{Tier: Tier0, CoresMax: 2} }, func(t *testing.T, h *host) {
		defer h.startProver(t, "4711", 4711)()
		before = h.snapshot()
		require.Equal(t, Tier0, h.s.Tier())

		change, err := h.s.SetBudget(t.Context(), Budget{Tier: Tier2, CoresMax: 2}, CauseAPI)
		require.NoError(t, err)
		require.Equal(t, "running provers were moved: 1", change.Moved)
		require.Equal(t, Tier2, h.s.Tier())
		require.Equal(t, own, h.get("svc/node/cgroup.procs"))
		require.Equal(t, "4711", h.get("svc/prover/cgroup.procs"))
		require.Equal(t, "40000 20000", h.get("svc/prover/cpu.max"), "in force when the call returns")
		require.Equal(t, 2.0, testutil.ToFloat64(h.s.metrics.tier))
		require.Contains(t, h.log.String(), "tier=T2 tier_asked=T2 tier_asked_before=T0")
		cmd := exec.Command("/bin/true")
		require.NoError(t, h.s.Place(ClassProver)(cmd))
		require.True(t, cmd.SysProcAttr.UseCgroupFD)
		require.NotContains(t, cmd.Args, "--cpus")

		change, err = h.s.SetBudget(t.Context(), Budget{Tier: Tier1, CoresMax: 2}, CauseAPI)
		require.NoError(t, err)
		require.Equal(t, "running provers were moved: 1", change.Moved)
		require.Equal(t, Tier1, h.s.Tier())
		require.Equal(t, []int{2, 3}, h.s.Placement().ProverCPUs)
		require.ElementsMatch(t, []string{own, "4711"}, strings.Fields(h.get("svc/node/cgroup.procs")))
		require.Zero(t, testutil.ToFloat64(h.s.metrics.weight))
		cmd = exec.Command("/bin/true")
		require.NoError(t, h.s.Place(ClassProver)(cmd))
		require.False(t, cmd.SysProcAttr.UseCgroupFD)
		require.Contains(t, cmd.Args, "--cpus")
		h.calls()
		advance(4)
		require.Empty(t, h.calls(), "below T2 no control file is written")

		_, err = h.s.SetBudget(t.Context(), Budget{Tier: TierAuto}, CauseAPI)
		require.NoError(t, err)
		require.Equal(t, Tier2, h.s.Tier(), "the groups that are there are used again")
		require.Equal(t, "4711", h.get("svc/prover/cgroup.procs"))
		require.Equal(t, "100", h.get("svc/prover/cpu.weight"))
		require.Equal(t, "max 20000", h.get("svc/prover/cpu.max"))
		_, err = h.s.SetBudget(t.Context(), Budget{Tier: Tier0}, CauseAPI)
		require.NoError(t, err)
		require.NoError(t, h.s.Close())
		require.Equal(t, before, h.snapshot(), "the end finds the way back from any tier")
	})
}

func TestATierThatIsNotToBeHadIsRefused(t *testing.T) {
	t.Parallel()
	withHost(t, func(c *Config) { c.Budget = Budget{Tier: Tier0} }, func(t *testing.T, h *host) {
		before := h.snapshot()
		h.failing("mkdir svc/prover", errors.New("no more groups"))
		_, err := h.s.SetBudget(t.Context(), Budget{Tier: Tier2, CoresMax: 1}, CauseAPI)
		require.ErrorContains(t, err, "tier T2 is not to be had: T2: make leaf prover: no more groups")
		require.Equal(t, Budget{Tier: Tier0}, h.s.Budget(), "the rest of the change is not taken either")
		require.Equal(t, before, h.snapshot())

		change, err := h.s.SetBudget(t.Context(), Budget{Tier: TierAuto}, CauseFile)
		require.NoError(t, err, "auto asks for nothing that must be there")
		require.Equal(t, Tier1, h.s.Tier())
		require.Equal(t, "no prover runs, the next one starts there", change.Moved)
		require.Contains(t, h.s.Placement().Reason, "no more groups")

		_, err = h.s.SetBudget(t.Context(), Budget{Tier: 9}, CauseAPI)
		require.ErrorContains(t, err, "must be auto, T0, T1 or T2")
	})
	k := newFakeKernel(t, "/svc", "cpu")
	s := k.scheduler(Config{CgroupRoot: k.root, ProcRoot: k.proc}, 2)
	_, err := (&loop{s: s}).changeTier(Budget{Tier: Tier1})
	require.ErrorContains(t, err, "2 CPUs, this needs 4")
}

func TestAProverThatCannotBeMovedIsNamed(t *testing.T) {
	t.Parallel()
	withHost(t, func(c *Config) { c.Budget = Budget{Tier: Tier0} }, func(t *testing.T, h *host) {
		defer h.startProver(t, "4711", 4711)()
		h.failing("write svc/prover/cgroup.procs", errors.New("not this one"))
		change, err := h.s.SetBudget(t.Context(), Budget{Tier: Tier2}, CauseSignal)
		require.NoError(t, err)
		require.Contains(t, change.Moved, "the next one starts there: move process 4711 to leaf prover: not this one")
		require.Equal(t, Tier2, h.s.Tier())
		h.failing("write svc/prover/cgroup.procs", nil)
		advance(1)
		require.Equal(t, "4711", h.get("svc/prover/cgroup.procs"), "tried again")
	})
}

func TestChangesAreCountedAndTraced(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	type seen struct{ cause, reason, before, after string }
	var spans []seen
	withHost(t, func(c *Config) { c.Tracer, c.Budget.Calendar = tracer, true }, func(t *testing.T, h *host) {
		_, err := h.s.SetBudget(t.Context(), Budget{CoresMax: 2, Calendar: true}, CauseAPI)
		require.NoError(t, err)
		_, err = h.s.SetBudget(t.Context(), Budget{CoresMax: 2, Calendar: true}, CauseFile)
		require.NoError(t, err)
		h.signals.set(Signals{Slowdown: 1, Interval: 0})
		advance(2)
		release, err := h.s.Acquire(t.Context())
		require.NoError(t, err)
		defer release()
		h.signals.set(Signals{QueueWaitP99: time.Second, Slowdown: 2, Interval: 0})
		advance(5)
		_, err = h.s.SetBudget(t.Context(), Budget{Tier: Tier1, CoresMin: 1}, CauseSignal)
		require.NoError(t, err)
		for cause, want := range map[Cause]float64{CauseAPI: 1, CauseFile: 0, CauseSignal: 1, CauseCalendar: 1, CauseController: 2} {
			require.Equal(t, want, testutil.ToFloat64(h.s.metrics.changes.WithLabelValues(cause.String())), cause)
		}
	})
	for _, s := range recorder.Ended() {
		require.Equal(t, changeSpan, s.Name())
		require.Equal(t, codes.Unset, s.Status().Code)
		a := attribute.NewSet(s.Attributes()...)
		text := func(key attribute.Key) string { v, _ := a.Value(key); return v.String() }
		spans = append(spans, seen{
			text("cause"), text("reason"),
			text("old_cores_max") + text("old_cores") + "/" + text("old_weight") + text("old_tier"),
			text("cores_max") + text("cores") + "/" + text("weight") + text("tier"),
		})
	}
	require.Equal(t, []seen{
		{"api", "", "0/auto", "2/auto"},
		{"calendar", "calendar", "2/100", "2/30"},
		{"controller", "stress_weight", "2/30", "2/10"},
		{"controller", "shrink_slowdown", "2/10", "1.4/10"},
		{"signal", "", "2/auto", "0/T1"},
	}, spans)
}

func TestAChangeNeedsTheControllerAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(t, "/svc", "cpu")
		cfg := k.config()
		cfg.Logger = slog.New(slog.DiscardHandler)
		s := k.scheduler(cfg, 2)
		began := time.Now()
		_, err := s.SetBudget(t.Context(), Budget{CoresMax: 1}, CauseAPI)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, changeTimeout, time.Since(began))
		require.Equal(t, Budget{Tier: TierAuto}, s.Budget())
		require.NoError(t, s.Close())
	})
}
