package aggregate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"time"

	"aggnode/prover"
	"aggnode/wire"
)

// plan is the choice of material for one job. Immutable.
type plan struct {
	group    Group // the data root's material that raw and children were chosen from
	raw      []RawVote
	children []*Pooled
	members  *set // union of both
	gain     int  // members that no aggregate of the data root covers
	width    int  // members
	isLate   bool // can not make the end of interval 3 of its slot
	isProbe  bool // runs although it does not fit
	cost     time.Duration
	deadline time.Time // soft: by when it should end
	key      planKey
}

// planKey identifies a plan by its content.
type planKey [sha256.Size]byte

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
		l.maxRaw = wire.RegistryLimit
	}
	if l.maxSigners = c.MaxSigners; l.maxSigners <= 0 {
		l.maxSigners = wire.RegistryLimit
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

// material is a group without what is barred, in the order that depends on content only.
type material struct {
	group    *Group
	raw      []RawVote // those covered by nothing first, then ascending index
	rawSet   set
	covered  set       // participants of all aggregates, barred ones too: they are published
	merges   []*Pooled // usable as children
	children []*Pooled // the greedy choice, best first, at most the limit
	widest   int       // of all aggregates
}

func materialOf(g *Group, in *planInput) *material {
	m := &material{group: g}
	for _, a := range g.Aggregates {
		m.covered.addAll(a.members)
		m.widest = max(m.widest, a.Aggregate.Participants.Count())
		if len(a.Aggregate.Proof) > 0 && !in.bars.hasChild(a) {
			m.merges = append(m.merges, a)
		}
	}
	for _, r := range g.Raw {
		if !in.bars.hasVote(g.Root, r.Index) {
			m.raw = append(m.raw, r)
			m.rawSet.add(r.Index)
		}
	}
	slices.SortFunc(m.raw, func(a, b RawVote) int {
		return cmp.Or(boolCompare(m.covered.has(a.Index), m.covered.has(b.Index)), cmp.Compare(a.Index, b.Index))
	})
	slices.SortFunc(m.merges, (*Pooled).compare)
	m.chooseChildren(in.limits)
	return m
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// chooseChildren takes, up to the limit, the aggregate that adds most validators to the raw votes and to the children
// before it. Without leave to overlap it must share nobody with those.
func (m *material) chooseChildren(l limits) {
	have, taken := m.rawSet, set{}
	for len(m.children) < l.maxChildren {
		var best *Pooled
		bestGain := 0
		for _, a := range m.merges {
			if !l.mayOverlap && a.members.intersects(&taken) || a.members.countNotIn(&taken)+taken.count() > l.maxSigners {
				continue
			}
			if gain := a.members.countNotIn(&have); gain > bestGain {
				best, bestGain = a, gain
			}
		}
		if best == nil {
			return
		}
		m.children = append(m.children, best)
		have.addAll(best.members)
		taken.addAll(best.members)
	}
}

// planWith returns the job with the first k children and all raw votes that they leave, as far as the prover takes so
// many; nil when it has no value.
func (m *material) planWith(k int, in *planInput) *plan {
	children := m.children[:k]
	var taken set
	for _, c := range children {
		taken.addAll(c.members)
	}
	raw := make([]RawVote, 0, len(m.raw))
	for _, r := range m.raw {
		if !taken.has(r.Index) {
			raw = append(raw, r)
		}
	}
	most := min(len(raw), in.limits.maxRaw, in.limits.maxSigners-taken.count())
	return m.plan(raw[:most], children, in)
}

// plan makes the job over exactly this material, nil when it has no value: too few inputs, or a subset of an aggregate
// at hand, or, for a job with nobody new, no wider than the widest.
func (m *material) plan(raw []RawVote, children []*Pooled, in *planInput) *plan {
	if len(raw)+len(children) < max(in.limits.minInputs, 1) {
		return nil
	}
	p := &plan{group: *m.group, raw: slices.Clone(raw), children: children, members: new(set)}
	for _, r := range raw {
		p.members.add(r.Index)
	}
	for _, c := range children {
		p.members.addAll(c.members)
	}
	for _, a := range m.group.Aggregates {
		if p.members.isSubsetOf(a.members) {
			return nil
		}
	}
	p.gain, p.width = p.members.countNotIn(&m.covered), p.members.count()
	if p.gain == 0 && p.width <= m.widest {
		return nil
	}
	slices.SortFunc(p.raw, func(a, b RawVote) int { return cmp.Compare(a.Index, b.Index) })
	p.cost = in.cost.predict(len(p.raw), len(p.children))
	p.key = p.fingerprint()
	return p
}

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
		if p.cost <= have && (!isLate || p.gain > 0) {
			q := *p
			q.deadline, q.isLate = deadline, isLate
			return &q
		}
	}
	m := materialOf(c.group, in)
	n := in.cost.rawWithin(have, 0, min(len(m.raw), in.limits.maxRaw))
	if n < 1 {
		return nil
	}
	p := m.plan(m.raw[:n], nil, in)
	if p == nil || isLate && p.gain == 0 || in.bars.hasPlan(p.key) {
		return nil
	}
	p.deadline, p.isLate = deadline, isLate
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
			cost, until := p.cost, in.timely
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

// participants returns who the job is over, in the shortest form.
func (p *plan) participants() wire.Participants {
	out, err := wire.NewParticipants(p.members.indices())
	if err != nil {
		panic("aggregate: a set has an index beyond its own size: " + err.Error())
	}
	return out
}

func (p *plan) fingerprint() planKey {
	h := sha256.New()
	h.Write(p.group.Root[:])
	var raw set
	for _, r := range p.raw {
		raw.add(r.Index)
	}
	raw.writeTo(h)
	for _, c := range p.children {
		c.members.writeTo(h)
	}
	return planKey(h.Sum(nil))
}

// job returns the prover's form of the plan. Nothing in it is copied but the public keys.
func (p *plan) job(keys keyring) prover.Job {
	epoch, _ := p.group.Data.Slot.Epoch() // decide takes no slot without one
	j := prover.Job{Message: p.group.Root, Epoch: uint32(epoch)}
	for _, r := range p.raw {
		j.Raw = append(j.Raw, prover.Raw{PublicKey: keys.key(r.Index), Signature: r.Signature})
	}
	for _, c := range p.children {
		signers := make([][]byte, 0, c.Aggregate.Participants.Count())
		c.Aggregate.Participants.ForEach(func(v wire.ValidatorIndex) { signers = append(signers, keys.key(v)) })
		j.Children = append(j.Children, prover.Child{
			Claim: prover.Claim{Message: p.group.Root, Epoch: uint32(epoch), SignerSet: prover.NewSignerSet(signers)},
			Proof: c.Aggregate.Proof,
		})
	}
	return j
}
