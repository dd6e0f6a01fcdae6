package chain

import (
	"time"

	"aggnode/wire"
)

// maxPerSlot is the number of blocks kept for one slot: an honest proposer makes
// one, an equivocating one makes votes for several possible, and beyond a few
// only memory is served (ARCHITECTURE.md section 2).
const maxPerSlot = 4

// AdmitBlock applies the rules that need no signature, before one is checked:
// ReasonNone if InsertBlock is worth calling. root is the block's root. Nothing
// is stored but the arrival, for the comparison of clocks.
func (t *Tree) AdmitBlock(b *wire.SignedBlock, root wire.Root) wire.Reason {
	if r := t.checkContent(&b.Block); r != wire.ReasonNone {
		return r
	}
	t.ObserveArrival(b.Block.Slot)
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, r := t.admitLocked(&b.Block, root, t.clock.Now())

	return r
}

// InsertBlock imports a block whose signature was checked, with all parked
// blocks that wait for it, or parks it: then the answer is ReasonUnknownParent.
// The rules of AdmitBlock are applied again, since time and tree moved on. size
// is the length of the block's encoding in bytes, by which parking is bounded.
func (t *Tree) InsertBlock(b *wire.SignedBlock, root wire.Root, size int) wire.Reason {
	now := t.clock.Now()
	if r := t.checkContent(&b.Block); r != wire.ReasonNone {
		return r
	}
	p := &parkedBlock{
		root:     root,
		parent:   b.Block.ParentRoot,
		slot:     b.Block.Slot,
		included: inclusions(&b.Block, t.cfg.Profile.MaxAttestationsData),
		size:     size,
		arrived:  now,
	}
	change, r := t.insert(&b.Block, p, now)
	t.logChange(&change, now)
	if t.cfg.OnImport != nil {
		for _, n := range change.imported {
			t.cfg.OnImport(n.root, n.slot)
		}
	}

	return r
}

// change is what one insertion did to the tree.
type change struct {
	imported []*node      // parents first
	joined   *parkedBlock // the block that was hung over a gap, nil if none
	head     *node        // the head after it, nil when it is the one before
}

// checkContent applies the rules that need the block alone: the proposer's turn,
// participants of the registry, and no attestation data twice (leanSpec
// fork_choice.py, DUPLICATE_ATTESTATION_DATA).
func (t *Tree) checkContent(b *wire.Block) wire.Reason {
	if b.ProposerIndex != t.proposer(b.Slot) {
		return wire.ReasonBadProposer
	}
	seen := make(map[wire.AttestationData]struct{}, len(b.Body.Attestations))
	for i := range b.Body.Attestations {
		a := &b.Body.Attestations[i]
		if v, ok := a.Participants.Highest(); ok && v >= wire.ValidatorIndex(t.cfg.Validators) {
			return wire.ReasonUnknownValidator
		}
		seen[a.Data] = struct{}{}
	}
	if len(seen) < len(b.Body.Attestations) {
		return wire.ReasonMalformed
	}

	return wire.ReasonNone
}

// admitLocked applies the rules that need time and tree. parent is nil for a
// block that may be parked.
func (t *Tree) admitLocked(b *wire.Block, root wire.Root, now time.Time) (parent *node, r wire.Reason) {
	switch {
	case t.clock.SlotStart(b.Slot).Sub(now) > t.clock.interval:
		return nil, wire.ReasonEarly
	case b.Slot <= t.genesis.slot || b.Slot < branchFloor(t.slotAt(now)):
		return nil, wire.ReasonStale
	case t.blocks[root] != nil || t.parked.blocks[root] != nil:
		return nil, wire.ReasonDuplicate
	}
	parent = t.blocks[b.ParentRoot]
	switch {
	case parent == nil:
		return nil, t.parked.admit(b.Slot)
	case parent.slot >= b.Slot:
		return nil, wire.ReasonMalformed // the parent root commits to a slot that is not older
	case len(t.slots[b.Slot]) >= maxPerSlot:
		return nil, wire.ReasonTooManyForSlot
	}

	return parent, wire.ReasonNone
}

