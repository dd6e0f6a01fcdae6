package scheduler

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// windowSpan and windowLeast make a window: the last 2.5 s, or the last 64 samples where these reach further back.
	// p99 over shorter windows is jagged, and over fewer samples it is the maximum.
	windowSpan  = 2500 * time.Millisecond
	windowLeast = 64
	// windowMaxAge ends a window all the same. Without it the last burst before a silence would be the present for
	// ever. Nearly four slots of 4 s.
	windowMaxAge = 15 * time.Second
	// windowSize bounds the samples kept, a power of two: 2.5 s at 400 a second; at higher rates the window is shorter.
	windowSize = 1024
)

// sample is immutable.
type sample struct {
	at        time.Time
	wall, cpu time.Duration
}

// ring keeps the last windowSize samples without a lock: a worker that loses its CPU inside add holds nobody up.
type ring struct {
	next  atomic.Uint64 // samples ever added
	slots [windowSize]atomic.Pointer[sample]
}

func (r *ring) add(wall, cpu time.Duration) {
	s := &sample{at: time.Now(), wall: wall, cpu: cpu}
	r.slots[(r.next.Add(1)-1)%windowSize].Store(s)
}

// each calls f with the samples of the window, newest first. Samples added at the same time are seen or not.
func (r *ring) each(f func(*sample)) {
	now, end := time.Now(), r.next.Load()
	for i := range min(end, windowSize) {
		s := r.slots[(end-1-i)%windowSize].Load()
		if s == nil {
			continue // counted and not yet stored
		}
		age := now.Sub(s.at)
		if age > windowMaxAge || age > windowSpan && i >= windowLeast {
			return
		}
		f(s)
	}
}

// window is a sliding window of durations. The zero value is empty; safe for concurrent use.
type window struct{ ring ring }

// add records a duration, about 0.3 us.
func (w *window) add(d time.Duration) { w.ring.add(d, 0) }

// p99 is the 99th percentile of the window by nearest rank, 0 when it is empty. About 70 us.
func (w *window) p99() time.Duration {
	var all []time.Duration
	w.ring.each(func(s *sample) { all = append(all, s.wall) })
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(math.Ceil(0.99*float64(len(all))))-1]
}

// slowdownMeter compares the wall time of calls that only compute with their CPU time, over a sliding window. The zero
// value is empty; safe for concurrent use.
type slowdownMeter struct{ ring ring }

// add records a call. Calls that waited for anything but a CPU do not belong here; calls without CPU time are left out.
func (m *slowdownMeter) add(wall, cpu time.Duration) {
	if wall > 0 && cpu > 0 {
		m.ring.add(wall, cpu)
	}
}

// slowdown is the sum of wall times over the sum of CPU times, at least 1, which is also said of an empty window.
func (m *slowdownMeter) slowdown() float64 {
	var wall, cpu time.Duration
	m.ring.each(func(s *sample) { wall += s.wall; cpu += s.cpu })
	if cpu == 0 {
		return 1
	}
	return max(1, float64(wall)/float64(cpu))
}

// ThreadCPU is the CPU time that the calling thread has used. Differences mean something only while the goroutine is
// locked to its thread. One system call, about 0.5 us.
func ThreadCPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // every Linux has this clock; a meter leaves zeros out
	}
	return time.Duration(t.Nano())
}
