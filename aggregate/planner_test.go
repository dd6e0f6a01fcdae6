package aggregate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/pubkeycache"
	"aggnode/wire"
)

// planTime is the moment of all planner tests: the start of interval 1 of slot 9 in slots of 8 s.
var planTime = time.Unix(1000, 0)

// inputAt has time for anything.
func inputAt(slot wire.Slot) planInput {
	return planInput{
		now: planTime, slot: slot, timely: planTime.Add(time.Minute), late: planTime.Add(2 * time.Minute), lateOwn: planTime.Add(2 * time.Minute),
		limits: limits{maxRaw: wire.DefaultRegistryLimit, maxSigners: wire.DefaultRegistryLimit, maxChildren: 2, minInputs: 2},
		cost:   costModel{shape: defaultShape, hello: 600 * time.Millisecond, fixed: 1, raw: 1, child: 1},
		bars:   newBars(),
	}
}

// groupOf builds a group; each aggregate is a list of indices.
func groupOf(t testing.TB, r *pubkeycache.Registry, data wire.AttestationData, raw []wire.ValidatorIndex, aggregates ...[]wire.ValidatorIndex) Group {
	t.Helper()
	g := Group{Root: data.HashTreeRoot(), Data: data}
	for _, v := range raw {
		g.Raw = append(g.Raw, RawVote{Index: v, Signature: signature(v)})
	}
	for _, a := range aggregates {
		s := aggregateOf(t, r, data, a...)
		g.Aggregates = append(g.Aggregates, &Pooled{Aggregate: s, Root: g.Root, Source: SourceGossip, members: setOf(s.Participants)})
	}
	return g
}

func rawOf(p *plan) []wire.ValidatorIndex {
	out := []wire.ValidatorIndex{}
	for _, r := range p.raw {
		out = append(out, r.Index)
	}
	return out
}

func childrenOf(p *plan) [][]wire.ValidatorIndex {
	var out [][]wire.ValidatorIndex
	for _, c := range p.children {
		out = append(out, c.Aggregate.Participants.Indices())
	}
	return out
}

type indices = []wire.ValidatorIndex

