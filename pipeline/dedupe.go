package pipeline

import (
	"slices"

	"aggnode/wire"
)

const (
	// factSlots is the number of slots of which verified facts are kept: with
	// votes admitted for the previous, the current and one early slot, and
	// aggregates for one more, exactly the slots that can still be asked for.
	factSlots = 4

	// maxRoots is the number of data roots of a slot that are told apart. One or
	// two are normal; each further one took a validator that signed it.
	maxRoots = 64

	// maxSetsPerRoot is the number of verified aggregates of a data root that
	// can subsume others, none a subset of another. The smallest goes first.
	maxSetsPerRoot = 16
)

// dedupe knows what was verified in the last slots, and nothing else: a forger
// can neither write to it nor flush it (invariant 4). It is a ring and not a
// cache for that reason. Guarded by Pipeline.mu.
//
// Memory: 4 slots of one byte a validator, 64 data roots and 16 participant sets
// of at most 512 bytes each: 2.2 MB when all of it is in use, which takes 1,024
// aggregates a slot with sound proofs.
type dedupe struct {
	validators int
	ring       [factSlots]slotFacts
}

// slotFacts are the verified facts of one slot.
type slotFacts struct {
	slot  wire.Slot
	used  bool
	roots []rootFacts // in order of appearance, at most maxRoots
	// attestations has one byte a validator: 0 = no verified vote, otherwise the index
	// in roots plus one, or otherRoot. The high bit marks an equivocation.
	attestations []uint8
}

// rootFacts are the verified facts about one data root.
type rootFacts struct {
	root    wire.DataRoot
	sets    []wire.Participants // verified aggregates
	covered wire.Participants   // union of all of them
}

const (
	otherRoot   = maxRoots + 1 // a root beyond maxRoots
	equivocated = 0x80
)

func newDedupe(validators int) dedupe { return dedupe{validators: validators} }

// facts returns the facts of a slot, nil when there are none.
func (d *dedupe) facts(slot wire.Slot) *slotFacts {
	f := &d.ring[slot%factSlots]
	if !f.used || f.slot != slot {
		return nil
	}

	return f
}

// open returns the facts of a slot to write to, nil when the ring has moved
// beyond it.
func (d *dedupe) open(slot wire.Slot) *slotFacts {
	f := &d.ring[slot%factSlots]
	switch {
	case f.used && f.slot > slot:
		return nil
	case f.used && f.slot == slot:
		return f
	}
	if f.attestations == nil {
		f.attestations = make([]uint8, d.validators)
	}
	clear(f.attestations)
	clear(f.roots)
	f.slot, f.used, f.roots = slot, true, f.roots[:0]

	return f
}

// index returns the number of a data root in votes, 0 when it has none.
func (f *slotFacts) index(root wire.DataRoot) uint8 {
	for i := range f.roots {
		if f.roots[i].root == root {
			return uint8(i + 1)
		}
	}

	return 0
}

// add returns the number of a data root, giving it one when there is room.
func (f *slotFacts) add(root wire.DataRoot) uint8 {
	if i := f.index(root); i != 0 {
		return i
	}
	if len(f.roots) == maxRoots {
		return otherRoot
	}
	f.roots = append(f.roots, rootFacts{root: root})

	return uint8(len(f.roots))
}

// checkAttestation says what is known of a vote before its signature is checked:
// ReasonDuplicate when this validator's vote for the data root was verified,
// ReasonEquivocation when two different votes of it for the slot were and this
// is not the first, otherwise ReasonNone. A second vote of a validator is not
// called an equivocation before its signature is checked, it may be forged.
func (d *dedupe) checkAttestation(v wire.ValidatorIndex, slot wire.Slot, root wire.DataRoot) wire.Reason {
	f := d.facts(slot)
	if f == nil || uint64(v) >= uint64(len(f.attestations)) || f.attestations[v] == 0 {
		return wire.ReasonNone
	}
	known := f.attestations[v] &^ equivocated
	if f.same(known, root) {
		return wire.ReasonDuplicate
	}
	if f.attestations[v]&equivocated != 0 {
		return wire.ReasonEquivocation
	}

	return wire.ReasonNone
}

