package pipeline

// localQueue holds our own votes, aggregates and blocks, each FIFO. Guarded by
// Pipeline.mu.
type localQueue struct {
	attestations, aggregates, blocks list
}

func newLocalQueue() localQueue {
	return localQueue{attestations: list{by: byOrder}, aggregates: list{by: byOrder}, blocks: list{by: byOrder}}
}

// list returns the list and the bound for what an item carries.
func (q *localQueue) list(k kind) (*list, int) {
	switch k {
	case kindAttestation:
		return &q.attestations, localAttestationBound
	case kindAggregate:
		return &q.aggregates, localAggregateBound
	case kindBlock, kindUnknown:
		return &q.blocks, localBlockBound
	}

	return &q.blocks, localBlockBound
}

// push queues an item of ours. When there is no room, the oldest slot goes, the
// first of it.
func (q *localQueue) push(it *Item) (victim *Item) {
	l, bound := q.list(it.kind)
	if l.n >= bound {
		victim = it
		for o := l.head; o != nil; o = l.next(o) {
			if o.Slot < victim.Slot || o.Slot == victim.Slot && victim == it {
				victim = o
			}
		}
		if victim == it {
			return it
		}
		l.remove(victim)
	}
	it.state = stateQueued
	l.push(it)

	return victim
}

// remove takes a waiting item out.
func (q *localQueue) remove(it *Item) {
	l, _ := q.list(it.kind)
	l.remove(it)
}
