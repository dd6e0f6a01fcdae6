package pipeline

import (
	"container/heap"
	"context"
	"time"
)

// deadlines is a heap of items by the time at which something happens to them.
// Guarded by Pipeline.mu.
type deadlines []*Item

// Len, Less, Swap, Push and Pop are for container/heap.
func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].heapAt, d[j].heapAt = i+1, j+1
}

func (d *deadlines) Push(x any) {
	it, ok := x.(*Item)
	if !ok {
		panic("pipeline: deadline of something that is no item")
	}
	it.heapAt = len(*d) + 1
	*d = append(*d, it)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	it.heapAt = 0

	return it
}

// set gives an item its next deadline.
func (d *deadlines) set(it *Item, due time.Time) {
	it.due = due
	if it.heapAt == 0 {
		heap.Push(d, it)
	} else {
		heap.Fix(d, it.heapAt-1)
	}
}

// drop takes an item out.
func (d *deadlines) drop(it *Item) {
	if it.heapAt != 0 {
		heap.Remove(d, it.heapAt-1)
	}
}

// setDueLocked gives an item its next deadline and makes sure that the
// timekeeper wakes for it.
func (p *Pipeline) setDueLocked(it *Item, due time.Time) {
	p.deadlines.set(it, due)
	if p.sleeps && due.Before(p.wakeAt) {
		p.wakeAt = due
		select {
		case p.alarm <- struct{}{}:
		default: // an alarm is on its way already
		}
	}
}

// expireLocked does what time has come for.
func (p *Pipeline) expireLocked(now time.Time) {
	for len(p.deadlines) > 0 && !p.deadlines[0].due.After(now) {
		it := p.deadlines[0]
		p.deadlines.drop(it)
		p.lapseLocked(it, now)
	}
}

// keepTime answers items at their deadlines and reports once a slot, until ctx
// ends. It sleeps until the next deadline or slot, whichever is first.
func (p *Pipeline) keepTime(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.alarm:
		}
		timer.Reset(p.runDue())
	}
}

// runDue does what is due and returns how long nothing else is.
func (p *Pipeline) runDue() time.Duration {
	p.mu.Lock()
	now := p.clock.Now()
	p.advanceLocked(now)
	p.expireLocked(now)
	next := p.clock.SlotStart(p.slot + 1)
	if now.Before(p.genesis) {
		next = p.genesis
	}
	if len(p.deadlines) > 0 && p.deadlines[0].due.Before(next) {
		next = p.deadlines[0].due
	}
	p.sleeps, p.wakeAt = true, next
	slot, ended, report := p.tally.take(p.slot)
	p.mu.Unlock()
	if report {
		p.report(slot, ended)
	}

	return max(next.Sub(now), 0)
}
