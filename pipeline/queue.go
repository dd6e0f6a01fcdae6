package pipeline

import "aggnode/wire"

// queue is all that waits for a worker, and the rule of what a free worker takes.
// It knows nothing of verdicts and waiting callers. Guarded by Pipeline.mu.
type queue struct {
	workers     int
	running     [classEnd]int // items on workers
	aggregating int           // workers that hold aggregates, local ones included
	busy        int           // workers that hold a batch
	sharing     func() int    // see Config.AggregateBatch; nil: 1

	blocks       blockQueue
	attestations attestationQueue
	released     list // verified votes whose block came; bounded by the park they come from
	aggregates   aggregateQueue
	local        localQueue
}

func newQueue(limits Limits, validators int) queue {
	return queue{
		workers:      limits.Workers,
		attestations: newAttestationQueue(limits.Attestations, validators),
		released:     list{by: byOrder},
		local:        newLocalQueue(),
	}
}

// advance tells the queues the current slot.
func (q *queue) advance(slot wire.Slot) {
	q.attestations.current, q.aggregates.current = slot, slot
}

// take appends to dst what a free worker does next, nothing when nothing may be
// done. The rule, in order: a block; aggregates if no worker has any; votes;
// aggregates if fewer than W-1 have. With two workers or more, aggregates thus
// always have one and votes always have one. Our own items go before inbound
// ones of their kind.
func (q *queue) take(dst []*Item) []*Item {
	dst = q.choose(dst)
	if len(dst) == 0 {
		return dst
	}
	q.busy++
	if dst[0].kind == kindAggregate {
		q.aggregating++
	}
	for _, it := range dst {
		it.state = stateRunning
		q.running[it.Class]++
	}

	return dst
}

func (q *queue) choose(dst []*Item) []*Item {
	if it := q.local.blocks.pop(); it != nil {
		return append(dst, it)
	}
	if it := q.blocks.take(); it != nil {
		return append(dst, it)
	}
	if q.aggregating == 0 {
		if dst = q.takeAggregates(dst); len(dst) > 0 {
			return dst
		}
	}
	if dst = takeBatch(&q.released, dst); len(dst) > 0 {
		return dst
	}
	if dst = takeBatch(&q.local.attestations, dst); len(dst) > 0 {
		return dst
	}
	if dst = q.attestations.take(dst); len(dst) > 0 {
		return dst
	}
	if q.aggregating < q.workers-1 {
		return q.takeAggregates(dst)
	}

	return dst
}

// takeAggregates appends one of ours, which waits for nobody, or inbound ones.
func (q *queue) takeAggregates(dst []*Item) []*Item {
	if it := q.local.aggregates.pop(); it != nil {
		return append(dst, it)
	}
	most := 1
	if q.sharing != nil {
		most = min(q.sharing(), maxBatch)
	}

	return q.aggregates.take(dst, most)
}

// takeBatch removes the first vote of a list and those behind it, without a gap,
// that are over the same data.
func takeBatch(l *list, dst []*Item) []*Item {
	for len(dst) < maxBatch && l.head != nil && (len(dst) == 0 || l.head.DataRoot == dst[0].DataRoot) {
		dst = append(dst, l.pop())
	}

	return dst
}

// ready tells whether take would return something.
func (q *queue) ready() bool {
	if q.local.blocks.n+len(q.blocks.items)+q.released.n+q.local.attestations.n+q.attestations.n > 0 {
		return true
	}

	return q.local.aggregates.n+len(q.aggregates.items) > 0 && (q.aggregating == 0 || q.aggregating < q.workers-1)
}

// putDown takes what a worker holds off it.
func (q *queue) putDown(items []*Item) {
	q.busy--
	if items[0].kind == kindAggregate {
		q.aggregating--
	}
	for _, it := range items {
		q.running[it.Class]--
	}
}

// remove takes a waiting item out.
func (q *queue) remove(it *Item) {
	switch {
	case it.state == stateReleased:
		q.released.remove(it)
	case it.Class == ClassLocal:
		q.local.remove(it)
	case it.kind == kindBlock:
		q.blocks.remove(it)
	case it.kind == kindAttestation:
		q.attestations.remove(it)
	default:
		q.aggregates.remove(it)
	}
}

// waiting calls f for each item that waits for a worker, in no certain order. f
// must not change the queue.
func (q *queue) waiting(f func(*Item)) {
	each := func(l *list) {
		for it := l.head; it != nil; it = l.next(it) {
			f(it)
		}
	}
	each(&q.local.blocks)
	each(&q.local.attestations)
	each(&q.local.aggregates)
	each(&q.released)
	for _, s := range q.attestations.slots {
		each(&s.order)
	}
	each(&q.attestations.late)
	for _, it := range q.blocks.items {
		f(it)
	}
	for _, it := range q.aggregates.items {
		f(it)
	}
}
