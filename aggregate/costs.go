package aggregate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// CostKey names the circumstances under which a cost holds.
type CostKey struct {
	Revision string `json:"revision"` // of the backend
	Tier     string `json:"tier"`     // placement of the prover
	Cores    int    `json:"cores"`    // budget, rounded up
}

// Cost is what a job takes in seconds: a fixed part, and a part for each raw signature and for each child.
type Cost struct {
	Fixed float64 `json:"fixed_s"`
	Raw   float64 `json:"raw_s"`
	Child float64 `json:"child_s"`
}

// isUsable tells figures that can be true from those of a damaged file.
func (c Cost) isUsable() bool {
	for _, v := range []float64{c.Fixed, c.Raw, c.Child} {
		if math.IsNaN(v) || v <= 0 || v > maxCost {
			return false
		}
	}
	return true
}

const (
	// maxCost bounds a part of a cost that is believed, in seconds: an hour.
	maxCost = 3600
	// maxPart bounds a part of a shape that is believed, in hello jobs. A child of lean-pq is 2.3 of them.
	maxPart = 100
	// maxCosts bounds the costs that are kept: revisions, tiers and budgets of one node.
	maxCosts = 256
	// benchSpread is how many raw signatures the smallest and the largest leaf job of a benchmark must be apart for the
	// line through them to say anything.
	benchSpread = 8
)

// Costs is what the cost model keeps between runs: the costs learnt, by circumstance, and the shape that a benchmark of
// this machine measured. The zero value is empty. An Aggregator reads and changes its Costs while it runs, nobody else may.
type Costs struct {
	learnt map[CostKey]Cost
	shapes map[shapeKey]shape
}

// shapeKey: a benchmark measures no placement, so only these say whether it is about the loaded prover.
type shapeKey struct {
	revision string
	threads  int
}

type costEntry struct {
	CostKey
	Cost
}

// MarshalJSON writes the costs learnt, in the order of their keys.
func (c *Costs) MarshalJSON() ([]byte, error) {
	out := struct {
		Costs []costEntry `json:"costs"`
	}{Costs: []costEntry{}}
	for _, k := range slices.SortedFunc(maps.Keys(c.learnt), CostKey.compare) {
		out.Costs = append(out.Costs, costEntry{k, c.learnt[k]})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote. Figures that can not be true are left out.
func (c *Costs) UnmarshalJSON(b []byte) error {
	var in struct {
		Costs []costEntry `json:"costs"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("read prover costs: %w", err)
	}
	c.learnt = nil
	for _, e := range in.Costs {
		if e.isUsable() {
			c.put(e.CostKey, e.Cost)
		}
	}
	return nil
}

func (k CostKey) compare(o CostKey) int {
	return cmp.Or(cmp.Compare(k.Revision, o.Revision), cmp.Compare(k.Tier, o.Tier), cmp.Compare(k.Cores, o.Cores))
}

// put keeps a cost. Full, it forgets all others: their circumstances have been left behind long ago.
func (c *Costs) put(k CostKey, v Cost) {
	if _, isKnown := c.learnt[k]; c.learnt == nil || !isKnown && len(c.learnt) >= maxCosts {
		c.learnt = make(map[CostKey]Cost)
	}
	c.learnt[k] = v
}

// AddBench takes the JSON of `aggnode bench prover --json`: what proofs cost on this machine, for each number of threads.
// A measurement that has no leaf jobs of different sizes, or no job with children, says nothing and is left out. An error
// tells of text that is no such JSON.
func (c *Costs) AddBench(b []byte) error {
	var in struct {
		Revision string `json:"revision"`
		Setups   []struct {
			Threads int     `json:"threads"`
			HelloMS float64 `json:"hello_prove_ms"`
		} `json:"setups"`
		Results []benchResult `json:"results"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("read prover benchmark: %w", err)
	}
	for _, s := range in.Setups {
		of := slices.DeleteFunc(slices.Clone(in.Results), func(r benchResult) bool {
			return r.Threads != s.Threads || r.Skipped != "" || r.WallMS <= 0
		})
		cost, ok := fit(of)
		hello := s.HelloMS / 1000
		if !ok || !(max(cost.Fixed, cost.Raw, cost.Child) <= maxPart*hello) {
			continue
		}
		if c.shapes == nil {
			c.shapes = make(map[shapeKey]shape)
		}
		c.shapes[shapeKey{in.Revision, s.Threads}] = shape{cost.Fixed / hello, cost.Raw / hello, cost.Child / hello}
	}
	return nil
}

type benchResult struct {
	Threads  int     `json:"threads"`
	Raw      int     `json:"raw"`
	Children int     `json:"children"`
	WallMS   float64 `json:"wall_ms"`
	Skipped  string  `json:"skipped"`
}

// fit is the line through the smallest and the largest leaf job, and above it the dearest child: proofs take steps rather
// than lines, and a prediction should err on the safe side.
func fit(results []benchResult) (Cost, bool) {
	leaf := slices.DeleteFunc(slices.Clone(results), func(r benchResult) bool { return r.Children > 0 })
	if len(leaf) < 2 {
		return Cost{}, false
	}
	byRaw := func(a, b benchResult) int { return cmp.Compare(a.Raw, b.Raw) }
	least, most := slices.MinFunc(leaf, byRaw), slices.MaxFunc(leaf, byRaw)
	if most.Raw-least.Raw < benchSpread {
		return Cost{}, false
	}
	c := Cost{Raw: (most.WallMS - least.WallMS) / 1000 / float64(most.Raw-least.Raw)}
	c.Fixed = least.WallMS/1000 - c.Raw*float64(least.Raw)
	for _, r := range results {
		if r.Children > 0 {
			c.Child = max(c.Child, (r.WallMS/1000-c.Fixed-c.Raw*float64(r.Raw))/float64(r.Children))
		}
	}
	return c, c.isUsable()
}
