package chain

import (
	"time"

	"aggnode/wire"
)

// Bounds of parked blocks (ARCHITECTURE.md section 2). A parked block is
// waiting for one or two that gossip delivered out of order, so a few slots are
// enough; with real proofs a block has about 250 KB, and 16 MiB is a bound that
// only oversize blocks meet.
const (
	maxParked        = 16
	maxParkedPerSlot = 2
	maxParkedBytes   = 16 << 20
	parkedSlots      = 32 // slots after which a parked block is given up (guess, not measured)
)

// parkedBlock is a block whose signature was checked and whose parent is not
// known. Immutable.
type parkedBlock struct {
	root     wire.Root
	parent   wire.Root
	slot     wire.Slot
	included []inclusion
	size     int // of its encoding
	arrived  time.Time
}

// parking holds the blocks that wait for their parent. Full: the oldest slot
// gives way to a newer one, everything else is refused. Guarded by Tree.mu.
type parking struct {
	blocks map[wire.Root]*parkedBlock
	bytes  int
}

func newParking() parking { return parking{blocks: make(map[wire.Root]*parkedBlock, maxParked)} }

// admit tells whether a block of the slot with unknown parent would be parked.
func (p *parking) admit(slot wire.Slot) wire.Reason {
	inSlot := 0
	for _, b := range p.blocks {
		if b.slot == slot {
			inSlot++
		}
	}
	switch {
	case inSlot >= maxParkedPerSlot:
		return wire.ReasonTooManyForSlot
	case len(p.blocks) >= maxParked && p.oldest().slot >= slot:
		return wire.ReasonUnknownParent
	}

	return wire.ReasonNone
}

// add parks a block that admit let in and returns how many blocks had no place
// any more.
func (p *parking) add(b *parkedBlock) (dropped int) {
	p.blocks[b.root] = b
	p.bytes += b.size
	for len(p.blocks) > maxParked || p.bytes > maxParkedBytes {
		p.remove(p.oldest())
		dropped++
	}

	return dropped
}

// remove forgets a block; one that is not parked is fine.
func (p *parking) remove(b *parkedBlock) {
	if p.blocks[b.root] == b {
		delete(p.blocks, b.root)
		p.bytes -= b.size
	}
}

// oldest returns the parked block of the lowest slot, the one that came first
// among equals; nil when there is none.
func (p *parking) oldest() (o *parkedBlock) {
	for _, b := range p.blocks {
		if o == nil || b.slot < o.slot || b.slot == o.slot && b.arrived.Before(o.arrived) {
			o = b
		}
	}

	return o
}

// expire gives up blocks that waited too long and returns how many.
func (p *parking) expire(current wire.Slot) (expired int) {
	for _, b := range p.blocks {
		if b.slot+parkedSlots < current {
			p.remove(b)
			expired++
		}
	}

	return expired
}

// childrenOf returns the parked blocks that wait for root, in slot order.
func (p *parking) childrenOf(root wire.Root) (children []*parkedBlock) {
	for _, b := range p.blocks {
		if b.parent == root {
			children = append(children, b)
		}
	}
	sortParked(children)

	return children
}
