package aggregate

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"aggnode/wire"
)

// Windows in slots. Nothing is finalised on these networks for hours at a time, so age alone prunes: a vote is of use
// for a proof until the start of slot+2, an aggregate is accepted by others until the start of slot+3
// (ARCHITECTURE.md section 2).
const (
	rawWindow       = 2
	aggregateWindow = 3
	aheadWindow     = 1 // votes of the next slot may come one interval early
)

// maxRootsPerSlot bounds the data roots of one slot. Honest validators split over two or three; each further one costs a
// validator its vote of that slot. The same bound as the ring of verified votes in pipeline.
const maxRootsPerSlot = 64

// RawVote is a verified vote without its data, which the [Group] holds. Immutable.
type RawVote struct {
	Index     wire.ValidatorIndex
	Signature []byte
}

// Pooled is a verified aggregate of the pool. Immutable.
type Pooled struct {
	Aggregate *wire.SignedAggregate
	Root      wire.DataRoot
	Source    Source
	Added     time.Time

	members *set // the participants
}

// compare orders aggregates of one data root by content: wider first, then by participants, then by proof. Arrival does
// not matter, so that the same material gives the same plan.
func (p *Pooled) compare(o *Pooled) int {
	return cmp.Or(
		cmp.Compare(o.Aggregate.Participants.Count(), p.Aggregate.Participants.Count()),
		bytes.Compare(p.Aggregate.Participants.SSZ(), o.Aggregate.Participants.SSZ()),
		bytes.Compare(p.Aggregate.Proof, o.Aggregate.Proof),
	)
}

// heldGroup is the material of one data root.
type heldGroup struct {
	root       wire.DataRoot
	data       wire.AttestationData
	raw        []RawVote // ascending index
	aggregates []*Pooled // none a subset of another
	covered    set       // participants of all aggregates
	loose      int       // raw votes that no aggregate covers
}

// heldSlot is the material of one slot.
type heldSlot struct {
	slot     wire.Slot
	groups   []*heldGroup // ascending root
	voted    set          // validators of our subnets with a raw vote
	reached  set          // validators of our subnets with a raw vote or in an aggregate
	progress Progress
}

// Progress counts what came in for a slot. Validators of other subnets than ours do not count.
type Progress struct {
	Version uint64 // changes whenever anything of the slot is added
	Merges  uint64 // aggregates added
	Votes   int    // distinct validators with a raw vote
	Reached int    // distinct validators with a raw vote or in an aggregate
	// FirstAdded and LastAdded are when the oldest and the newest vote were added; zero if none was.
	FirstAdded, LastAdded time.Time
}

// bookLimits bounds a book.
type bookLimits struct {
	rawVotes, rawBytes         int
	aggregates, aggregateBytes int
}

// refusal says why material was not kept; zero means that it was.
type refusal uint8

const (
	kept refusal = iota
	refusedWindow
	refusedDuplicate
	refusedUnknown
	refusedFull
)

// book is the content of a pool, without any locking: the pool's owner goroutine alone touches it.
type book struct {
	limits     bookLimits
	validators int
	ours       set // validators of our subnets
	slots      []*heldSlot

	rawVotes, rawBytes         int
	aggregates, aggregateBytes int
	version                    uint64
	evictedRaw, evictedMerges  uint64
	dominated                  uint64
}

func newBook(limits bookLimits, validators int, ours *set) *book {
	return &book{limits: limits, validators: validators, ours: *ours}
}

// prune drops what is out of its window when the clock is at slot now.
func (b *book) prune(now wire.Slot) {
	b.slots = slices.DeleteFunc(b.slots, func(h *heldSlot) bool {
		if age(h.slot, now) >= rawWindow {
			for _, g := range h.groups {
				b.dropRaw(g)
			}
		}
		if age(h.slot, now) < aggregateWindow {
			return false
		}
		for _, g := range h.groups {
			for _, p := range g.aggregates {
				b.forget(p)
			}
		}
		return true
	})
}