func TestPlanOfOneDataRoot(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	for _, c := range []struct {
		name       string
		raw        indices
		aggregates []indices
		change     func(*planInput)
		wantRaw    indices // nil: no plan
		wantKids   []indices
		wantReason SessionReason
	}{
		{name: "nothing", wantReason: SessionNoVotes},
		{name: "a lone vote is not proved", raw: indices{3}, wantReason: SessionSingleVote},
		{name: "a lone aggregate is not proved again", aggregates: []indices{{1, 2}}, wantReason: SessionSingleVote},
		{name: "two votes are", raw: indices{3, 1}, wantRaw: indices{1, 3}},
		{name: "one vote and one child are", raw: indices{3}, aggregates: []indices{{1, 2}}, wantRaw: indices{3}, wantKids: []indices{{1, 2}}},
		{name: "two children are", aggregates: []indices{{1, 2}, {3, 4, 5}}, wantRaw: indices{}, wantKids: []indices{{3, 4, 5}, {1, 2}}},
		{name: "votes that one aggregate has are not proved", raw: indices{3, 4}, aggregates: []indices{{1, 2, 3, 4, 5, 6, 7, 8}}, wantReason: SessionNothingNew},
		{name: "one vote that a child has leaves one child alone", raw: indices{2}, aggregates: []indices{{1, 2}}, wantReason: SessionNothingNew},
		{name: "raw votes of two aggregates together are wider than either", raw: indices{1, 2, 3, 4}, aggregates: []indices{{1, 2}, {3, 4}}, wantRaw: indices{1, 2, 3, 4}},
		{name: "late votes are proved flat with the rest", raw: indices{1, 2, 3, 4, 5}, aggregates: []indices{{1, 2, 3}}, wantRaw: indices{1, 2, 3, 4, 5}},
		{name: "new votes go before width", raw: indices{1, 2, 3}, aggregates: []indices{{11, 12, 13, 14}}, wantRaw: indices{1, 2, 3}},
		{
			name: "width follows", raw: indices{1, 2, 3}, aggregates: []indices{{1, 2, 3}, {11, 12, 13, 14}},
			wantRaw: indices{1, 2, 3}, wantKids: []indices{{11, 12, 13, 14}},
		},
		{
			name: "children that overlap are not passed on", raw: indices{3, 5}, aggregates: []indices{{1, 2, 3}, {2, 3, 4}},
			wantRaw: indices{5}, wantKids: []indices{{1, 2, 3}},
		},
		{
			name: "unless the prover allows it", raw: indices{3, 5}, aggregates: []indices{{1, 2, 3}, {2, 3, 4}},
			change:  func(in *planInput) { in.limits.mayOverlap = true },
			wantRaw: indices{5}, wantKids: []indices{{1, 2, 3}, {2, 3, 4}},
		},
		{
			name: "no more children than allowed", aggregates: []indices{{1, 2}, {3, 4}, {5, 6}, {7, 8, 9}},
			wantRaw: indices{}, wantKids: []indices{{7, 8, 9}, {1, 2}},
		},
		{
			name: "no children at all", raw: indices{1, 2}, aggregates: []indices{{1, 2}, {3, 4}},
			change: func(in *planInput) { in.limits.maxChildren = 0 }, wantReason: SessionNothingNew,
		},
		{
			name: "no more raw votes than the prover takes, new ones first", raw: indices{1, 2, 3, 4, 5, 6}, aggregates: []indices{{1, 2, 3}},
			change: func(in *planInput) { in.limits.maxRaw = 4 }, wantRaw: indices{1, 4, 5, 6},
		},
		{
			name: "no more signers than the prover takes", raw: indices{1, 2, 3}, aggregates: []indices{{1, 2, 3}, {4, 5, 6}, {7}},
			change:  func(in *planInput) { in.limits.maxSigners = 5; in.limits.maxRaw = 5 },
			wantRaw: indices{1, 2}, wantKids: []indices{{4, 5, 6}},
		},
		{
			name: "trimmed until it fits", raw: upTo(64), change: func(in *planInput) { in.timely = in.now.Add(900 * time.Millisecond) },
			wantRaw: upTo(22),
		},
		{
			name: "children are left out when there is no time for them", raw: indices{1, 2, 3}, aggregates: []indices{{1, 2}, {11, 12, 13}},
			change: func(in *planInput) { in.timely = in.now.Add(time.Second) }, wantRaw: indices{1, 2, 3},
		},
		{
			name: "late when it can not be timely", raw: indices{1, 2},
			change: func(in *planInput) { in.timely = in.now.Add(time.Millisecond) }, wantRaw: indices{1, 2},
		},
		{
			name: "but not for width alone", raw: indices{1, 2}, aggregates: []indices{{1, 2}, {11, 12, 13}},
			change: func(in *planInput) { in.timely = in.now.Add(time.Millisecond) }, wantReason: SessionNoTime,
		},
		{
			name: "not at all when nothing fits", raw: indices{1, 2},
			change: func(in *planInput) {
				in.timely, in.lateOwn = in.now.Add(time.Millisecond), in.now.Add(2*time.Millisecond)
			},
			wantReason: SessionNoTime,
		},
		{
			name: "a probe runs although nothing fits", raw: indices{1, 2},
			change: func(in *planInput) {
				in.timely, in.lateOwn, in.isProbe = in.now.Add(time.Millisecond), in.now.Add(2*time.Millisecond), true
			},
			wantRaw: indices{1, 2},
		},
		{
			name: "not yet", raw: indices{1, 2}, change: func(in *planInput) { in.ownWaits = true },
			wantReason: SessionNoTime,
		},
		{
			name: "a barred vote is left out", raw: indices{1, 2, 3},
			change:  func(in *planInput) { in.bars.addVote(rootOf(dataOf(9, "a")), 2, 9) },
			wantRaw: indices{1, 3},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := inputAt(9)
			if c.change != nil {
				c.change(&in)
			}
			s := &Snapshot{Groups: []Group{groupOf(t, r, dataOf(9, "a"), c.raw, c.aggregates...)}}
			if c.raw == nil && c.aggregates == nil {
				s.Groups = nil
			}
			d := decide(s, in)
			if c.wantRaw == nil {
				require.Nil(t, d.plan)
				require.Equal(t, c.wantReason, d.reason)
				return
			}
			require.NotNil(t, d.plan, d.reason)
			require.Equal(t, c.wantRaw, rawOf(d.plan))
			require.Equal(t, c.wantKids, childrenOf(d.plan))
			checkPlan(t, d.plan, &in)
		})
	}
}

