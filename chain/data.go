package chain

import (
	"context"

	"aggnode/wire"
)

// CheckData checks the checkpoints of a vote or an aggregate against the tree:
// rules 1 to 4 and 6 of the import rules (leanSpec fork_choice.py,
// validate_attestation), the same on both paths. The future bound, rule 7, is
// the caller's. Answers:
//
//   - ReasonNone: all blocks known and consistent.
//   - ReasonUnknownHead: missing is a block to wait for. The head is named first,
//     because its ancestors are known when it is.
//   - ReasonBadCheckpoints: provably wrong, from the bytes or from known blocks.
//
// It costs three map look-ups and two ancestor searches, about a microsecond.
func (t *Tree) CheckData(d *wire.AttestationData) (r wire.Reason, missing wire.Root) {
	if d.Source.Slot > d.Target.Slot || d.Head.Slot < d.Target.Slot || d.Slot < d.Head.Slot {
		return wire.ReasonBadCheckpoints, wire.Root{}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var nodes [3]*node
	for i, c := range [3]*wire.Checkpoint{&d.Head, &d.Target, &d.Source} {
		n, ok := t.blocks[c.Root]
		if !ok {
			return wire.ReasonUnknownHead, c.Root
		}
		if n.slot != c.Slot {
			return wire.ReasonBadCheckpoints, wire.Root{}
		}
		nodes[i] = n
	}
	head, target, source := nodes[0], nodes[1], nodes[2]
	for _, pair := range [2][2]*node{{target, head}, {source, target}} {
		ancestor, of := pair[0], pair[1]
		switch ancestor.relation(of) {
		case related:
		case unrelated:
			return wire.ReasonBadCheckpoints, wire.Root{}
		case relationUnknown:
			return wire.ReasonUnknownHead, of.gap.parentRoot
		}
	}

	return wire.ReasonNone, wire.Root{}
}

// IsAncestor reports whether a is b or an ancestor of b. Unknown blocks, and
// blocks that a gap separates, are not. The cost is O(log length of the chain).
func (t *Tree) IsAncestor(a, b wire.Root) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	na, nb := t.blocks[a], t.blocks[b]

	return na != nil && nb != nil && na.relation(nb) == related
}

// relation is what the tree knows about one block being an ancestor of another.
type relation uint8

const (
	relationUnknown relation = iota // a gap hides the answer
	related
	unrelated
)

// relation answers whether n is b or an ancestor of b. Everything descends from
// genesis, gap or not.
func (n *node) relation(b *node) relation {
	switch {
	case b.ancestorAt(n.slot) == n:
		return related
	case b.gap != nil && b.gap.slot > n.slot:
		return relationUnknown
	default:
		return unrelated
	}
}

// AttestationData returns what a vote of the slot says by this view: head is the
// highest block known whose slot is not above slot, target is the head, source
// the justified checkpoint.
func (t *Tree) AttestationData(slot wire.Slot) wire.AttestationData {
	t.mu.RLock()
	defer t.mu.RUnlock()
	head := t.headAtLocked(slot).checkpoint()

	return wire.AttestationData{Slot: slot, Head: head, Target: head, Source: t.genesis.checkpoint()}
}

// headAtLocked returns the best block at or below slot.
func (t *Tree) headAtLocked(slot wire.Slot) *node {
	if t.head.slot <= slot {
		return t.head
	}
	for s := slot; s >= t.lowest; s-- { // at most chainWindow steps; one or two in a live network
		if nodes := t.slots[s]; len(nodes) > 0 {
			return best(nodes)
		}
	}

	return t.genesis
}

// best returns the node that beats the others; nodes is not empty.
func best(nodes []*node) *node {
	b := nodes[0]
	for _, n := range nodes[1:] {
		if n.beats(b) {
			b = n
		}
	}

	return b
}

// BlockBySlot returns the root of the block of this slot on the head's chain; ok
// is false when there is none or it is not known.
func (t *Tree) BlockBySlot(slot wire.Slot) (root wire.Root, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.head.ancestorAt(slot)

	return n.root, n.slot == slot
}

// Included returns who is already in blocks of the chain of head with a vote for
// the data, as far as the newest includedSlots blocks tell.
func (t *Tree) Included(head wire.Root, data wire.DataRoot) wire.Participants {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var in wire.Participants
	n, ok := t.blocks[head]
	for i := 0; ok && i < includedSlots && n != t.genesis; i++ {
		for _, v := range n.included {
			if v.data == data {
				in = in.Union(v.participants)
			}
		}
		n = n.parent
	}

	return in
}

// WaitBlock returns nil as soon as a block of the slot is known, or the error of
// ctx when it ends before.
func (t *Tree) WaitBlock(ctx context.Context, slot wire.Slot) error {
	for {
		t.mu.RLock()
		known, changed := len(t.slots[slot]) > 0, t.changed
		t.mu.RUnlock()
		if known {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
