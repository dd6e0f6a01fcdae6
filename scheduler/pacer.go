package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// paceEvery is the distance of looks at the queue, and so the longest that a vote has the background work beside it
// through no fault of the kernel's. A look may take a lock; between looks Pace costs one reading of the clock.
const paceEvery = time.Millisecond

// Pacer lets background work in Go (key warming, planning) stand back while votes wait. All methods may be called on a
// nil Pacer, which never waits, and by several goroutines.
type Pacer struct {
	waiting  func() bool        // immutable
	deadline time.Time          // immutable; zero for none
	paced    prometheus.Counter // seconds
	next     *atomic.Int64      // time of the next look in nanoseconds since began
	began    time.Time          // immutable
}

// Pacer makes a pacer for work that stands back while waiting says true. waiting is called about once a millisecond
// and must be cheap and safe for concurrent use.
func (s *Scheduler) Pacer(waiting func() bool) *Pacer {
	return &Pacer{waiting: waiting, paced: s.metrics.paced, next: new(atomic.Int64), began: time.Now()}
}

// Until returns a pacer for one piece of work that has to be done at a time: from then on it never waits. For keys of
// the next slot that is its interval 0.
func (p *Pacer) Until(deadline time.Time) *Pacer {
	if p == nil {
		return nil
	}
	q := *p
	q.deadline = deadline
	return &q
}

// Pace is called between pieces of work of some 10 to 1,000 us. It returns at once, or blocks while votes wait, no
// longer than the deadline. The error is ctx.Err(), seen at the next look.
func (p *Pacer) Pace(ctx context.Context) error {
	if p == nil {
		return ctx.Err()
	}
	now := time.Now()
	next := p.next.Load()
	if at := int64(now.Sub(p.began)); at < next || !p.next.CompareAndSwap(next, at+int64(paceEvery)) {
		return nil // looked at a moment ago, by us or by another
	}
	if err := ctx.Err(); err != nil || !p.mustWait(now) {
		return err
	}
	p.next.Store(0) // the others that use this pacer look at once
	poll := time.NewTicker(paceEvery)
	defer poll.Stop()
	defer func() { p.paced.Add(time.Since(now).Seconds()) }()
	for p.mustWait(time.Now()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}

func (p *Pacer) mustWait(now time.Time) bool {
	return (p.deadline.IsZero() || now.Before(p.deadline)) && p.waiting()
}