// same tells whether the number known stands for the data root. Two roots beyond
// maxRoots can not be told apart and count as the same.
func (f *slotFacts) same(known uint8, root wire.DataRoot) bool {
	i := f.index(root)
	if i == 0 {
		return known == otherRoot
	}

	return known == i
}

// markAttestation records a vote whose signature is good. ReasonNone: it is the first
// of its validator in the slot. Otherwise it is a duplicate of the first or an
// equivocation.
func (d *dedupe) markAttestation(v wire.ValidatorIndex, slot wire.Slot, root wire.DataRoot) wire.Reason {
	f := d.open(slot)
	if f == nil || uint64(v) >= uint64(len(f.attestations)) {
		return wire.ReasonNone // too old to be asked for again
	}
	switch known := f.attestations[v] &^ equivocated; {
	case known == 0:
		f.attestations[v] = f.add(root)

		return wire.ReasonNone
	case f.same(known, root):
		return wire.ReasonDuplicate
	default:
		f.attestations[v] |= equivocated

		return wire.ReasonEquivocation
	}
}

// forgetAttestation takes back the mark of a verified vote that could not be kept, so
// that another copy of it is not called a duplicate.
func (d *dedupe) forgetAttestation(v wire.ValidatorIndex, slot wire.Slot) {
	if f := d.facts(slot); f != nil && uint64(v) < uint64(len(f.attestations)) {
		f.attestations[v] = 0
	}
}

// checkAggregate says whether one verified aggregate of the data root has all of
// the participants: ReasonDuplicate for the same set, ReasonSubsumed for a
// larger one. A union of several suppresses nothing, since a proposer can not
// use it as one aggregate.
func (d *dedupe) checkAggregate(slot wire.Slot, root wire.DataRoot, p wire.Participants) wire.Reason {
	r := d.rootFacts(slot, root)
	if r == nil {
		return wire.ReasonNone
	}
	for _, s := range r.sets {
		if p.IsSubsetOf(s) {
			if p.Count() == s.Count() {
				return wire.ReasonDuplicate
			}

			return wire.ReasonSubsumed
		}
	}

	return wire.ReasonNone
}

// rootFacts returns the facts about a data root, nil when there are none.
func (d *dedupe) rootFacts(slot wire.Slot, root wire.DataRoot) *rootFacts {
	f := d.facts(slot)
	if f == nil {
		return nil
	}
	i := f.index(root)
	if i == 0 {
		return nil
	}

	return &f.roots[i-1]
}

// gain returns how many participants no verified aggregate of the data root has.
func (d *dedupe) gain(slot wire.Slot, root wire.DataRoot, p wire.Participants) int {
	r := d.rootFacts(slot, root)
	if r == nil {
		return p.Count()
	}

	return p.CountNotIn(r.covered)
}

// markAggregate records an aggregate whose proof is good, with the answers of
// checkAggregate.
func (d *dedupe) markAggregate(slot wire.Slot, root wire.DataRoot, p wire.Participants) wire.Reason {
	if r := d.checkAggregate(slot, root, p); r != wire.ReasonNone {
		return r
	}
	f := d.open(slot)
	if f == nil {
		return wire.ReasonNone
	}
	i := f.add(root)
	if i == otherRoot {
		return wire.ReasonNone // not recorded: copies of it are checked again
	}
	r := &f.roots[i-1]
	r.sets = slices.DeleteFunc(r.sets, func(s wire.Participants) bool { return s.IsSubsetOf(p) })
	r.sets = append(r.sets, p)
	if len(r.sets) > maxSetsPerRoot {
		smallest := 0
		for j, s := range r.sets {
			if s.Count() < r.sets[smallest].Count() {
				smallest = j
			}
		}
		r.sets = slices.Delete(r.sets, smallest, smallest+1)
	}
	r.covered = r.covered.Union(p)

	return wire.ReasonNone
}
