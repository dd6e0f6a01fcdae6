package bench

import (
	"cmp"
	"slices"
	"time"

	"aggnode/internal/lanes"
)

// pathSamples are the measurements of one path: single calls, in the unit of the report.
type pathSamples struct {
	path              lanes.Path
	hash              []float64 // ns
	verify1, verify16 []float64 // us
	leaf              []float64 // us
	subtree, warm     []float64 // ms
	allWarm           []float64 // us
	rest              []float64 // us
	searches          []search
	searched          time.Duration
	trials            int

	signLanes, verify1Lanes, verify16Lanes, subtreeLanes lanes.Occupancy
}

// search is one search for a randomizer.
type search struct {
	message uint64
	trials  int
	took    time.Duration
}

// us is the time of one trial in microseconds.
func (s *search) us() float64 { return float64(s.took) / float64(time.Microsecond) / float64(s.trials) }

// trialUS is the time of one trial: half of all trials were made in searches that were faster, so that a search that the
// system interrupted does not count by its length.
func (s *pathSamples) trialUS() float64 {
	slices.SortFunc(s.searches, func(a, b search) int { return cmp.Compare(a.us(), b.us()) })
	seen := 0
	for i := range s.searches {
		if seen += s.searches[i].trials; 2*seen >= s.trials {
			return s.searches[i].us()
		}
	}
	return 0
}
