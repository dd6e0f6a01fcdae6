package aggregate

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// outboxSize bounds checked aggregates that wait for the network: ARCHITECTURE.md section 2, local publish. A prover
// that makes one in half a second fills it in eight.
const outboxSize = 16

// outbox holds checked aggregates until the publishing goroutine takes them, in order of value: newer slots, wider, older.
// Full: the least valuable goes. Safe for concurrent use.
type outbox struct {
	wake chan struct{} // a 1-slot mailbox: the content changed

	mu    sync.Mutex
	items []*parcel // guarded by mu: in order of value
}

// parcel is an aggregate on its way out.
type parcel struct {
	job       *job
	notBefore time.Time
	expires   time.Time // nobody accepts it after that
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// put adds a parcel. It returns those that lost their place: superseded by a wider one of the same data root, or over
// the bound.
func (o *outbox) put(p *parcel) (superseded, over []*parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = slices.DeleteFunc(o.items, func(q *parcel) bool {
		if q.job.plan.group.Root != p.job.plan.group.Root || !q.job.plan.members.isSubsetOf(p.job.plan.members) {
			return false
		}
		superseded = append(superseded, q)
		return true
	})
	i, _ := slices.BinarySearchFunc(o.items, p, func(q, p *parcel) int {
		return cmp.Or(cmp.Compare(p.job.slot(), q.job.slot()), cmp.Compare(p.job.plan.width, q.job.plan.width), cmp.Compare(q.job.id, p.job.id))
	})
	o.items = slices.Insert(o.items, i, p)
	if n := len(o.items); n > outboxSize {
		over = []*parcel{o.items[n-1]}
		o.items = o.items[:n-1]
	}
	select {
	case o.wake <- struct{}{}:
	default: // the mailbox has a note already
	}
	return superseded, over
}

// take removes the most valuable parcel that may go now; nil, and when the next may, if there is none. The zero time
// means that the outbox is empty.
func (o *outbox) take(now time.Time) (*parcel, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var next time.Time
	for i, p := range o.items {
		if !p.notBefore.After(now) {
			o.items = slices.Delete(o.items, i, i+1)
			return p, time.Time{}
		}
		if next.IsZero() || p.notBefore.Before(next) {
			next = p.notBefore
		}
	}
	return nil, next
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.items)
}

// empty takes everything out.
func (o *outbox) empty() []*parcel {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	o.items = nil
	return items
}
