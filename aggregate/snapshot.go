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
