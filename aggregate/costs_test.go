package aggregate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestCostsAreTheirJSON(t *testing.T) {
	t.Parallel()
	var c Costs
	c.put(CostKey{"r", "T2", 4}, Cost{1, 0.02, 3})
	c.put(CostKey{"r", "T0", 2}, Cost{2, 0.01, 3})
	b, err := json.Marshal(&c)
	require.NoError(t, err)
	require.JSONEq(t, `{"costs":[
		{"revision":"r","tier":"T0","cores":2,"fixed_s":2,"raw_s":0.01,"child_s":3},
		{"revision":"r","tier":"T2","cores":4,"fixed_s":1,"raw_s":0.02,"child_s":3}]}`, string(b))
	var d Costs
	require.NoError(t, json.Unmarshal(b, &d))
	require.Equal(t, c, d)
}

func TestCostsThatCanNotBeTrueAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`"fixed_s":-1,"raw_s":1,"child_s":1`, `"fixed_s":1,"child_s":1`, `"fixed_s":1e300,"raw_s":1,"child_s":1`} {
		var c Costs
		require.NoError(t, json.Unmarshal([]byte(`{"costs":[{"revision":"r",`+bad+`}]}`), &c))
		require.Empty(t, c.learnt, bad)
	}
	require.False(t, Cost{math.NaN(), 1, 1}.isUsable())
	require.Error(t, new(Costs).UnmarshalJSON([]byte(`{"costs":{}}`)))
}

func TestCostsAreBounded(t *testing.T) {
	t.Parallel()
	var c Costs
	for i := range 3 * maxCosts {
		c.put(CostKey{Cores: i}, Cost{1, 1, 1})
		require.LessOrEqual(t, len(c.learnt), maxCosts)
		require.Contains(t, c.learnt, CostKey{Cores: i}, "the newest is there")
	}
}

// The figures of lean-pq 0.7.0 on two quiet cores of an AMD EPYC (2026-11), as the benchmark writes them.
const benchJSON = `{"backend":"lean-pq","revision":"py_lean_pq 0.7.0","setups":[{"threads":2,"hello_prove_ms":570},{"threads":1,"hello_prove_ms":900}],
"results":[
 {"threads":2,"raw":2,"children":0,"wall_ms":570},
 {"threads":2,"raw":16,"children":0,"wall_ms":650},
 {"threads":2,"raw":64,"children":0,"wall_ms":1430},
 {"threads":2,"raw":128,"children":0,"wall_ms":0,"skipped":"memory"},
 {"threads":2,"raw":0,"children":1,"wall_ms":1660},
 {"threads":2,"raw":0,"children":2,"wall_ms":2930},
 {"threads":1,"raw":2,"children":0,"wall_ms":900}]}`

func TestABenchmarkGivesTheShape(t *testing.T) {
	t.Parallel()
	var c Costs
	require.NoError(t, c.AddBench([]byte(benchJSON)))
	require.Len(t, c.shapes, 1, "one leaf job alone says nothing")
	m := newCostModel()
	m.seed(570 * time.Millisecond)
	m.shape = c.shapes[shapeKey{"py_lean_pq 0.7.0", 2}]
	for _, j := range []struct {
		raw, children int
		want          time.Duration
	}{{2, 0, 570 * time.Millisecond}, {64, 0, 1430 * time.Millisecond}, {0, 1, 1740 * time.Millisecond}} {
		require.InEpsilon(t, j.want, m.predict(j.raw, j.children), 0.05, "%+v", j)
	}
	require.Greater(t, m.predict(16, 0), 650*time.Millisecond, "a step is over-estimated, on the safe side")

	for _, useless := range []string{
		`{}`, `{"setups":[{"threads":2,"hello_prove_ms":0}],"results":[]}`,
		`{"setups":[{"threads":2,"hello_prove_ms":5}],"results":[{"threads":2,"raw":1,"wall_ms":9},{"threads":2,"raw":64,"wall_ms":3},{"threads":2,"children":1,"wall_ms":9}]}`,
	} {
		var c Costs
		require.NoError(t, c.AddBench([]byte(useless)))
		require.Empty(t, c.shapes, useless)
	}
	require.Error(t, c.AddBench([]byte("no JSON")))
}

