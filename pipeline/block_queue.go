package pipeline

import "slices"

// blockQueue holds inbound blocks, parents first: by slot, and FIFO inside one.
// Guarded by Pipeline.mu.
type blockQueue struct {
	items []*Item
}

// push queues a block. When there is no room, the newest block of the peer with
// the most queued goes, the newcomer among equals: one spammer can not keep the
// block of the slot out.
func (q *blockQueue) push(it *Item) (victim *Item) {
	if len(q.items) >= blockBound {
		victim = it
		most := it.peer.queuedBlocks + 1
		for _, o := range q.items {
			n := o.peer.queuedBlocks
			if o.peer == it.peer {
				continue // the newcomer is newer
			}
			if n > most || n == most && victim != it && o.seq > victim.seq {
				victim, most = o, n
			}
		}
		if victim == it {
			return it
		}
		q.remove(victim)
	}
	it.state = stateQueued
	at, _ := slices.BinarySearchFunc(q.items, it, func(a, b *Item) int {
		if a.Slot <= b.Slot {
			return -1 // behind those of its slot
		}

		return 1
	})
	q.items = slices.Insert(q.items, at, it)
	it.peer.queuedBlocks++

	return victim
}

// remove takes a waiting block out.
func (q *blockQueue) remove(it *Item) {
	i := slices.Index(q.items, it)
	q.items = slices.Delete(q.items, i, i+1)
	it.peer.queuedBlocks--
}

// take removes and returns the next block, nil when there is none.
func (q *blockQueue) take() *Item {
	if len(q.items) == 0 {
		return nil
	}
	it := q.items[0]
	q.remove(it)

	return it
}
