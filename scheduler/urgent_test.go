package scheduler

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fakePriority counts and fails on demand.
type fakePriority struct {
	raised, lowered      atomic.Int64
	failRaise, failLower error
}

func (f *fakePriority) raise() error {
	if f.failRaise != nil {
		return f.failRaise
	}
	f.raised.Add(1)
	return nil
}

func (f *fakePriority) lower() error { f.lowered.Add(1); return f.failLower }

// load runs computations of the same length on so many goroutines, each pausing after each, and returns how long urgent ones
// ran and whether all were.
func load(u *urgent, goroutines int, each, pause, whole time.Duration) (took time.Duration, all bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	all = true
	for range goroutines {
		wg.Go(func() {
			for begin := time.Now(); time.Since(begin) < whole; time.Sleep(pause) {
				ok := u.run(func() { time.Sleep(each) })
				mu.Lock()
				if all = all && ok; ok {
					took += each
				}
				mu.Unlock()
				if !ok {
					time.Sleep(each) // it runs as an ordinary one
				}
			}
		})
	}
	wg.Wait()
	return took, all
}

func TestUrgencyIsBounded(t *testing.T) {
	t.Parallel()
	const whole = 4 * time.Second
	for _, cpus := range []int{1, 2, 8} {
		for _, each := range []time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d CPUs, %s", cpus, each), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					u := newUrgent(&fakePriority{}, true, cpus, slog.New(slog.DiscardHandler))
					took, all := load(u, cpus, each, 0, whole)
					require.False(t, all)
					sustained := time.Duration(cpus) * whole / urgentShare
					require.LessOrEqual(t, took, sustained+u.burst()+2*time.Duration(cpus)*each, "what each may overdraw")
					require.GreaterOrEqual(t, took, sustained)

					time.Sleep(time.Minute) // no more is saved up than a burst
					took, _ = load(u, cpus, each, 0, 4*urgentBurst)
					require.LessOrEqual(t, took, time.Duration(cpus)*4*urgentBurst/urgentShare+u.burst()+2*time.Duration(cpus)*each)
				})
			})
		}
	}
}

func TestTheChecksOfASlotAreUrgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUrgent(&fakePriority{}, true, 2, slog.New(slog.DiscardHandler))
		_, all := load(u, 2, 5*time.Millisecond, 35*time.Millisecond, 30*time.Second) // 50 checks a second
		require.True(t, all)
		_, all = load(u, 2, 5*time.Millisecond, 0, 250*time.Millisecond) // a hundred aggregates at once
		require.True(t, all)
	})
}

func TestPriorityThatIsRefusedIsSaidOnceWithTheWayOut(t *testing.T) {
	t.Parallel()
	refusal := errors.New("not permitted")
	for _, tc := range []struct {
		name string
		at   string
	}{{"when the node starts", "start"}, {"later, as in a control group without real time", "raise"}, {"when it is given back", "lower"}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			thread := &fakePriority{}
			if tc.at == "start" {
				thread.failRaise = refusal
			}
			u := newUrgent(thread, true, 2, slog.New(slog.NewTextHandler(&lines, nil)))
			require.Equal(t, tc.at != "start", u.share() > 0)
			switch tc.at {
			case "raise":
				thread.failRaise = refusal
			case "lower":
				thread.failLower = refusal
			}
			ran := 0
			for range 3 {
				if u.run(func() { ran++ }) {
					require.Equal(t, "lower", tc.at)
				}
			}
			require.Equal(t, tc.at == "lower", ran == 1, "a computation that was not urgent is left to the caller")
			require.Zero(t, u.share())
			require.Equal(t, 1, bytes.Count(lines.Bytes(), []byte("not permitted")))
			require.Contains(t, lines.String(), "LimitRTPRIO=1")
		})
	}
}

func TestPriorityThatNobodyAskedForIsNotTried(t *testing.T) {
	t.Parallel()
	thread := &fakePriority{}
	u := newUrgent(thread, false, 2, slog.New(slog.DiscardHandler))
	require.False(t, u.run(func() { t.Error("ran") }))
	require.Zero(t, thread.raised.Load()+thread.lowered.Load())
}

func TestAPanicGivesThePriorityBack(t *testing.T) {
	t.Parallel()
	thread := &fakePriority{}
	u := newUrgent(thread, true, 2, slog.New(slog.DiscardHandler))
	require.PanicsWithValue(t, "broken", func() { u.run(func() { panic("broken") }) })
	require.EqualValues(t, 2, thread.raised.Load(), "at start and for the computation")
	require.EqualValues(t, 2, thread.lowered.Load())
}

func TestComputationsArePutBeforeAllElseWhereTheSystemAllows(t *testing.T) {
	t.Parallel()
	s, err := New(Config{RealTime: true})
	require.NoError(t, err)
	defer s.Close()
	if !s.RealTime() {
		t.Skip("the system does not allow real-time priority")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	require.NoError(t, s.Compute(t.Context(), func() {
		now, err := unix.SchedGetAttr(0, 0)
		require.NoError(t, err)
		require.EqualValues(t, unix.SCHED_RR, now.Policy)
		require.EqualValues(t, realTimePriority, now.Priority)
	}))
	after, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	require.Equal(t, before.Policy, after.Policy)
	require.Equal(t, before.Nice, after.Nice)
	require.InDelta(t, 1, testutil.ToFloat64(s.metrics.urgent), 0)

	s.urgent.pay(time.Hour) // no credit: on a thread of its own, as an ordinary one
	require.NoError(t, s.Compute(t.Context(), func() {
		now, err := unix.SchedGetAttr(0, 0)
		require.NoError(t, err)
		require.Equal(t, before.Policy, now.Policy)
	}))
	require.InDelta(t, 1, testutil.ToFloat64(s.metrics.ordinary), 0)
}
