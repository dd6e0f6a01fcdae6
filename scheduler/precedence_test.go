package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fakeThreads are threads that exist by number, with the CPU time that a test says.
type fakeThreads struct {
	tids     []int
	realTime map[int]bool // what set was told last
	me       int          // the calling thread
	used     time.Duration
	mine     time.Duration // of the calling thread
	refusal  error         // of real-time priority
	listErr  error
}

func newFakeThreads(tids ...int) *fakeThreads {
	return &fakeThreads{tids: tids, realTime: map[int]bool{}, me: tids[0]}
}

func (f *fakeThreads) list() ([]int, error)    { return f.tids, f.listErr }
func (f *fakeThreads) own() int                { return f.me }
func (f *fakeThreads) cpu() time.Duration      { return f.used }
func (f *fakeThreads) cpuOf(int) time.Duration { return f.mine }
func (f *fakeThreads) set(tid int, realTime bool) error {
	if realTime && f.refusal != nil {
		return f.refusal
	}
	f.realTime[tid] = realTime
	return nil
}

func precedenceOf(f *fakeThreads, cpus int) *precedence {
	return newPrecedence(f, true, cpus, newMetrics(nil), slog.New(slog.DiscardHandler))
}

func TestAllThreadsHavePrecedenceAndNewOnesAtTheNextStep(t *testing.T) {
	t.Parallel()
	f := newFakeThreads(10, 11)
	p := precedenceOf(f, 2)
	now := time.Unix(0, 0)
	p.step(now)
	require.Equal(t, map[int]bool{10: true, 11: true}, f.realTime)
	f.tids = append(f.tids, 12)
	p.step(now.Add(stepEvery))
	require.Equal(t, map[int]bool{10: true, 11: true, 12: true}, f.realTime)
	require.InDelta(t, 1, testutil.ToFloat64(p.metrics.realTime), 0)
	p.stop()
	require.Equal(t, map[int]bool{10: false, 11: false, 12: false}, f.realTime)
	require.Zero(t, testutil.ToFloat64(p.metrics.realTime))
	p.step(now.Add(2 * stepEvery))
	require.False(t, f.realTime[10], "it has ended for good")
}

// TestPrecedenceIsBounded lives through a minute in which the node takes a constant part of the machine.
func TestPrecedenceIsBounded(t *testing.T) {
	t.Parallel()
	const whole = time.Minute
	for _, cpus := range []int{1, 2, 8} {
		for _, tc := range []struct {
			share       float64 // of all CPUs that the node takes
			least, most float64 // of the time it has precedence in
		}{{0.1, 1, 1}, {0.45, 1, 1}, {0.7, 0.5, 0.75}, {1, 0.4, 0.55}} {
			t.Run(fmt.Sprintf("%d CPUs, %.2f", cpus, tc.share), func(t *testing.T) {
				t.Parallel()
				f := newFakeThreads(10)
				p := precedenceOf(f, cpus)
				var taken, before time.Duration // at real-time priority
				inForce := 0
				for now := time.Duration(0); now < whole; now += stepEvery {
					p.step(time.Unix(0, 0).Add(now))
					if f.realTime[10] {
						inForce++
						taken += time.Duration(tc.share * float64(cpus) * float64(stepEvery))
					}
					before = f.used
					f.used += time.Duration(tc.share * float64(cpus) * float64(stepEvery))
				}
				require.Greater(t, f.used, before)
				got := float64(inForce) / float64(whole/stepEvery)
				require.GreaterOrEqual(t, got, tc.least)
				require.LessOrEqual(t, got, tc.most)
				step := time.Duration(cpus) * stepEvery
				require.LessOrEqual(t, taken, time.Duration(cpus)*whole/precedenceShare+p.burst()+step, "in the long run a half")
				require.Equal(t, tc.least < 1, testutil.ToFloat64(p.metrics.realTimeLost) > 0)
			})
		}
	}
}

func TestOrdinaryWorkHasNoPrecedenceAndCostsNone(t *testing.T) {
	t.Parallel()
	f := newFakeThreads(10, 11)
	p := precedenceOf(f, 2)
	now := time.Unix(0, 0)
	p.step(now)
	f.me = 11
	leave := p.enter()
	require.Equal(t, map[int]bool{10: true, 11: false}, f.realTime)
	now = now.Add(stepEvery)
	p.step(now)
	require.False(t, f.realTime[11], "a step does not raise it")
	for range 100 { // longer than any credit lasts
		f.used, f.mine, now = f.used+stepEvery, f.mine+stepEvery, now.Add(stepEvery)
		p.step(now)
		require.True(t, p.inForce, "ordinary work is nothing to the credit, before it ends either")
	}
	f.used, f.mine = f.used+time.Hour, f.mine+time.Hour
	leave()
	require.True(t, f.realTime[11])
	p.step(now.Add(stepEvery))
	require.True(t, p.inForce)
	require.Equal(t, p.burst(), p.credit)

	leave = p.enter()
	p.stop()
	leave()
	require.Equal(t, map[int]bool{10: false, 11: false}, f.realTime, "it is not raised after the end")
	require.Empty(t, p.ordinary)
}

