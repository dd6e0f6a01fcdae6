package chain

import "aggnode/wire"

// Windows of the tree in slots. Nothing is finalized by this view yet, so time
// bounds the memory.
const (
	// branchWindow is how long a block off the head's chain stays: 68 minutes at
	// 4 s. At most maxPerSlot blocks a slot make 4096 blocks of some 200 bytes.
	// Older blocks are also refused as stale.
	branchWindow = 1024
	// chainWindow is how long a block of the head's chain stays: 3 days at 4 s.
	// Votes name the justified block as their source, and nets were seen without
	// finality for 14,000 slots; 65,536 blocks take about 15 MiB.
	chainWindow = 1 << 16
	// pruneStep and cutStep are how far a window moves at once, which spreads the
	// cost: some 0.1 ms each 64 slots, some 20 ms each 4096 slots.
	pruneStep = 64
	cutStep   = 4096
	// includedSlots is how many slots the votes in bodies are remembered: a
	// proposer only asks about votes that are useful in the next block. Up to 8
	// sets of 512 bytes a block.
	includedSlots = 64
)

// branchFloor returns the lowest slot of which blocks are taken.
func branchFloor(current wire.Slot) wire.Slot {
	if current < branchWindow {
		return 0
	}

	return current - branchWindow
}

// pruneLocked drops what the windows leave behind, each pruneStep slots.
func (t *Tree) pruneLocked(current wire.Slot) {
	if current < t.swept+pruneStep {
		return
	}
	t.swept = current
	t.eachSlotLocked(t.floor, current-includedSlots, func(nodes []*node) {
		for _, n := range nodes {
			n.included = nil
		}
	})
	floor := branchFloor(current)
	dropped := t.pruneBranchesLocked(floor)
	if t.head.slot-t.lowest >= chainWindow+cutStep {
		floor = t.head.slot - chainWindow
		dropped += t.cutLocked(floor)
	}
	if dropped > 0 {
		t.relinkLocked(floor)
	}
	t.metrics.pruned.Add(float64(dropped))
}

// pruneBranchesLocked drops blocks below floor that are not on the head's chain.
func (t *Tree) pruneBranchesLocked(floor wire.Slot) (dropped int) {
	if floor <= t.floor {
		return 0
	}
	t.eachSlotLocked(t.floor, floor-1, func(nodes []*node) {
		for _, n := range nodes {
			if t.head.ancestorAt(n.slot) != n {
				t.dropLocked(n)
				dropped++
			}
		}
	})
	t.floor = floor

	return dropped
}

// cutLocked drops everything below floor.
func (t *Tree) cutLocked(floor wire.Slot) (dropped int) {
	t.eachSlotLocked(t.lowest, floor-1, func(nodes []*node) {
		for _, n := range nodes {
			t.dropLocked(n)
			dropped++
		}
	})
	t.lowest = floor

	return dropped
}

// dropLocked removes one block.
func (t *Tree) dropLocked(n *node) {
	delete(t.blocks, n.root)
	rest := make([]*node, 0, maxPerSlot) // fresh: the caller ranges over the old slice
	for _, m := range t.slots[n.slot] {
		if m != n {
			rest = append(rest, m)
		}
	}
	if t.slots[n.slot] = rest; len(rest) == 0 {
		delete(t.slots, n.slot)
	}
}
