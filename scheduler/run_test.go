package scheduler

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fakeSignals is what a node would measure.
type fakeSignals struct {
	mu  sync.Mutex
	now Signals
}

func (f *fakeSignals) Signals() Signals {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeSignals) set(s Signals) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = s
}

// host is a running scheduler at T2 in a bubble.
type host struct {
	*fakeKernel
	s       *Scheduler
	signals *fakeSignals
	log     *bytes.Buffer // read only while everything else waits
}

// withHost runs test in a bubble beside Run, with 4 CPUs, and stops and closes afterwards.
func withHost(t *testing.T, change func(*Config), test func(t *testing.T, h *host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &host{fakeKernel: newFakeKernel(t, "/svc", "cpu", "memory"), signals: &fakeSignals{}, log: new(bytes.Buffer)}
		h.signals.set(Signals{Slowdown: 1, Interval: 2})
		cfg := h.config()
		cfg.Signals, cfg.Logger = h.signals, slog.New(slog.NewTextHandler(h.log, nil))
		if change != nil {
			change(&cfg)
		}
		h.s = h.scheduler(cfg, 4)
		h.calls()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.s.Run(ctx) }()
		synctest.Wait()
		test(t, h)
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, h.s.Close())
	})
}

// advance lets a number of steps pass.
func advance(steps int) {
	time.Sleep(time.Duration(steps) * stepEvery)
	synctest.Wait()
}

func (h *host) decisions(r Reason) int {
	return int(testutil.ToFloat64(h.s.metrics.decisions.WithLabelValues(r.String())))
}

func TestRunWritesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	withHost(t, nil, func(t *testing.T, h *host) {
		require.Equal(t, []string{"write svc/prover/cpu.weight 100", "write svc/prover/cpu.max max 20000"}, h.calls())
		advance(20)
		require.Empty(t, h.calls())
		require.Equal(t, 21, h.decisions(ReasonSteady))
		require.Equal(t, 4.0, testutil.ToFloat64(h.s.metrics.cores))
		require.Equal(t, 1, strings.Count(h.log.String(), "prover budget"))

		release, err := h.s.Acquire(t.Context())
		require.NoError(t, err)
		h.signals.set(Signals{QueueWaitP99: time.Second, Slowdown: 2, Interval: 2})
		advance(1)
		require.Equal(t, []string{"write svc/prover/cpu.weight 10"}, h.calls())
		require.Equal(t, 10.0, testutil.ToFloat64(h.s.metrics.weight))
		advance(4)
		require.Equal(t, []string{"write svc/prover/cpu.max 56000 20000"}, h.calls())
		require.InDelta(t, 2.8, testutil.ToFloat64(h.s.metrics.cores), 1e-9)
		require.Equal(t, 2.0, testutil.ToFloat64(h.s.metrics.slowdown))
		require.Contains(t, h.log.String(), "reason=shrink_slowdown")
		require.Equal(t, ReasonShrinkSlowdown, h.s.Decision().Reason)

		// With the grant given back, slowdown is not the prover's doing.
		release()
		require.InDelta(t, 2.5, testutil.ToFloat64(h.s.metrics.held), 1e-9)
		release, err = h.s.Acquire(t.Context()) // one job that no step meets
		require.NoError(t, err)
		release()
		advance(1)
		require.Zero(t, h.decisions(ReasonLoadNotProver))
		advance(1)
		require.Equal(t, 1, h.decisions(ReasonLoadNotProver))
		advance(5)
		require.Equal(t, []string{"write svc/prover/cpu.weight 100"}, h.calls())
	})
}

func TestAWaiterForTheGrantIsAJobThatWaits(t *testing.T) {
	t.Parallel()
	withHost(t, func(c *Config) { c.Budget.CoresMax = 2 }, func(t *testing.T, h *host) {
		release, err := h.s.Acquire(t.Context())
		require.NoError(t, err)
		advance(1)
		require.Zero(t, h.decisions(ReasonOperatorMax))
		go func() {
			second, err := h.s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			second()
		}()
		advance(1)
		require.Equal(t, 1, h.decisions(ReasonOperatorMax))
		release()
		advance(1)
		require.Equal(t, 1, h.decisions(ReasonOperatorMax))
	})
}

