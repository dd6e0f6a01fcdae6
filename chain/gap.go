package chain

import (
	"bytes"
	"slices"
	"time"

	"aggnode/wire"
)

// A gap is a piece of chain that this node did not see: it started late, or lost
// a block, and blocks are not fetched. The block above the gap hangs under
// genesis, which is its ancestor in any case; that an unknown block lies between
// is remembered in node.gap, and a question whose answer the gap hides is
// answered "unknown", so nothing is refused for it.

// chainStart returns the oldest parked ancestor of newest when it is time to
// join that chain to the tree over a gap, else nil: the chain has two blocks or
// more, it is ahead of the tree, and its start arrived at or before the time
// given, so that gossip had its chance to deliver what is missing.
func (p *parking) chainStart(newest *parkedBlock, head wire.Slot, before time.Time) *parkedBlock {
	if newest.slot <= head {
		return nil
	}
	start := newest
	for parent := p.blocks[start.parent]; parent != nil && parent.slot < start.slot; parent = p.blocks[start.parent] {
		start = parent
	}
	if start == newest || start.arrived.After(before) {
		return nil
	}

	return start
}

// closeGapsLocked hangs blocks under n that were joined over a gap because n was
// not known.
func (t *Tree) closeGapsLocked(n *node) {
	var above []*node
	t.eachSlotLocked(n.slot+1, t.head.slot, func(nodes []*node) {
		for _, m := range nodes {
			if m.gap == m && m.parentRoot == n.root {
				m.parent = n
				m.gap = nil
				above = append(above, m)
			}
		}
	})
	if len(above) > 0 {
		t.relinkLocked(above[0].slot)
	}
}

// relinkLocked computes the links of all blocks from a slot on again, after
// blocks below were added or dropped. Blocks whose parent is gone hang over a
// gap.
func (t *Tree) relinkLocked(from wire.Slot) {
	t.eachSlotLocked(from, t.head.slot, func(nodes []*node) {
		for _, n := range nodes {
			if n.gap == n || t.blocks[n.parent.root] != n.parent {
				n.linkOverGap(t.genesis)
			} else {
				n.link(n.parent)
			}
		}
	})
}

// eachSlotLocked calls f for the blocks of each slot from first to last, in
// order, whichever way is shorter.
func (t *Tree) eachSlotLocked(first, last wire.Slot, f func([]*node)) {
	first, last = max(first, t.lowest), min(last, t.head.slot)
	if first > last {
		return
	}
	if uint64(last-first) <= uint64(len(t.slots)) {
		for s := first; s <= last; s++ {
			f(t.slots[s])
		}

		return
	}
	var slots []wire.Slot
	for s := range t.slots {
		if s >= first && s <= last {
			slots = append(slots, s)
		}
	}
	slices.Sort(slots)
	for _, s := range slots {
		f(t.slots[s])
	}
}

// sortParked orders blocks by slot, then root.
func sortParked(blocks []*parkedBlock) {
	slices.SortFunc(blocks, func(a, b *parkedBlock) int {
		if a.slot != b.slot {
			if a.slot < b.slot {
				return -1
			}

			return 1
		}

		return bytes.Compare(a.root[:], b.root[:])
	})
}
