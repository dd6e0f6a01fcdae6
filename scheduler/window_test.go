package scheduler

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w window
		require.Zero(t, w.p99())
		w.add(7 * time.Millisecond)
		require.Equal(t, 7*time.Millisecond, w.p99())

		for i := range 1000 {
			w.add(time.Duration(i+1) * time.Millisecond)
		}
		require.Equal(t, 990*time.Millisecond, w.p99())

		// After the span the last 64 count, however few others came.
		time.Sleep(windowSpan + time.Millisecond)
		require.Equal(t, time.Second, w.p99())
		for range windowLeast - 2 {
			w.add(time.Millisecond)
		}
		require.Equal(t, time.Second, w.p99())
		w.add(time.Millisecond)
		w.add(time.Millisecond)
		require.Equal(t, time.Millisecond, w.p99())

		// The last burst before a silence is not the present for ever.
		time.Sleep(windowMaxAge + time.Millisecond)
		require.Zero(t, w.p99())
	})
}

func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w window
		for range windowSize {
			w.add(time.Second)
		}
		for range windowSize {
			w.add(time.Millisecond)
		}
		require.Equal(t, time.Millisecond, w.p99())
	})
}

func TestSlowdownMeter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slowdownMeter
		require.Equal(t, 1.0, m.slowdown())
		m.add(time.Second, 0)
		m.add(0, time.Second)
		require.Equal(t, 1.0, m.slowdown(), "calls without either time are left out")
		m.add(30*time.Millisecond, 10*time.Millisecond)
		require.Equal(t, 3.0, m.slowdown())
		m.add(10*time.Millisecond, 10*time.Millisecond)
		require.Equal(t, 2.0, m.slowdown(), "long calls weigh more")
		time.Sleep(windowMaxAge + time.Millisecond)
		require.Equal(t, 1.0, m.slowdown())
		m.add(9*time.Millisecond, 10*time.Millisecond)
		require.Equal(t, 1.0, m.slowdown(), "clocks of different kinds may differ a little")
	})
}

func TestMetersMayBeUsedByAll(t *testing.T) {
	t.Parallel()
	var m slowdownMeter
	var w window
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				m.add(2*time.Millisecond, time.Millisecond)
				w.add(time.Millisecond)
			}
		})
		wg.Go(func() {
			for range 50 {
				if s := m.slowdown(); s != 1 && s != 2 {
					t.Errorf("slowdown %f", s)
				}
				if p := w.p99(); p != 0 && p != time.Millisecond {
					t.Errorf("p99 %s", p)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2.0, m.slowdown())
}

func TestThreadCPUCountsThisThread(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, wall := ThreadCPU(), time.Now()
	var sum int
	for time.Since(wall) < 5*time.Millisecond || ThreadCPU() == before {
		for i := range 10_000 {
			sum += i
		}
	}
	used := ThreadCPU() - before
	require.Positive(t, used, sum)
	require.LessOrEqual(t, used, time.Since(wall)+time.Millisecond)
}

func BenchmarkSlowdownMeterAdd(b *testing.B) {
	var m slowdownMeter
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.add(2*time.Millisecond, time.Millisecond)
		}
	})
}

func BenchmarkThreadCPU(b *testing.B) {
	for b.Loop() {
		ThreadCPU()
	}
}

func BenchmarkWindowP99(b *testing.B) {
	var w window
	for i := range windowSize {
		w.add(time.Duration(i*7919%windowSize) * time.Microsecond)
	}
	for b.Loop() {
		w.p99()
	}
}
