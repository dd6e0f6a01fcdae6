package aggregate

import (
	"context"

	"aggnode/wire"
)

// finding is a decision with what it was made on.
type finding struct {
	decision
	slot     wire.Slot // of the session
	snapshot *Snapshot
	ownWaits bool // the slot's own votes were left out: see planInput
}

// planAhead plans what follows the running job, for the moment at which it should end and with its proof counted as
// there. The latest plan wins: one that was made before is replaced.
func (a *Aggregator) planAhead(ctx context.Context) {
	a.planned = nil
	start := a.clock.Now()
	if start.Before(a.running.ends) {
		start = a.running.ends
	}
	f, ok := a.find(ctx, start, append([]*job{a.running}, a.checking...))
	if ok && f.plan != nil {
		a.planned = &f
	}
}

// takePlanned returns the plan that was made ahead, where it is still what would be decided now: nothing has come in, its
// deadline is one of this moment and it ends in time.
func (a *Aggregator) takePlanned() (finding, bool) {
	f := a.planned
	a.planned = nil
	if f == nil || f.slot != a.session.slot {
		return finding{}, false
	}
	p, now := f.plan, a.clock.Now()
	progress, version := a.pool.Progress(f.slot)
	var in planInput
	a.session.watch.times.input(now, &in)
	isOwn := p.group.Data.Slot == f.slot
	switch {
	case version != f.snapshot.Version, a.bars.hasPlan(p.key), f.ownWaits != !a.session.watch.mayPlanOwn(now, progress):
		return finding{}, false
	case isOwn && p.deadline != in.timely && p.deadline != in.lateOwn, !isOwn && p.deadline != in.late:
		return finding{}, false
	case !p.isProbe && now.Add(p.need()).After(p.deadline):
		return finding{}, false
	}
	return *f, true
}
