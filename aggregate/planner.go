package aggregate

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"aggnode/prover"
	"aggnode/wire"
)

// limits is what the loaded prover and the configuration allow.
type limits struct {
	maxRaw, maxChildren, minInputs int
	maxSigners                     int  // participants of a proof, children's included
	mayOverlap                     bool // children may share validators
}

// limitsOf combines both; the configuration has defaults in it already.
func limitsOf(cfg *Config, c prover.Capabilities) limits {
	l := limits{maxRaw: c.MaxRaw, maxChildren: cfg.MaxChildren, minInputs: max(cfg.MinInputs, c.MinInputs), mayOverlap: c.ChildrenMayOverlap}
	if l.maxRaw <= 0 {
		l.maxRaw = cfg.Profile.RegistryLimit
	}
	if l.maxSigners = c.MaxSigners; l.maxSigners <= 0 {
		l.maxSigners = cfg.Profile.RegistryLimit
	}
	l.maxRaw = min(l.maxRaw, l.maxSigners)
	l.maxChildren = max(min(l.maxChildren, c.MaxChildren), 0)
	return l
}

// planInput is everything that decide looks at besides the snapshot.
type planInput struct {
	now  time.Time
	slot wire.Slot // of the clock
	// timely is by when a job of the slot itself should end; the zero time after interval 3.
	timely time.Time
	// lateOwn is by when a job of the slot itself that can not make timely should end, so that it is out of the way of the
	// next slot's votes.
	lateOwn time.Time
	// late is the same for jobs of older slots; the zero time when the prover is kept free for the slot's own.
	late time.Time
	// ownWaits keeps the slot's own groups back until enough votes are in; the reason then says nothing.
	ownWaits bool
	limits   limits
	cost     costModel
	bars     *bars
	isProbe  bool // take the best leaf job of the slot although it does not fit
}

// decision is what decide found: a plan, or the reason why there is none.
type decision struct {
	plan   *plan
	reason SessionReason // of the slot itself, without a plan
	// hasMaterial says that there was a job of value for the slot, whether it fits or not.
	hasMaterial bool
	need, have  time.Duration // of the smallest such job, with SessionNoTime
}

// decide chooses the next job: a pure function of its arguments, whatever the order of the snapshot.
//
// The slot of the clock comes first, in it the data root with the most votes that no aggregate covers, in that the
// widest job that fits: flat over all raw votes, children only for validators whose raw vote is missing, raw votes that
// a child covers left out (invariant 11). When more than half of a leaf job's votes are covered by nothing yet, the leaf
// job goes first: it is several times cheaper than any child, and width can follow. A job that would be a subset of
// an aggregate at hand is none. What does not fit is trimmed; what can not make the end of interval 3 may still be
// proved in the pause before the next slot's votes, if it covers somebody new.
func decide(s *Snapshot, in planInput) decision {
	var groups []*candidates
	d := decision{reason: SessionNoVotes}
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Data.Slot > in.slot || age(g.Data.Slot, in.slot) >= rawWindow {
			continue
		}
		if _, ok := g.Data.Slot.Epoch(); !ok {
			continue // no signature and so no proof can exist above 2^32-1
		}
		c := candidatesOf(g, &in)
		groups = append(groups, c)
		if g.Data.Slot == in.slot {
			d.reason = max(d.reason, c.reason) // the table ascends from "nothing there" to "something in the way"
			d.hasMaterial = d.hasMaterial || len(c.plans) > 0
		}
	}
	slices.SortFunc(groups, (*candidates).compare)
	for _, c := range groups {
		if c.isOwn && in.ownWaits {
			continue
		}
		if d.plan = c.fit(&in); d.plan != nil {
			return d
		}
	}
	if d.hasMaterial && in.isProbe && !in.ownWaits {
		d.plan = probe(groups, &in)
	} else if d.hasMaterial {
		d.reason = SessionNoTime
		d.need, d.have = smallest(groups, &in)
	}
	return d
}

// candidates are the jobs of value that one group offers, best first.
type candidates struct {
	group  *Group
	isOwn  bool // of the clock's slot
	plans  []*plan
	reason SessionReason // why there are none
}