func TestWhatTheProverUsesIsCounted(t *testing.T) {
	t.Parallel()
	withHost(t, func(c *Config) { c.Budget.CoresMax = 1 }, func(t *testing.T, h *host) {
		h.set("svc/prover/cpu.stat", "usage_usec 700000\nnr_throttled 3\nthrottled_usec 90000\n")
		advance(1)
		require.Equal(t, 1, h.decisions(ReasonOperatorMax), "a throttled prover could use more")
		advance(1)
		require.Equal(t, 1, h.decisions(ReasonOperatorMax))
		h.set("svc/prover/cpu.stat", "usage_usec 1000000\nnr_throttled 4\nthrottled_usec 100000\n")
		h.set("svc/node/cpu.pressure", "some avg10=3.50 avg60=0.00 avg300=0.00 total=0\n")
		advance(1)
		require.InDelta(t, 1, testutil.ToFloat64(h.s.metrics.used), 1e-9)
		require.InDelta(t, 0.1, testutil.ToFloat64(h.s.metrics.throttled), 1e-9)
		require.Equal(t, 3.5, testutil.ToFloat64(h.s.metrics.pressure))
		require.NoError(t, os.Remove(filepath.Join(h.root, "svc/prover/cpu.stat")))
		require.NoError(t, os.Remove(filepath.Join(h.root, "svc/node/cpu.pressure")))
		advance(1)
		require.Zero(t, testutil.ToFloat64(h.s.metrics.pressure))
	})
}

func TestABudgetIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	withHost(t, nil, func(t *testing.T, h *host) {
		h.calls()
		want := Budget{CoresMax: 1.5, CoresMin: 0.5, Tier: TierAuto}
		change, err := h.s.SetBudget(t.Context(), Budget{CoresMax: 1.5, CoresMin: 0.5}, CauseAPI)
		require.NoError(t, err)
		require.Equal(t, Change{Old: Budget{Tier: TierAuto}, New: want}, change)
		synctest.Wait() // no time passes
		require.Equal(t, []string{"write svc/prover/cpu.max 30000 20000"}, h.calls())
		require.Equal(t, 1.5, testutil.ToFloat64(h.s.metrics.limits.WithLabelValues("max")))
		require.Equal(t, 0.5, testutil.ToFloat64(h.s.metrics.limits.WithLabelValues("min")))

		_, err = h.s.SetBudget(t.Context(), Budget{CoresMax: 9}, CauseAPI)
		require.ErrorContains(t, err, "cores max 9, must be 0 for no limit or 0.1 to 4")
		require.Equal(t, want, h.s.Budget())
		change, err = h.s.SetBudget(t.Context(), want, CauseFile)
		require.NoError(t, err)
		require.Equal(t, Change{Old: want, New: want}, change)
		synctest.Wait()
		require.Empty(t, h.calls())
		require.Equal(t, 1, strings.Count(h.log.String(), "budget set"), "the same again is no change")
		_, err = h.s.SetBudget(t.Context(), Budget{Calendar: true}, CauseSignal)
		require.NoError(t, err)
		synctest.Wait()
		h.signals.set(Signals{Slowdown: 1, Interval: 0})
		advance(1)
		require.Equal(t, []string{"write svc/prover/cpu.max max 20000", "write svc/prover/cpu.weight 30"}, h.calls())
	})
}

func TestWhatCannotBeWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	withHost(t, nil, func(t *testing.T, h *host) {
		h.calls()
		h.failing("write svc/prover/cpu.max", errors.New("not now"))
		_, err := h.s.SetBudget(t.Context(), Budget{CoresMax: 2}, CauseAPI)
		require.NoError(t, err)
		advance(5)
		require.Empty(t, h.calls())
		require.Equal(t, 6.0, testutil.ToFloat64(h.s.metrics.applyErrors))
		require.Equal(t, 1, strings.Count(h.log.String(), "budget not in force"))
		require.Equal(t, 4.0, testutil.ToFloat64(h.s.metrics.cores))
		h.failing("write svc/prover/cpu.max", nil)
		advance(1)
		require.Equal(t, []string{"write svc/prover/cpu.max 40000 20000"}, h.calls())
		require.Equal(t, 2.0, testutil.ToFloat64(h.s.metrics.cores))
	})
}

func TestWithoutSignalsOnlyTheOperatorDecides(t *testing.T) {
	t.Parallel()
	withHost(t, func(c *Config) { c.Signals, c.Budget = nil, Budget{CoresMax: 3, Calendar: true, Tier: Tier2} }, func(t *testing.T, h *host) {
		advance(9)
		require.Equal(t, 10, h.decisions(ReasonNoSignals))
		require.Equal(t, "100", h.get("svc/prover/cpu.weight"))
		require.Equal(t, "60000 20000", h.get("svc/prover/cpu.max"))
	})
}