// checkPlan tests what holds for every plan.
func checkPlan(t testing.TB, p *plan, in *planInput) {
	t.Helper()
	require.GreaterOrEqual(t, len(p.raw)+len(p.children), in.limits.minInputs)
	require.LessOrEqual(t, len(p.raw), in.limits.maxRaw)
	require.LessOrEqual(t, len(p.children), in.limits.maxChildren)
	require.LessOrEqual(t, p.width, in.limits.maxSigners)
	var all, kids set
	for _, r := range p.raw {
		require.False(t, all.has(r.Index), "a validator twice")
		all.add(r.Index)
	}
	for _, c := range p.children {
		require.False(t, c.members.intersects(&all), "a validator raw and in a child")
		if !in.limits.mayOverlap {
			require.False(t, c.members.intersects(&kids), "children overlap")
		}
		kids.addAll(c.members)
	}
	all.addAll(&kids)
	require.Equal(t, all, *p.members)
	require.Equal(t, all.count(), p.width)
	for _, a := range p.group.Aggregates {
		require.False(t, p.members.isSubsetOf(a.members), "a subset of what is there")
	}
	require.True(t, slices.IsSortedFunc(p.raw, func(a, b RawVote) int { return int(a.Index) - int(b.Index) }))
	if !p.isProbe {
		require.False(t, in.now.Add(p.cost).After(p.deadline), "invariant 9")
	}
	require.LessOrEqual(t, p.participants().Len(), wire.DefaultRegistryLimit)
	require.Equal(t, p.members.indices(), p.participants().Indices())
	highest, _ := p.participants().Highest()
	require.Equal(t, int(highest)+1, p.participants().Len(), "the shortest form")
}

func TestCurrentSlotIsProvedBeforeOldOnes(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	old := []Group{}
	for i := range 20 {
		old = append(old, groupOf(t, r, dataOf(8, fmt.Sprint(i)), upTo(64)))
	}
	current := groupOf(t, r, dataOf(9, "a"), indices{1, 2})
	for i := range 100 {
		groups := append(slices.Clone(old), current)
		rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		d := decide(&Snapshot{Groups: groups}, inputAt(9))
		require.NotNil(t, d.plan)
		require.Equal(t, wire.Slot(9), d.plan.group.Data.Slot)
	}
}

func TestOldGroupsOnlyInThePause(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 8)
	s := &Snapshot{Groups: []Group{
		groupOf(t, r, dataOf(8, "a"), indices{1, 2}),
		groupOf(t, r, dataOf(7, "a"), indices{1, 2, 3}),
		groupOf(t, r, dataOf(10, "a"), indices{1, 2, 3}),
		groupOf(t, r, dataOf(1<<40, "a"), indices{1, 2, 3}),
	}}
	in := inputAt(9)
	d := decide(s, in)
	require.NotNil(t, d.plan, "the slot before, as there is nothing of this one")
	require.Equal(t, wire.Slot(8), d.plan.group.Data.Slot)
	require.Equal(t, in.late, d.plan.deadline)
	in.late = time.Time{}
	d = decide(s, in)
	require.Nil(t, d.plan, "the prover is kept free for the slot's own votes")
	require.Equal(t, SessionNoVotes, d.reason)
	require.False(t, d.hasMaterial)
}

func TestSlotsWithoutAnEpochAreNotProved(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 8)
	slot := wire.Slot(1) << 32
	d := decide(&Snapshot{Groups: []Group{groupOf(t, r, dataOf(slot, "a"), upTo(8))}}, inputAt(slot))
	require.Nil(t, d.plan)
}