func TestPrecedenceIsSuspended(t *testing.T) {
	t.Parallel()
	f := newFakeThreads(10)
	p := precedenceOf(f, 2)
	p.step(time.Unix(0, 0))
	one, two := p.suspend(), p.suspend()
	require.False(t, f.realTime[10])
	one()
	one()
	p.step(time.Unix(1, 0))
	require.False(t, f.realTime[10], "the other one still asks for it")
	two()
	require.True(t, f.realTime[10])
	require.Zero(t, testutil.ToFloat64(p.metrics.realTimeLost))
}

func TestPrecedenceThatIsRefusedIsSaidOnceWithTheWayOut(t *testing.T) {
	t.Parallel()
	refusal := errors.New("not permitted")
	for _, tc := range []struct {
		name   string
		refuse func(f *fakeThreads)
		late   bool
	}{
		{"when the node starts", func(f *fakeThreads) { f.refusal = refusal }, false},
		{"later, as in a control group without real time", func(f *fakeThreads) { f.refusal = refusal }, true},
		{"when threads can not be listed", func(f *fakeThreads) { f.listErr = refusal }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeThreads(10, 11)
			var lines bytes.Buffer
			p := newPrecedence(f, true, 2, newMetrics(nil), slog.New(slog.NewTextHandler(&lines, nil)))
			now := time.Unix(0, 0)
			if tc.late {
				p.step(now)
			}
			tc.refuse(f)
			for i := range 3 {
				p.step(now.Add(time.Duration(i+1) * stepEvery))
			}
			require.False(t, f.realTime[10])
			require.False(t, f.realTime[11])
			require.Equal(t, 1, bytes.Count(lines.Bytes(), []byte("not permitted")))
			require.Contains(t, lines.String(), "LimitRTPRIO=1")
			require.Zero(t, testutil.ToFloat64(p.metrics.realTime))
		})
	}
}

func TestPrecedenceThatNobodyAskedForIsNotTried(t *testing.T) {
	t.Parallel()
	f := newFakeThreads(10)
	p := newPrecedence(f, false, 2, newMetrics(nil), slog.New(slog.DiscardHandler))
	p.step(time.Unix(0, 0))
	p.stop()
	require.Empty(t, f.realTime)
}

// policies counts the threads of this process by policy.
func policies(t *testing.T) map[uint32]int {
	t.Helper()
	tids, err := newOSThreads().list()
	require.NoError(t, err)
	out := map[uint32]int{}
	for _, tid := range tids {
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil {
			out[attr.Policy]++
		}
	}
	return out
}

// TestRealThreads changes those of the test's own process, for a moment. Not parallel: others look at their threads too.
func TestRealThreads(t *testing.T) {
	real := newOSThreads()
	p := newPrecedence(real, true, runtime.GOMAXPROCS(0), newMetrics(nil), slog.New(slog.DiscardHandler))
	defer p.stop()
	p.step(time.Now())
	if !p.inForce {
		t.Skip("the system does not allow real-time priority")
	}
	require.Positive(t, policies(t)[unix.SCHED_RR])
	stat, err := exec.CommandContext(t.Context(), "cat", "/proc/self/stat").Output()
	require.NoError(t, err)
	_, fields, _ := strings.Cut(string(stat), ") ") // the first of them is the third of proc_pid_stat(5)
	require.Equal(t, "0", strings.Fields(fields)[41-3], "policy of a child")

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.InDelta(t, ThreadCPU(), real.cpuOf(real.own()), float64(10*time.Millisecond))
	leave := p.enter()
	own, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	require.EqualValues(t, unix.SCHED_NORMAL, own.Policy)
	leave()
	own, err = unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	require.EqualValues(t, unix.SCHED_RR, own.Policy)
	p.stop()
	require.Zero(t, policies(t)[unix.SCHED_RR])
}

func TestRunGivesThePrecedenceBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeThreads(10)
		s, err := newScheduler(Config{RealTime: true}, seams{kernel: osKernel{}, cpus: allowedCPUs, threads: f}, 2)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }()
		synctest.Wait()
		require.True(t, s.RealTime())
		ran := false
		s.Ordinarily(func() { ran = true; require.False(t, f.realTime[10]) })
		require.True(t, ran)
		require.True(t, f.realTime[10])
		stop()
		<-done
		require.False(t, s.RealTime())
	})
}