// slotAt returns the slot of a time, 0 before genesis.
func (t *Tree) slotAt(now time.Time) wire.Slot {
	slot, _ := split(t.clock.intervals(now))

	return slot
}

// insert imports or parks p.
func (t *Tree) insert(b *wire.Block, p *parkedBlock, now time.Time) (c change, r wire.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current, before := t.slotAt(now), t.head
	t.metrics.dropParked(parkExpired, t.parked.expire(current))
	parent, r := t.admitLocked(b, p.root, now)
	if r != wire.ReasonNone {
		return change{}, r
	}
	if parent != nil {
		c.imported = t.importLocked(p, parent)
	} else {
		t.metrics.dropParked(parkFull, t.parked.add(p))
		if c.joined = t.parked.chainStart(p, t.head.slot, now.Add(-t.clock.slot/2)); c.joined != nil {
			c.imported = t.importLocked(c.joined, nil)
			t.metrics.gaps.Inc()
		}
	}
	if t.blocks[p.root] == nil {
		r = wire.ReasonUnknownParent
	}
	if len(c.imported) > 0 {
		t.pruneLocked(current)
		close(t.changed)
		t.changed = make(chan struct{})
	}
	if t.head != before {
		c.head = t.head
	}

	return c, r
}

// importLocked adds p under parent, nil standing for a gap, and then every
// parked descendant. Parked blocks beyond the bound of their slot are dropped.
func (t *Tree) importLocked(p *parkedBlock, parent *node) (imported []*node) {
	type step struct {
		block  *parkedBlock
		parent *node
	}
	for todo := []step{{p, parent}}; len(todo) > 0; todo = todo[1:] {
		p, parent := todo[0].block, todo[0].parent
		t.parked.remove(p)
		if parent != nil && parent.slot >= p.slot || len(t.slots[p.slot]) >= maxPerSlot {
			t.metrics.dropParked(parkInvalid, 1)

			continue
		}
		n := t.addLocked(p, parent)
		imported = append(imported, n)
		for _, child := range t.parked.childrenOf(p.root) {
			todo = append(todo, step{child, n})
		}
	}

	return imported
}

// addLocked makes p a block of the tree.
func (t *Tree) addLocked(p *parkedBlock, parent *node) *node {
	n := &node{root: p.root, parentRoot: p.parent, slot: p.slot, included: p.included}
	if parent != nil {
		n.link(parent)
	} else {
		n.linkOverGap(t.genesis)
	}
	t.blocks[n.root] = n
	t.slots[n.slot] = append(t.slots[n.slot], n)
	if n.slot < t.lowest {
		t.lowest = n.slot
	}
	if n.beats(t.head) {
		t.head = n
	}
	t.closeGapsLocked(n)
	t.metrics.imported.Inc()

	return n
}

// logChange logs a gap and a new head.
func (t *Tree) logChange(c *change, now time.Time) {
	if j := c.joined; j != nil {
		t.log.Warn("follow the chain over a gap: blocks before this one were not seen",
			"slot", uint64(j.slot), "root", j.root.Short(), "missing", j.parent.Short())
	}
	if h := c.head; h != nil {
		t.log.Info("new head", "slot", uint64(h.slot), "root", h.root.Short(), "parent", h.parentRoot.Short(),
			"into_slot_ms", now.Sub(t.clock.SlotStart(h.slot)).Milliseconds())
	}
}

// inclusions returns the first limit entries of a body in the form that the tree
// keeps.
func inclusions(b *wire.Block, limit int) []inclusion {
	entries := b.Body.Attestations[:min(limit, len(b.Body.Attestations))]
	if len(entries) == 0 {
		return nil
	}
	in := make([]inclusion, len(entries))
	for i := range entries {
		in[i] = inclusion{data: entries[i].Data.HashTreeRoot(), participants: entries[i].Participants}
	}

	return in
}