func TestTwoDataRootsMakeTwoJobs(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	a, b := dataOf(9, "a"), dataOf(9, "b")
	groups := []Group{groupOf(t, r, a, indices{1, 2, 3}), groupOf(t, r, b, indices{4, 5, 6, 7})}
	d := decide(&Snapshot{Groups: groups}, inputAt(9))
	require.Equal(t, indices{4, 5, 6, 7}, rawOf(d.plan))
	groups[1] = groupOf(t, r, b, indices{4, 5, 6, 7}, indices{4, 5, 6, 7})
	d = decide(&Snapshot{Groups: groups}, inputAt(9))
	require.Equal(t, indices{1, 2, 3}, rawOf(d.plan))
	job := d.plan.job(keyring{r})
	require.Equal(t, [32]byte(a.HashTreeRoot()), job.Message)
	require.Equal(t, uint32(9), job.Epoch)
}

// TestSmallInputs is the grid of 0-4 raw votes by 0-3 children, each planned twice for the slot.
func TestSmallInputs(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	for raw := range 5 {
		for kids := range 4 {
			t.Run(fmt.Sprintf("%d raw and %d children", raw, kids), func(t *testing.T) {
				t.Parallel()
				var aggregates []indices
				for k := range kids {
					aggregates = append(aggregates, indices{wire.ValidatorIndex(10 + 2*k), wire.ValidatorIndex(11 + 2*k)})
				}
				g := groupOf(t, r, dataOf(9, "a"), upTo(raw), aggregates...)
				in := inputAt(9)
				d := decide(&Snapshot{Groups: []Group{g}}, in)
				if raw+kids < 2 {
					require.Nil(t, d.plan)
					return
				}
				require.NotNil(t, d.plan)
				checkPlan(t, d.plan, &in)
				// The second pass over the slot, with the first one's aggregate at hand.
				first := d.plan
				g.Aggregates = slices.DeleteFunc(g.Aggregates, func(a *Pooled) bool { return a.members.isSubsetOf(first.members) })
				made := aggregateOf(t, r, g.Data, first.participants().Indices()...)
				g.Aggregates = append(g.Aggregates, &Pooled{Aggregate: made, Root: g.Root, members: first.members})
				if d = decide(&Snapshot{Groups: []Group{g}}, in); d.plan != nil {
					checkPlan(t, d.plan, &in)
					require.Greater(t, d.plan.width, first.width)
				}
			})
		}
	}
}

func TestQuarantinedPlansAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	in := inputAt(9)
	g := groupOf(t, r, dataOf(9, "a"), indices{1, 2, 3}, indices{1, 2}, indices{11, 12})
	for want := range 2 { // with the child, then without
		d := decide(&Snapshot{Groups: []Group{g}}, in)
		require.NotNil(t, d.plan)
		require.Len(t, d.plan.children, 1-want)
		require.False(t, in.bars.addCrash(d.plan.key, 9))
		require.NotNil(t, decide(&Snapshot{Groups: []Group{g}}, in).plan, "once is no reason")
		require.True(t, in.bars.addCrash(d.plan.key, 9))
	}
	d := decide(&Snapshot{Groups: []Group{g}}, in)
	require.Nil(t, d.plan)
	require.Equal(t, SessionQuarantined, d.reason)
	g = groupOf(t, r, dataOf(9, "a"), indices{1, 2, 3, 4}, indices{1, 2}, indices{11, 12})
	require.NotNil(t, decide(&Snapshot{Groups: []Group{g}}, in).plan, "new material is a new plan")
	in.bars.prune(12)
	require.Empty(t, in.bars.plans)
}

func TestNoTimeSaysWhatWasMissing(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	in := inputAt(9)
	in.timely, in.lateOwn = in.now.Add(100*time.Millisecond), in.now.Add(400*time.Millisecond)
	d := decide(&Snapshot{Groups: []Group{groupOf(t, r, dataOf(9, "a"), upTo(32))}}, in)
	require.Nil(t, d.plan)
	require.Equal(t, SessionNoTime, d.reason)
	require.True(t, d.hasMaterial)
	require.Equal(t, in.cost.predict(2, 0), d.need)
	require.Equal(t, 400*time.Millisecond, d.have)
	s := &session{}
	require.True(t, s.note(&d))
	require.Equal(t, "no_time: need 0.6 s, have 0.4 s", s.explain(s.verdict(false)))
	later := d
	later.have = 0
	require.False(t, s.note(&later), "counted once")
	require.Equal(t, 400*time.Millisecond, s.have, "the first figures stand")
}

