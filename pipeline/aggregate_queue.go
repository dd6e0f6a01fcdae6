package pipeline

import (
	"slices"

	"aggnode/wire"
)

// aggregateQueue holds inbound aggregates. They cost a hundred to a thousand
// times what a vote costs, so what waits is judged: by what it would add, by its
// slot, and by what its peer sent before. The bound is small enough to look at
// all of it each time. Guarded by Pipeline.mu.
type aggregateQueue struct {
	current wire.Slot
	items   []*Item // in order of arrival
	bytes   int
}

// push queues an aggregate. allBusy tells that no worker is free. The items that
// have to go are appended to victims: items of the queue that are out of it
// already, or the newcomer, which then was not queued.
func (q *aggregateQueue) push(it *Item, allBusy bool, victims []*Item) []*Item {
	if allBusy && it.peer.queuedAggs >= aggregatesPerPeer {
		v := q.leastOf(it)
		victims = append(victims, v)
		if v == it {
			return victims
		}
		q.remove(v)
	}
	for len(q.items) >= aggregateBound || q.bytes+it.Size > aggregateBytes {
		v := q.victim(it)
		victims = append(victims, v)
		if v == it {
			return victims
		}
		q.remove(v)
	}
	it.state = stateQueued
	q.items = append(q.items, it)
	q.bytes += it.Size
	it.peer.queuedAggs++
	it.peer.queuedAggBytes += it.Size

	return victims
}

// remove takes a waiting aggregate out.
func (q *aggregateQueue) remove(it *Item) {
	i := slices.Index(q.items, it)
	q.items = slices.Delete(q.items, i, i+1)
	q.bytes -= it.Size
	it.peer.queuedAggs--
	it.peer.queuedAggBytes -= it.Size
}

// take removes the next aggregate and appends it to dst, with more of those that
// come after it where many wait: at most a share of them and most in all, so that
// the answer of the first comes a little later and those of the many behind it
// sooner. None of them covers another: the wider one may make the other
// superfluous.
func (q *aggregateQueue) take(dst []*Item, most int) []*Item {
	for n := min(most, 1+len(q.items)/waitingPerExtra); n > 0; n-- {
		next := q.next(dst)
		if next == nil {
			break
		}
		q.remove(next)
		dst = append(dst, next)
	}

	return dst
}

// next returns the first in order that is not nested with any that was taken.
func (q *aggregateQueue) next(taken []*Item) *Item {
	var next *Item
	for _, it := range q.items {
		if (next == nil || q.before(it, next)) && !slices.ContainsFunc(taken, it.isNested) {
			next = it
		}
	}

	return next
}

// before tells whether a is served before b: those that still get a verdict, of
// peers without a forged aggregate, of the current slot, with the larger gain,
// in order of arrival. The gain of a forger is what it claims, hence the second
// condition.
func (q *aggregateQueue) before(a, b *Item) bool {
	switch {
	case a.ended != b.ended:
		return b.ended
	case a.peer.forgedAggregates() != b.peer.forgedAggregates():
		return b.peer.forgedAggregates()
	case (a.Slot >= q.current) != (b.Slot >= q.current):
		return a.Slot >= q.current
	case a.gain != b.gain:
		return a.gain > b.gain
	default:
		return a.seq < b.seq
	}
}

// leastOf returns the last in order of the newcomer and its peer's aggregates.
func (q *aggregateQueue) leastOf(newcomer *Item) *Item {
	least := newcomer
	for _, it := range q.items {
		if it.peer == newcomer.peer && q.before(least, it) {
			least = it
		}
	}

	return least
}

// victim returns who goes when newcomer comes: one whose verdict was given, else
// one of the oldest slot, of the peer with the most bytes, the biggest and then
// the newest of it. So an honest small one never goes for an unverified big one.
// Subsumed ones are not looked for: they left when the larger one verified.
func (q *aggregateQueue) victim(newcomer *Item) *Item {
	oldest := min(newcomer.Slot, q.current)
	for _, it := range q.items {
		if it.ended {
			return it
		}
		oldest = min(oldest, it.Slot)
	}
	var victim *Item
	consider := func(it *Item) {
		if min(it.Slot, q.current) == oldest && (victim == nil || q.heavier(it, victim, newcomer)) {
			victim = it
		}
	}
	consider(newcomer)
	for _, it := range q.items {
		consider(it)
	}

	return victim
}

// heavier tells whether a goes before b does.
func (q *aggregateQueue) heavier(a, b, newcomer *Item) bool {
	bytesOf := func(it *Item) int {
		n := it.peer.queuedAggBytes
		if it.peer == newcomer.peer {
			n += newcomer.Size
		}

		return n
	}
	if x, y := bytesOf(a), bytesOf(b); x != y {
		return x > y
	}
	if a.Size != b.Size {
		return a.Size > b.Size
	}

	return a.seq > b.seq
}