// compare orders groups: newer slots, more uncovered votes, wider, data root.
func (c *candidates) compare(o *candidates) int {
	gain := func(c *candidates) (gain, width int) {
		for _, p := range c.plans {
			gain, width = max(gain, p.gain), max(width, p.width)
		}
		return gain, width
	}
	g1, w1 := gain(c)
	g2, w2 := gain(o)
	return cmp.Or(
		cmp.Compare(o.group.Data.Slot, c.group.Data.Slot),
		cmp.Compare(g2, g1), cmp.Compare(w2, w1),
		bytes.Compare(c.group.Root[:], o.group.Root[:]),
	)
}

// candidatesOf lists the jobs of value over a group, before any look at time.
func candidatesOf(g *Group, in *planInput) *candidates {
	c := &candidates{group: g, isOwn: g.Data.Slot == in.slot}
	m := materialOf(g, in)
	switch inputs := len(m.raw) + len(m.merges); {
	case inputs == 0:
		c.reason = SessionNoVotes
		return c
	case inputs < in.limits.minInputs:
		c.reason = SessionSingleVote
		return c
	}
	isBarred := false
	for k := range len(m.children) + 1 {
		p := m.planWith(k, in)
		switch {
		case p == nil:
		case in.bars.hasPlan(p.key):
			isBarred = true
		default:
			c.plans = append(c.plans, p)
		}
	}
	switch {
	case len(c.plans) > 0:
		slices.SortStableFunc(c.plans, preferred)
	case isBarred:
		c.reason = SessionQuarantined
	default:
		c.reason = SessionNothingNew
	}
	return c
}

// preferred orders the plans of one group. The gain is the raw votes' and so the same for all that are not trimmed.
func preferred(a, b *plan) int {
	if a.isLeafFirst() != b.isLeafFirst() {
		if a.isLeafFirst() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(b.width, a.width), cmp.Compare(len(a.children), len(b.children)))
}

// isLeafFirst tells whether a leaf job secures mostly votes that nothing covers yet.
func (p *plan) isLeafFirst() bool { return len(p.children) == 0 && 2*p.gain > p.width }

// fit returns the best of the group's plans that ends in time, trimmed if it must be.
func (c *candidates) fit(in *planInput) *plan {
	if len(c.plans) == 0 {
		return nil
	}
	deadline := in.late
	if c.isOwn {
		if !in.timely.IsZero() {
			if p := c.fitBy(in.timely, false, in); p != nil {
				return p
			}
		}
		deadline = in.lateOwn
	}
	if deadline.IsZero() {
		return nil
	}
	return c.fitBy(deadline, true, in)
}

// fitBy returns the first plan that is predicted to end by the deadline, or else the largest trimmed leaf job that is.
// A late job must cover somebody new: width alone comes too late for a block.
func (c *candidates) fitBy(deadline time.Time, isLate bool, in *planInput) *plan {
	have := deadline.Sub(in.now)
	for _, p := range c.plans {
		if p.need() <= have && (!isLate || p.gain > 0) {
			q := *p
			q.deadline = deadline
			return &q
		}
	}
	m := materialOf(c.group, in)
	n := in.cost.rawWithin(have, 0, min(len(m.raw), in.limits.maxRaw))
	if n < 1 {
		return nil
	}
	p := m.plan(m.raw[:n], nil, in)
	if p == nil || p.need() > have || isLate && p.gain == 0 || in.bars.hasPlan(p.key) {
		return nil
	}
	p.deadline = deadline
	return p
}

// probe returns the cheapest untrimmed job of the slot, which runs although it is not predicted to fit.
func probe(groups []*candidates, in *planInput) *plan {
	var best *plan
	for _, c := range groups {
		for _, p := range c.plans {
			if c.isOwn && (best == nil || p.cost < best.cost) {
				best = p
			}
		}
	}
	p := *best // there is material
	p.isProbe, p.deadline = true, in.now.Add(p.cost)
	return &p
}

// smallest returns the predicted time of the cheapest job of the slot, which is what a trimmed leaf job could be brought
// down to, and the time that there is for it.
func smallest(groups []*candidates, in *planInput) (need, have time.Duration) {
	for _, c := range groups {
		for _, p := range c.plans {
			if !c.isOwn {
				continue
			}
			cost, until := p.need(), in.timely
			if len(p.children) == 0 {
				cost = in.cost.predict(min(len(p.raw), max(in.limits.minInputs, 1)), 0)
			}
			if p.gain > 0 {
				until = in.lateOwn
			}
			if need == 0 || cost < need {
				need, have = cost, max(until.Sub(in.now), 0)
			}
		}
	}
	return need, have
}