// TestPlansAreSoundAndDoNotDependOnOrder draws random material and shuffles it.
func TestPlansAreSoundAndDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 40)
	for seed := range 400 {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		in := inputAt(9)
		in.limits.mayOverlap = rng.IntN(2) == 0
		in.limits.maxChildren = rng.IntN(4)
		in.limits.maxRaw = 2 + rng.IntN(40)
		in.limits.maxSigners = in.limits.maxRaw + rng.IntN(20)
		in.timely = in.now.Add(time.Duration(rng.IntN(6000)) * time.Millisecond)
		in.lateOwn = in.timely.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		pick := func(most int) indices {
			out := upTo(40)
			rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			return out[:rng.IntN(most+1)]
		}
		s := &Snapshot{}
		for i := range 1 + rng.IntN(4) {
			b := newBook(bookLimits{rawVotes: 1000, rawBytes: 1 << 20, aggregates: 100, aggregateBytes: 1 << 20}, 40, new(set))
			data := dataOf(wire.Slot(8+rng.IntN(2)), fmt.Sprint(i))
			for _, v := range pick(40) {
				b.addRaw(vote(v, data), data.HashTreeRoot(), 9, planTime)
			}
			for range rng.IntN(5) {
				if members := pick(25); len(members) > 0 {
					a := aggregateOf(t, r, data, members...)
					b.addAggregate(&Pooled{Aggregate: a, Root: data.HashTreeRoot(), members: setOf(a.Participants)}, 9)
				}
			}
			s.Groups = append(s.Groups, b.snapshot(planTime).Groups...)
		}
		want := decide(s, in)
		if want.plan != nil {
			checkPlan(t, want.plan, &in)
		}
		for range 4 {
			rng.Shuffle(len(s.Groups), func(i, j int) { s.Groups[i], s.Groups[j] = s.Groups[j], s.Groups[i] })
			for _, g := range s.Groups {
				rng.Shuffle(len(g.Raw), func(i, j int) { g.Raw[i], g.Raw[j] = g.Raw[j], g.Raw[i] })
				rng.Shuffle(len(g.Aggregates), func(i, j int) { g.Aggregates[i], g.Aggregates[j] = g.Aggregates[j], g.Aggregates[i] })
			}
			got := decide(s, in)
			require.Equal(t, want.reason, got.reason)
			require.Equal(t, want.plan == nil, got.plan == nil)
			if got.plan != nil {
				require.Equal(t, want.plan.key, got.plan.key, "seed %d", seed)
				require.Equal(t, want.plan.deadline, got.plan.deadline)
			}
		}
	}
}

func TestPlanLeavesItsMaterialAlone(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 64)
	g := groupOf(t, r, dataOf(9, "a"), indices{9, 8, 7, 1}, indices{8, 9}, indices{20, 21, 22})
	raw, aggregates := slices.Clone(g.Raw), slices.Clone(g.Aggregates)
	in := inputAt(9)
	d := decide(&Snapshot{Groups: []Group{g}}, in)
	require.NotNil(t, d.plan)
	before := d.plan.participants()
	ssz := slices.Clone(before.SSZ())
	require.Equal(t, raw, g.Raw)
	require.Equal(t, aggregates, g.Aggregates)
	for i := range g.Raw {
		g.Raw[i].Index = 63
	}
	d.plan.children = nil
	require.Equal(t, ssz, before.SSZ(), "changing the inputs afterwards changes nothing in the output")
}

func BenchmarkDecide(b *testing.B) {
	r := testRegistry(b, 1024)
	for _, n := range []int{128, 1024} {
		b.Run(fmt.Sprintf("%d votes", n), func(b *testing.B) {
			s := &Snapshot{Groups: []Group{groupOf(b, r, dataOf(9, "a"), upTo(n), upTo(n/2), indices{1000, 1001})}}
			in := inputAt(9)
			b.ReportAllocs()
			for b.Loop() {
				if decide(s, in).plan == nil {
					b.Fatal("no plan")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/plan")
		})
	}
}
