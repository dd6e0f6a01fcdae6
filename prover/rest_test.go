package prover

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// spared is a prover with a warm spare.
func spared(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Spare, cfg.Available = true, func() int64 { return math.MaxInt64 }
	if change != nil {
		change(&cfg)
	}
	p := start(t, cfg)
	require.Eventually(t, func() bool { return p.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)
	return p
}

func TestAKilledProverIsReplacedByItsSpareAtOnce(t *testing.T) {
	t.Parallel()
	p := spared(t, nil)
	before := p.Stats()
	_, err := p.Prove(t.Context(), fakeJob(faultKill, 1))
	require.ErrorIs(t, err, ErrCrashed)
	require.True(t, p.Ready(), "no moment without a prover")
	_, err = p.Prove(t.Context(), fakeJob(faultNone, 1))
	require.NoError(t, err)
	require.Equal(t, before.SparePID, p.Stats().PID)
	require.Eventually(t, func() bool { return p.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)
	require.NotEqual(t, before.PID, p.Stats().SparePID)
}

func TestTheHelloOfASpareSaysNothingAboutJobs(t *testing.T) {
	t.Parallel()
	p := spared(t, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Equal(t, p.ready[0].caps.HelloProve, p.caps.HelloProve, "it may have been measured beside a job")
}

func TestAMemoryLimitMustLeaveRoomForTheSpare(t *testing.T) {
	t.Parallel()
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Spare, cfg.Available, cfg.MemoryMax = true, func() int64 { return math.MaxInt64 }, 5<<20
	cfg.Watch = func(ctx context.Context, _ int, _ int64) error { <-ctx.Done(); return nil }
	p := start(t, cfg)
	require.Eventually(t, func() bool { return p.Stats().NoSpare != "" }, time.Minute, 5*time.Millisecond)
	require.Contains(t, p.Stats().NoSpare, "5 MiB")
}

func TestWithoutMemoryThereIsNoSpare(t *testing.T) {
	t.Parallel()
	log, text := testLog()
	cfg := fakeConfig(RoleProve, modeGood) // it says that it needs 4 MiB at most
	cfg.Spare, cfg.Logger, cfg.Available = true, log, func() int64 { return 7 << 20 }
	p := start(t, cfg)
	require.Eventually(t, func() bool { return p.Stats().NoSpare != "" }, time.Minute, 5*time.Millisecond)
	require.Equal(t, "no warm spare: 7 MiB of memory available, wanted 8 MiB", p.Stats().NoSpare)
	require.Equal(t, 1, strings.Count(text(), "no warm spare"))
	_, err := p.Prove(t.Context(), fakeJob(faultKill, 1))
	require.ErrorIs(t, err, ErrCrashed)
	waitReady(t, p) // the first child needs no leave
	require.Zero(t, p.Stats().SparePID)
	require.Equal(t, uint64(1), p.Stats().Restarts)
}

// A prover that keeps what its jobs took is replaced by its spare, once, and the log and one metric say why.
func TestMemoryThatDoesNotComeBack(t *testing.T) {
	t.Parallel()
	log, text := testLog()
	reg := prometheus.NewRegistry()
	p := spared(t, func(c *Config) { c.Logger, c.Registerer, c.RestMemory = log, reg, eaten })
	before := p.Stats()
	for range restProofs {
		_, err := p.Prove(t.Context(), fakeJob(faultEat, 1))
		require.NoError(t, err, "the proof is as good as any")
	}
	require.Equal(t, before.SparePID, p.Stats().PID, "no moment without a prover")
	require.Eventually(t, func() bool { return p.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)
	require.True(t, isGone(before.PID))
	require.Equal(t, 1, strings.Count(text(), "memory did not come back"))
	require.Contains(t, text(), fmt.Sprintf("at rest it should hold at most %d MiB", eaten>>20))
	series := `
# HELP aggnode_prover_starts_total Prover children started, by the end of the one before.
# TYPE aggnode_prover_starts_total counter
`
	for _, reason := range []string{"crashed", "first", "memory", "other", "protocol", "recycled", "refused", "stuck", "timeout"} {
		n := map[string]int{"first": 2, "recycled": 1}[reason]
		series += fmt.Sprintf("aggnode_prover_starts_total{reason=%q,role=\"prove\"} %d\n", reason, n)
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(series), "aggnode_prover_starts_total"))

	pid := p.Stats().PID
	for range restProofs + 1 {
		_, err := p.Prove(t.Context(), fakeJob(faultEat, 1))
		require.NoError(t, err)
	}
	require.Equal(t, pid, p.Stats().PID, "a backend that keeps its memory by design is not set up after every job")
}

func TestAHeavyProverWithoutASpareIsReplacedWhenItHasNothingToDo(t *testing.T) {
	t.Parallel()
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.RestMemory = eaten
	p := start(t, cfg)
	waitReady(t, p)
	pid := p.Stats().PID
	for range restProofs {
		_, err := p.Prove(t.Context(), fakeJob(faultEat, 1))
		require.NoError(t, err)
	}
	require.Equal(t, pid, p.Stats().PID)
	require.Eventually(t, func() bool { return isGone(pid) }, time.Minute, 5*time.Millisecond)
	waitReady(t, p)
	_, err := p.Prove(t.Context(), fakeJob(faultNone, 1))
	require.NoError(t, err)
}

// A job that comes in the moment in which its child is taken out of use goes to the next one and is not lost.
func TestAJobOutlivesTheReplacementOfItsChild(t *testing.T) {
	t.Parallel()
	for _, hasSpare := range []bool{true, false} {
		t.Run(fmt.Sprintf("spare %t", hasSpare), func(t *testing.T) {
			t.Parallel()
			p := spared(t, nil)
			p.mu.Lock()
			first, spare := p.ready[0], p.ready[1]
			p.ready = p.ready[:1] // as a job sees it that asked a moment before
			p.mu.Unlock()
			found, err := p.serving()
			require.NoError(t, err)
			require.True(t, first.retire(errRecycled))
			require.False(t, first.retire(errRecycled), "once")
			_, err = found.begin(t.Context(), kindProve, newBody(0), 0, true)
			require.ErrorIs(t, err, errRecycled)
			if hasSpare {
				p.offer(spare)
			} else {
				spare.retire(errRecycled)
			}
			_, err = p.Prove(t.Context(), fakeJob(faultNone, 1))
			require.NoError(t, err)
		})
	}
}

func TestABusyChildIsNotRetired(t *testing.T) {
	t.Parallel()
	p := start(t, fakeConfig(RoleProve, modeGood))
	waitReady(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.Prove(ctx, fakeJob(faultBusy, 1))
		done <- err
	}()
	require.Eventually(t, func() bool { return p.Stats().Running == 1 }, time.Minute, time.Millisecond)
	child, err := p.serving()
	require.NoError(t, err)
	require.False(t, child.retire(errRecycled))
	cancel()
	require.Error(t, <-done)
}

// The circuit breaker: a backend that starts and then dies of every job is started more and more rarely, and the first
// answer closes the circuit.
func TestPausesDoubleUntilACallIsAnswered(t *testing.T) {
	t.Parallel()
	log, text := testLog()
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Logger = log
	p := start(t, cfg)
	fail := func() {
		waitReady(t, p)
		_, err := p.Prove(t.Context(), fakeJob(faultKill, 1))
		require.ErrorIs(t, err, ErrCrashed)
		require.Eventually(t, func() bool { return !p.Ready() }, time.Minute, time.Millisecond)
	}
	for range 3 {
		fail()
	}
	waitReady(t, p)
	_, err := p.Prove(t.Context(), fakeJob(faultNone, 1))
	require.NoError(t, err)
	fail()
	waitReady(t, p)
	var pauses []string
	for line := range strings.Lines(text()) {
		if _, pause, ok := strings.Cut(line, "restart_ms="); ok {
			pauses = append(pauses, strings.Fields(pause)[0])
			require.Contains(t, line, "level=INFO", "the job's caller has the cause, and one line says it")
			require.NotContains(t, line, "error=")
		}
	}
	require.Equal(t, []string{"100", "200", "400", "100"}, pauses)
}

func TestACheckSaysWhatItCostInTheChild(t *testing.T) {
	t.Parallel()
	v := start(t, fakeConfig(RoleVerify, modeGood))
	waitReady(t, v)
	claim := fakeJob(faultNone, 2).claim()
	verdict, err := v.Check(t.Context(), claim, fakeProof(fakeEntries(claim)))
	require.NoError(t, err)
	require.Equal(t, Verdict{Wall: 4 * time.Millisecond, CPU: 3 * time.Millisecond}, verdict)
	verdict, err = v.Check(t.Context(), claim, []byte("no proof"))
	require.ErrorIs(t, err, ErrBadProof)
	require.Zero(t, verdict)
}

func TestBuffersAreReusedWithinBounds(t *testing.T) {
	t.Parallel()
	var none *buffers
	require.GreaterOrEqual(t, cap(none.take(10)), 10)
	none.give(make([]byte, 10))
	b := new(buffers)
	b.give(make([]byte, 5, pooledMax+1)) // too large to keep
	b.give(nil)
	require.Less(t, cap(b.take(1)), pooledMax)
	b.give(make([]byte, 7, 64))
	for range 100 { // a pool may drop what it is given, but what it has is empty and large enough
		got := b.take(32)
		require.Empty(t, got)
		require.GreaterOrEqual(t, cap(got), 32)
		b.give(got)
	}
}

// A check that finds the serving child full is made by the spare.
func TestTheSpareHelpsOutWithChecks(t *testing.T) {
	t.Parallel()
	cfg := fakeConfig(RoleVerify, modeGood)
	cfg.Spare = true
	v := start(t, cfg)
	require.Eventually(t, func() bool { return v.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)
	pid := v.Stats().PID
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	hang := fakeJob(faultHang, 1).claim()
	go func() { done <- v.Verify(ctx, hang, fakeProof(fakeEntries(hang))) }()
	require.Eventually(t, func() bool { return v.Stats().Running == 1 }, time.Minute, time.Millisecond)
	good := fakeJob(faultNone, 1).claim()
	require.NoError(t, v.Verify(t.Context(), good, fakeProof(fakeEntries(good))))
	require.Equal(t, pid, v.Stats().PID, "which still serves")
	cancel()
	require.ErrorIs(t, <-done, ErrUnavailable)
}