// What one run learnt under a budget is where the next one starts, and where this one goes on when the budget comes back.
func TestCostsAreKeptForTierAndBudget(t *testing.T) {
	t.Parallel()
	costs := new(Costs)
	cores := 2.0
	run := func(slots int, fixed time.Duration) (first time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, rigConfig{validators: 8, slot: 12 * time.Second, configure: func(c *Config) {
				c.Costs, c.Place = costs, func() (string, float64) { return "T0", cores }
			}})
			r.prover.set(func(f *fakeProver) { f.fixed = fixed; f.caps.Revision = "r 1" })
			r.until(1, 0, 0)
			first = time.Duration(r.value("aggnode_cost_fixed_scale") * float64(600*time.Millisecond))
			r.everySlot(slots, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
			r.stop()
		})
		return first
	}
	require.Equal(t, 600*time.Millisecond, run(12, 2*time.Second).Round(time.Millisecond), "from hello")
	learnt := costs.learnt[CostKey{"r 1", "T0", 2}]
	require.InDelta(t, 2, learnt.Fixed+8*learnt.Raw, 0.4, fmt.Sprint(learnt))
	again := run(1, 2*time.Second)
	require.Greater(t, again, 1300*time.Millisecond)
	require.Less(t, again, 2100*time.Millisecond)
	cores = 0.5
	require.Equal(t, 600*time.Millisecond, run(1, 600*time.Millisecond).Round(time.Millisecond), "another budget")
	require.Contains(t, costs.learnt, CostKey{"r 1", "T0", 1}, "cores are rounded up")
	require.Contains(t, costs.learnt, CostKey{"r 1", "T0", 2})
}

// A prover that has become slow is said once, and so is its recovery.
func TestASlowProverIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8, slot: 12 * time.Second})
		said := func(text string) (n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, l := range r.lines {
				if strings.Contains(l, text) {
					n++
				}
			}
			return n
		}
		slot := func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) }
		r.everySlot(4, slot)
		require.Zero(t, said("longer than at its start"))
		r.prover.set(func(f *fakeProver) { f.fixed = 1900 * time.Millisecond })
		r.everySlot(10, slot)
		require.Equal(t, 1, said("WARN  the prover takes longer than at its start times="))
		require.Greater(t, r.value("aggnode_cost_fixed_scale"), 2.0)
		r.prover.set(func(f *fakeProver) { f.fixed = 600 * time.Millisecond })
		r.everySlot(10, slot)
		require.Equal(t, 1, said("longer than at its start"))
		require.Equal(t, 1, said("as fast as at its start again"))
		r.stop()
	})
}

// FuzzCosts: files of any content leave a model that predicts something.
func FuzzCosts(f *testing.F) {
	f.Add([]byte(benchJSON), 2)
	f.Add([]byte(`{"costs":[{"revision":"r","tier":"T0","cores":2,"fixed_s":2,"raw_s":0.01,"child_s":3}]}`), 64)
	f.Fuzz(func(t *testing.T, b []byte, raw int) {
		raw = min(max(raw, 0), wire.DefaultRegistryLimit)
		var c Costs
		_ = c.UnmarshalJSON(b)
		_ = c.AddBench(b)
		require.LessOrEqual(t, len(c.learnt), maxCosts)
		for _, v := range c.learnt {
			m := newCostModel()
			m.load(v)
			require.Positive(t, m.predict(raw, 2))
			for _, s := range c.shapes {
				m.shape = s
				m.load(v)
				require.Positive(t, m.predict(raw, 2))
			}
		}
	})
}
