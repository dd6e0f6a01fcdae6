package aggregate

import (
	"cmp"
	"context"
	"slices"

	"aggnode/wire"
)

// Snapshot returns the material of the pool, with everything in it that was added before the call.
func (p *Pool) Snapshot(ctx context.Context) (*Snapshot, error) {
	reply := make(chan *Snapshot, 1) // room for the answer to a caller that left
	select {
	case p.snapshots <- reply:
	case <-p.done:
		return nil, errStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// The owner answers a request that it took before it looks at anything else.
	return <-reply, nil
}

// Progress returns what came in for a slot, and the version of the whole pool.
func (p *Pool) Progress(slot wire.Slot) (Progress, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sp := range p.progress {
		if sp.slot == slot {
			return sp.Progress, p.version
		}
	}
	return Progress{}, p.version
}

// BestForBlock returns the aggregate that a proposer of the slot should carry: of the votes of earlier slots the newest
// target, of that target the widest aggregate. Ties go to the newer votes, then to the larger data root.
func (p *Pool) BestForBlock(slot wire.Slot) (*wire.SignedAggregate, bool) {
	var best *Pooled
	for _, a := range *p.live.Load() {
		if a.Aggregate.Data.Slot < slot && (best == nil || forBlock(a, best) > 0) {
			best = a
		}
	}
	if best == nil {
		return nil, false
	}
	return best.Aggregate, true
}

func forBlock(a, b *Pooled) int {
	return cmp.Or(
		cmp.Compare(a.Aggregate.Data.Target.Slot, b.Aggregate.Data.Target.Slot),
		cmp.Compare(a.Aggregate.Participants.Count(), b.Aggregate.Participants.Count()),
		cmp.Compare(a.Aggregate.Data.Slot, b.Aggregate.Data.Slot),
		slices.Compare(a.Root[:], b.Root[:]),
		b.compare(a),
	)
}

// isCovered tells whether one pooled aggregate has all the members.
func (p *Pool) isCovered(root wire.DataRoot, members *set) bool {
	return slices.ContainsFunc(*p.live.Load(), func(a *Pooled) bool {
		return a.Root == root && members.isSubsetOf(a.members)
	})
}

// live returns all aggregates in a fresh slice.
func (b *book) live() []*Pooled {
	out := make([]*Pooled, 0, b.aggregates)
	for _, h := range b.slots {
		for _, g := range h.groups {
			out = append(out, g.aggregates...)
		}
	}
	return out
}