// age is how many slots ago a slot was, 0 for the future.
func age(slot, now wire.Slot) uint64 {
	if slot >= now {
		return 0
	}
	return uint64(now - slot)
}

func isAhead(slot, now wire.Slot) bool { return slot > now && uint64(slot-now) > aheadWindow }

func (b *book) dropRaw(g *heldGroup) {
	for _, r := range g.raw {
		b.rawVotes--
		b.rawBytes -= len(r.Signature)
	}
	g.raw, g.loose = nil, 0
}

func (b *book) forget(p *Pooled) {
	b.aggregates--
	b.aggregateBytes -= len(p.Aggregate.Proof)
}

// addRaw files a vote. The caller has verified it.
func (b *book) addRaw(a *wire.SignedAttestation, root wire.DataRoot, now wire.Slot, at time.Time) refusal {
	slot := a.Data.Slot
	switch {
	case a.ValidatorIndex >= wire.ValidatorIndex(b.validators):
		return refusedUnknown
	case age(slot, now) >= rawWindow || isAhead(slot, now):
		return refusedWindow
	}
	h := b.slotOf(slot)
	g := h.group(root)
	if g != nil {
		if _, has := g.find(a.ValidatorIndex); has {
			return refusedDuplicate
		}
	}
	if !b.makeRoom(slot, len(a.Signature)) {
		return refusedFull
	}
	if g == nil {
		if g = b.openGroup(h, root, &a.Data); g == nil {
			return refusedFull
		}
	}
	i, _ := g.find(a.ValidatorIndex)
	g.raw = slices.Insert(g.raw, i, RawVote{Index: a.ValidatorIndex, Signature: a.Signature})
	b.rawVotes++
	b.rawBytes += len(a.Signature)
	if !g.covered.has(a.ValidatorIndex) {
		g.loose++
	}
	b.version++
	h.progress.Version = b.version
	if h.progress.FirstAdded.IsZero() {
		h.progress.FirstAdded = at
	}
	h.progress.LastAdded = at
	if b.ours.has(a.ValidatorIndex) {
		h.voted.add(a.ValidatorIndex)
		h.reached.add(a.ValidatorIndex)
		h.progress.Votes, h.progress.Reached = h.voted.count(), h.reached.count()
	}
	return kept
}

// addAggregate files an aggregate. The caller has verified it.
func (b *book) addAggregate(p *Pooled, now wire.Slot) refusal {
	slot := p.Aggregate.Data.Slot
	highest, ok := p.Aggregate.Participants.Highest()
	switch {
	case !ok || highest >= wire.ValidatorIndex(b.validators):
		return refusedUnknown
	case age(slot, now) >= aggregateWindow || isAhead(slot, now):
		return refusedWindow
	}
	h := b.slotOf(slot)
	g := h.group(p.Root)
	if g == nil {
		if g = b.openGroup(h, p.Root, &p.Aggregate.Data); g == nil {
			return refusedFull
		}
	}
	for _, other := range g.aggregates {
		if p.members.isSubsetOf(other.members) {
			b.dominated++
			return refusedDuplicate
		}
	}
	g.aggregates = slices.DeleteFunc(g.aggregates, func(other *Pooled) bool {
		if !other.members.isSubsetOf(p.members) {
			return false
		}
		b.dominated++
		b.forget(other)
		return true
	})
	g.aggregates = append(g.aggregates, p)
	b.aggregates++
	b.aggregateBytes += len(p.Aggregate.Proof)
	g.recount()
	if !b.evictAggregates(p) {
		return refusedFull
	}
	h.reached.addCommon(p.members, &b.ours)
	b.version++
	h.progress.Version = b.version
	h.progress.Merges++
	h.progress.Reached = h.reached.count()
	return kept
}

