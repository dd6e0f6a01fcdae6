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
		var w Window
		require.Zero(t, w.P99())
		w.Add(7 * time.Millisecond)
		require.Equal(t, 7*time.Millisecond, w.P99())

		for i := range 1000 {
			w.Add(time.Duration(i+1) * time.Millisecond)
		}
		require.Equal(t, 990*time.Millisecond, w.P99())

		// After the span the last 64 count, however few others came.
		time.Sleep(windowSpan + time.Millisecond)
		require.Equal(t, time.Second, w.P99())
		for range windowLeast - 2 {
			w.Add(time.Millisecond)
		}
		require.Equal(t, time.Second, w.P99())
		w.Add(time.Millisecond)
		w.Add(time.Millisecond)
		require.Equal(t, time.Millisecond, w.P99())

		// The last burst before a silence is not the present for ever.
		time.Sleep(windowMaxAge + time.Millisecond)
		require.Zero(t, w.P99())
	})
}

func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Window
		for range windowSize {
			w.Add(time.Second)
		}
		for range windowSize {
			w.Add(time.Millisecond)
		}
		require.Equal(t, time.Millisecond, w.P99())
	})
}

func TestSlowdownMeter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m SlowdownMeter
		require.Equal(t, 1.0, m.Slowdown())
		m.Add(time.Second, 0)
		m.Add(0, time.Second)
		require.Equal(t, 1.0, m.Slowdown(), "calls without either time are left out")
		m.Add(30*time.Millisecond, 10*time.Millisecond)
		require.Equal(t, 3.0, m.Slowdown())
		m.Add(10*time.Millisecond, 10*time.Millisecond)
		require.Equal(t, 2.0, m.Slowdown(), "long calls weigh more")
		time.Sleep(windowMaxAge + time.Millisecond)
		require.Equal(t, 1.0, m.Slowdown())
		m.Add(9*time.Millisecond, 10*time.Millisecond)
		require.Equal(t, 1.0, m.Slowdown(), "clocks of different kinds may differ a little")
	})
}

func TestMetersMayBeUsedByAll(t *testing.T) {
	t.Parallel()
	var m SlowdownMeter
	var w Window
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				m.Add(2*time.Millisecond, time.Millisecond)
				w.Add(time.Millisecond)
			}
		})
		wg.Go(func() {
			for range 50 {
				if s := m.Slowdown(); s != 1 && s != 2 {
					t.Errorf("slowdown %f", s)
				}
				if p := w.P99(); p != 0 && p != time.Millisecond {
					t.Errorf("p99 %s", p)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2.0, m.Slowdown())
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
	var m SlowdownMeter
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Add(2*time.Millisecond, time.Millisecond)
		}
	})
}

func BenchmarkThreadCPU(b *testing.B) {
	for b.Loop() {
		ThreadCPU()
	}
}

func BenchmarkWindowP99(b *testing.B) {
	var w Window
	for i := range windowSize {
		w.Add(time.Duration(i*7919%windowSize) * time.Microsecond)
	}
	for b.Loop() {
		w.P99()
	}
}
