package pipeline

import (
	"context"
	"time"
)

// deadlines is a binary heap of items by the time at which something happens to
// them. The times lie beside each other in it, as distances from genesis: every
// vote goes in and out, past some that wait, and to look into the items for their
// times was most of that. Guarded by Pipeline.mu.
type deadlines struct {
	genesis time.Time // immutable
	heap    []deadline
}

// deadline is the next thing to happen to an item by time. A time that is more
// than 292 years from genesis counts as the end of these.
type deadline struct {
	at   time.Duration // since genesis
	item *Item
}

// len returns the number of items with a deadline.
func (d *deadlines) len() int { return len(d.heap) }

// next returns the earliest deadline; there is one.
func (d *deadlines) next() time.Time { return d.genesis.Add(d.heap[0].at) }

// due returns an item whose deadline has come, nil when there is none.
func (d *deadlines) due(now time.Time) *Item {
	if len(d.heap) == 0 || d.heap[0].at > now.Sub(d.genesis) {
		return nil
	}

	return d.heap[0].item
}

// each calls f for each item that has a deadline, in no certain order. f must not
// change any.
func (d *deadlines) each(f func(*Item)) {
	for i := range d.heap {
		f(d.heap[i].item)
	}
}

// set gives an item its next deadline.
func (d *deadlines) set(it *Item, due time.Time) {
	entry := deadline{at: due.Sub(d.genesis), item: it}
	if it.heapAt == 0 {
		d.heap = append(d.heap, entry)
		d.up(len(d.heap)-1, entry)

		return
	}
	d.settle(it.heapAt-1, entry)
}

// drop takes an item out.
func (d *deadlines) drop(it *Item) {
	if it.heapAt == 0 {
		return
	}
	i, last := it.heapAt-1, len(d.heap)-1
	moved := d.heap[last]
	d.heap[last] = deadline{}
	d.heap = d.heap[:last]
	it.heapAt = 0
	if i < last {
		d.settle(i, moved)
	}
}

// settle puts an entry where it belongs, starting from a place that is free.
func (d *deadlines) settle(i int, entry deadline) {
	if at := d.down(i, entry); at == i {
		d.up(i, entry)
	}
}

// down moves a free place away from the root as far as it takes, fills it and
// returns it.
func (d *deadlines) down(i int, entry deadline) int {
	for {
		child := 2*i + 1
		if child >= len(d.heap) {
			break
		}
		if right := child + 1; right < len(d.heap) && d.heap[right].at < d.heap[child].at {
			child = right
		}
		if d.heap[child].at >= entry.at {
			break
		}
		d.put(i, d.heap[child])
		i = child
	}
	d.put(i, entry)

	return i
}

// up moves a free place towards the root as far as it takes and fills it.
func (d *deadlines) up(i int, entry deadline) {
	for i > 0 {
		parent := (i - 1) / 2
		if d.heap[parent].at <= entry.at {
			break
		}
		d.put(i, d.heap[parent])
		i = parent
	}
	d.put(i, entry)
}

// put fills a place.
func (d *deadlines) put(i int, entry deadline) {
	d.heap[i] = entry
	entry.item.heapAt = i + 1
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
	for it := p.deadlines.due(now); it != nil; it = p.deadlines.due(now) {
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
	if p.deadlines.len() > 0 {
		next = earliest(p.deadlines.next(), next)
	}
	p.sleeps, p.wakeAt = true, next
	slot, ended, report := p.tally.take(p.slot)
	p.mu.Unlock()
	if report {
		p.report(slot, ended)
	}

	return max(next.Sub(now), 0)
}
