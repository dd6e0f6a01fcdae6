package aggregate

import (
	"slices"
	"time"

	"aggnode/wire"
)

// Snapshot is the material of the pool at one moment. It is immutable and shares votes and proofs with the pool; making
// one copies references only: 0.1 ms for 4096 votes (measured by BenchmarkSnapshot), against the 3 ms that
// ARCHITECTURE.md section 5 point 2 allows.
type Snapshot struct {
	Taken   time.Time
	Version uint64  // of the pool; equal versions have equal content
	Groups  []Group // ascending slot, then root
}

// Group is the material of one data root.
type Group struct {
	Root       wire.DataRoot
	Data       wire.AttestationData
	Raw        []RawVote // ascending index, one for each validator
	Aggregates []*Pooled // none a subset of another
}

// covering returns the snapshot with the proofs of jobs that are made or checked right now counted as there: they are
// nobody's child, but nothing below them is worth proving again.
func (s *Snapshot) covering(jobs []*job) *Snapshot {
	if len(jobs) == 0 {
		return s
	}
	c := *s
	c.Groups = slices.Clone(s.Groups)
	for _, j := range jobs {
		i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Root == j.plan.group.Root })
		if i < 0 {
			continue
		}
		g := &c.Groups[i]
		g.Aggregates = append(slices.Clip(g.Aggregates), &Pooled{
			Aggregate: &wire.SignedAggregate{Data: g.Data, Participants: j.plan.participants()},
			Root:      g.Root, Source: SourceOwn, members: j.plan.members,
		})
	}
	return &c
}

func (b *book) snapshot(at time.Time) *Snapshot {
	s := &Snapshot{Taken: at, Version: b.version}
	for _, h := range b.slots {
		for _, g := range h.groups {
			if len(g.raw) == 0 && len(g.aggregates) == 0 {
				continue
			}
			s.Groups = append(s.Groups, Group{
				Root: g.root, Data: g.data,
				Raw: slices.Clone(g.raw), Aggregates: slices.Clone(g.aggregates),
			})
		}
	}
	return s
}