// makeRoom evicts raw votes, the oldest slot's smallest group first, until one more of size bytes fits. It gives up, and
// the newcomer with it, when only slots as new as the newcomer's are left.
func (b *book) makeRoom(slot wire.Slot, size int) bool {
	for b.rawVotes+1 > b.limits.rawVotes || b.rawBytes+size > b.limits.rawBytes {
		victim := b.smallestRaw(slot)
		if victim == nil {
			b.evictedRaw++
			return false
		}
		last := len(victim.raw) - 1
		if !victim.covered.has(victim.raw[last].Index) {
			victim.loose--
		}
		b.rawVotes--
		b.rawBytes -= len(victim.raw[last].Signature)
		victim.raw = slices.Delete(victim.raw, last, last+1)
		b.evictedRaw++
	}
	return true
}

func (b *book) smallestRaw(before wire.Slot) *heldGroup {
	for _, h := range b.slots {
		if h.slot >= before {
			return nil
		}
		var victim *heldGroup
		for _, g := range h.groups {
			if len(g.raw) > 0 && (victim == nil || len(g.raw) < len(victim.raw)) {
				victim = g
			}
		}
		if victim != nil {
			return victim
		}
	}
	return nil
}

// evictAggregates brings the aggregates back under their limits: the oldest slot goes first, the smallest of it. It
// tells whether the newcomer stayed.
func (b *book) evictAggregates(newcomer *Pooled) bool {
	stayed := true
	for b.aggregates > b.limits.aggregates || b.aggregateBytes > b.limits.aggregateBytes {
		var from *heldGroup
		var victim *Pooled
		for _, h := range b.slots {
			for _, g := range h.groups {
				for _, p := range g.aggregates {
					if victim == nil || p.compare(victim) > 0 {
						from, victim = g, p
					}
				}
			}
			if victim != nil {
				break
			}
		}
		from.aggregates = slices.DeleteFunc(from.aggregates, func(p *Pooled) bool { return p == victim })
		from.recount()
		b.forget(victim)
		b.evictedMerges++
		stayed = stayed && victim != newcomer
	}
	return stayed
}

// slotOf returns the slot's material, opened if need be. Slots stay ascending; there are never more than
// aggregateWindow+aheadWindow after prune.
func (b *book) slotOf(slot wire.Slot) *heldSlot {
	i, has := slices.BinarySearchFunc(b.slots, slot, func(h *heldSlot, s wire.Slot) int { return cmp.Compare(h.slot, s) })
	if !has {
		b.slots = slices.Insert(b.slots, i, &heldSlot{slot: slot})
	}
	return b.slots[i]
}

func (h *heldSlot) find(root wire.DataRoot) (int, bool) {
	return slices.BinarySearchFunc(h.groups, root, func(g *heldGroup, r wire.DataRoot) int { return bytes.Compare(g.root[:], r[:]) })
}

func (h *heldSlot) group(root wire.DataRoot) *heldGroup {
	if i, has := h.find(root); has {
		return h.groups[i]
	}
	return nil
}

// openGroup adds a group. In a full slot it takes the place of one that a single validator made, if there is one.
func (b *book) openGroup(h *heldSlot, root wire.DataRoot, data *wire.AttestationData) *heldGroup {
	if len(h.groups) >= maxRootsPerSlot {
		i := slices.IndexFunc(h.groups, func(g *heldGroup) bool { return len(g.raw) <= 1 && len(g.aggregates) == 0 })
		if i < 0 {
			b.evictedRaw++
			return nil
		}
		b.evictedRaw += uint64(len(h.groups[i].raw))
		b.dropRaw(h.groups[i])
		h.groups = slices.Delete(h.groups, i, i+1)
	}
	i, _ := h.find(root)
	g := &heldGroup{root: root, data: *data}
	h.groups = slices.Insert(h.groups, i, g)
	return g
}

func (g *heldGroup) find(v wire.ValidatorIndex) (int, bool) {
	return slices.BinarySearchFunc(g.raw, v, func(r RawVote, v wire.ValidatorIndex) int { return cmp.Compare(r.Index, v) })
}

// recount recomputes covered and loose after the aggregates changed.
func (g *heldGroup) recount() {
	g.covered = set{}
	for _, p := range g.aggregates {
		g.covered.addAll(p.members)
	}
	g.loose = 0
	for _, r := range g.raw {
		if !g.covered.has(r.Index) {
			g.loose++
		}
	}
}
