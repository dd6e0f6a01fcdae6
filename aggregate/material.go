package aggregate

import (
	"cmp"
	"slices"
)

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
	have, taken := m.rawSet.clone(), set{}
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