func TestWorkersThatStandInLineAreNoticed(t *testing.T) {
	t.Parallel()
	withHost(t, func(*Config) {}, func(t *testing.T, h *host) {
		stat := func(tid int, run, wait time.Duration) {
			dir := filepath.Join(h.proc, "self", "task", strconv.Itoa(tid))
			require.NoError(t, os.MkdirAll(dir, 0o755))
			h.setAt(dir, "schedstat", strconv.FormatInt(int64(run), 10)+" "+strconv.FormatInt(int64(wait), 10)+" 9\n")
		}
		delay := func() float64 { advance(1); return testutil.ToFloat64(h.s.metrics.delay) }
		stat(11, time.Hour, time.Hour)
		stat(12, time.Minute, 0)
		require.Zero(t, delay(), "what was before the first look does not count")
		stat(11, time.Hour+100*time.Millisecond, time.Hour+30*time.Millisecond)
		stat(12, time.Minute+100*time.Millisecond, 10*time.Millisecond)
		require.InDelta(t, 0.2, delay(), 1e-9)
		stat(11, time.Hour+104*time.Millisecond, 2*time.Hour)
		require.Zero(t, delay(), "too little to tell")
		stat(11, 20*time.Millisecond, time.Millisecond)
		stat(12, time.Minute+120*time.Millisecond, 11*time.Millisecond)
		require.InDelta(t, 0.05, delay(), 1e-9, "another thread under the same number starts anew")
		h.setAt(filepath.Join(h.proc, "self", "task", "11"), "schedstat", "nonsense")
		require.Zero(t, delay())
	})
}

func TestBelowT2TheMaximumMovesRunningProvers(t *testing.T) {
	t.Parallel()
	cpus, err := allowedCPUs()
	require.NoError(t, err)
	if min(len(cpus), runtime.GOMAXPROCS(0)) < 2 {
		t.Skip("not run: one CPU")
	}
	signals := &fakeSignals{now: Signals{Slowdown: 1, Interval: 2}}
	s, err := New(Config{Signals: signals})
	require.NoError(t, err)
	cmd := exec.Command("/proc/self/exe", "report", "wait") // a Go program: several threads
	require.NoError(t, s.Place(ClassProver)(cmd))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	_, err = out.Read(make([]byte, 1)) // it is past the shim
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Watch(ClassProver)(ctx, cmd.Process.Pid, 1<<40) })
	wg.Go(func() { _ = s.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	allOn := func(want int) func() bool {
		return func() bool {
			threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "task"))
			require.NoError(t, err)
			for _, thread := range threads {
				tid, _ := strconv.Atoi(thread.Name())
				var set unix.CPUSet
				if err := unix.SchedGetaffinity(tid, &set); err == nil && set.Count() != want {
					return false
				}
			}
			return len(threads) > 1
		}
	}
	_, err = s.SetBudget(t.Context(), Budget{CoresMax: 0.7}, CauseAPI)
	require.NoError(t, err)
	require.Eventually(t, allOn(1), 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return testutil.ToFloat64(s.metrics.cores) == 1 }, 10*time.Second, 10*time.Millisecond)
	_, err = s.SetBudget(t.Context(), Budget{}, CauseAPI)
	require.NoError(t, err)
	require.Eventually(t, allOn(len(cpus)), 10*time.Second, 10*time.Millisecond)
}

func TestBelowT2NothingIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(t, "/svc", "cpu")
		cfg := k.config()
		cfg.Budget.Tier, cfg.Signals = Tier1, &fakeSignals{now: Signals{CheckP99: time.Second, Slowdown: 3, Interval: 2}}
		s := k.scheduler(cfg, 4)
		release, err := s.Acquire(t.Context())
		require.NoError(t, err)
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.Equal(t, 3.0, testutil.ToFloat64(s.metrics.cores), "one core is the node's")
		require.Equal(t, Decision{Cores: 3, Reason: ReasonCannotLimit}, s.Decision())
		require.Zero(t, testutil.ToFloat64(s.metrics.weight))
		require.Positive(t, testutil.ToFloat64(s.metrics.decisions.WithLabelValues("cannot_limit")))
		require.Zero(t, testutil.ToFloat64(s.metrics.decisions.WithLabelValues("shrink_slowdown")))
	})
}
