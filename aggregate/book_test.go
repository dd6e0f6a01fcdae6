package aggregate

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func testBook(validators int, limits bookLimits) *book {
	var ours set
	for v := range validators {
		ours.add(wire.ValidatorIndex(v))
	}
	return newBook(limits, validators, &ours)
}

var roomy = bookLimits{rawVotes: 100_000, rawBytes: 1 << 30, aggregates: 1000, aggregateBytes: 1 << 30}

func merge(t testing.TB, data wire.AttestationData, indices ...wire.ValidatorIndex) *Pooled {
	t.Helper()
	p := participants(t, indices...)
	return &Pooled{
		Aggregate: &wire.SignedAggregate{Data: data, Participants: p, Proof: make([]byte, 100)},
		Root:      rootOf(data), members: setOf(p),
	}
}

// audit recounts everything that a book counts as it goes.
func audit(t testing.TB, b *book) {
	t.Helper()
	rawVotes, rawBytes, aggregates, aggregateBytes := 0, 0, 0, 0
	for i, h := range b.slots {
		require.True(t, i == 0 || b.slots[i-1].slot < h.slot)
		require.LessOrEqual(t, len(h.groups), maxRootsPerSlot)
		for _, g := range h.groups {
			loose := 0
			var covered set
			for j, p := range g.aggregates {
				aggregates++
				aggregateBytes += len(p.Aggregate.Proof)
				covered.addAll(p.members)
				for k, o := range g.aggregates {
					require.True(t, j == k || !p.members.isSubsetOf(o.members), "a dominated aggregate was kept")
				}
			}
			for j, r := range g.raw {
				rawVotes++
				rawBytes += len(r.Signature)
				require.True(t, j == 0 || g.raw[j-1].Index < r.Index)
				if !covered.has(r.Index) {
					loose++
				}
			}
			require.Equal(t, covered, g.covered)
			require.Equal(t, loose, g.loose)
		}
	}
	require.Equal(t, [4]int{rawVotes, rawBytes, aggregates, aggregateBytes}, [4]int{b.rawVotes, b.rawBytes, b.aggregates, b.aggregateBytes})
	require.LessOrEqual(t, rawVotes, b.limits.rawVotes)
	require.LessOrEqual(t, rawBytes, b.limits.rawBytes)
	require.LessOrEqual(t, aggregates, b.limits.aggregates)
	require.LessOrEqual(t, aggregateBytes, b.limits.aggregateBytes)
}

// progress returns the slot's counts, zero if there is nothing of it.
func (b *book) progress(slot wire.Slot) Progress {
	for _, h := range b.slots {
		if h.slot == slot {
			return h.progress
		}
	}
	return Progress{}
}

func TestOneVoteOfAValidatorCountsOnce(t *testing.T) {
	t.Parallel()
	b := testBook(16, roomy)
	d := dataOf(5, "a")
	for range 3 { // delivered by three peers
		b.addRaw(vote(7, d), rootOf(d), 5, planTime)
	}
	require.Equal(t, 1, b.rawVotes)
	require.Equal(t, 1, b.progress(5).Votes)
	other := dataOf(5, "b")
	require.Equal(t, kept, b.addRaw(vote(7, other), rootOf(other), 5, planTime), "two votes of one slot are material of two data roots")
	require.Equal(t, 1, b.progress(5).Votes, "but one validator")
	audit(t, b)
}

func TestWindowsOfThePool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		slot             wire.Slot
		wantRaw, wantAgg refusal
	}{
		{"the slot itself", 10, kept, kept},
		{"the next one", 11, kept, kept},
		{"the one after", 12, refusedWindow, refusedWindow},
		{"far ahead", 1<<64 - 1, refusedWindow, refusedWindow},
		{"the slot before", 9, kept, kept},
		{"two slots ago", 8, refusedWindow, kept},
		{"three slots ago", 7, refusedWindow, refusedWindow},
		{"genesis", 0, refusedWindow, refusedWindow},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := testBook(16, roomy)
			d := dataOf(c.slot, "a")
			require.Equal(t, c.wantRaw, b.addRaw(vote(1, d), rootOf(d), 10, planTime))
			require.Equal(t, c.wantAgg, b.addAggregate(merge(t, d, 1, 2), 10))
		})
	}
	b := testBook(16, roomy)
	d := dataOf(10, "a")
	require.Equal(t, kept, b.addRaw(vote(1, d), rootOf(d), 10, planTime))
	require.Equal(t, kept, b.addAggregate(merge(t, d, 1, 2), 10))
	b.prune(11)
	require.Equal(t, 1, b.rawVotes)
	b.prune(12)
	require.Zero(t, b.rawVotes)
	require.Equal(t, 1, b.aggregates)
	audit(t, b)
	b.prune(13)
	require.Empty(t, b.slots)
	audit(t, b)
}

func TestStrangersAreNotPooled(t *testing.T) {
	t.Parallel()
	b := testBook(16, roomy)
	d := dataOf(5, "a")
	require.Equal(t, refusedUnknown, b.addRaw(vote(16, d), rootOf(d), 5, planTime))
	require.Equal(t, refusedUnknown, b.addRaw(vote(1<<63, d), rootOf(d), 5, planTime))
	require.Equal(t, refusedUnknown, b.addAggregate(merge(t, d, 1, 16), 5))
	require.Equal(t, refusedUnknown, b.addAggregate(merge(t, d), 5))
}

func TestDominatedAggregatesGo(t *testing.T) {
	t.Parallel()
	b := testBook(16, roomy)
	d := dataOf(5, "a")
	for v := range wire.ValidatorIndex(16) {
		b.addRaw(vote(v, d), rootOf(d), 5, planTime)
	}
	require.Equal(t, kept, b.addAggregate(merge(t, d, upTo(8)...), 5))
	require.Equal(t, refusedDuplicate, b.addAggregate(merge(t, d, 3, 4), 5))
	require.Equal(t, refusedDuplicate, b.addAggregate(merge(t, d, upTo(8)...), 5), "the first of two equal ones stays")
	require.Equal(t, kept, b.addAggregate(merge(t, d, 7, 9), 5))
	require.Equal(t, kept, b.addAggregate(merge(t, d, upTo(12)...), 5))
	audit(t, b)
	s := b.snapshot(planTime)
	require.Len(t, s.Groups, 1)
	require.Len(t, s.Groups[0].Aggregates, 1)
	require.Equal(t, 12, s.Groups[0].Aggregates[0].Aggregate.Participants.Count())
	require.Len(t, s.Groups[0].Raw, 16, "raw votes stay until their slot is pruned")
	require.EqualValues(t, 4, b.dominated)
}

func TestFullPoolDropsOldestSlotsFirst(t *testing.T) {
	t.Parallel()
	b := testBook(16, bookLimits{rawVotes: 20, rawBytes: 1 << 20, aggregates: 4, aggregateBytes: 1 << 20})
	old, current := dataOf(4, "a"), dataOf(5, "a")
	for v := range wire.ValidatorIndex(16) {
		require.Equal(t, kept, b.addRaw(vote(v, old), rootOf(old), 5, planTime))
	}
	for v := range wire.ValidatorIndex(16) {
		require.Equal(t, kept, b.addRaw(vote(v, current), rootOf(current), 5, planTime))
	}
	audit(t, b)
	require.EqualValues(t, 12, b.evictedRaw)
	require.Len(t, b.slots[1].groups[0].raw, 16, "the newest slot lost nothing")
	next := dataOf(5, "b")
	for v := range wire.ValidatorIndex(16) {
		want := kept
		if v >= 4 {
			want = refusedFull
		}
		require.Equal(t, want, b.addRaw(vote(v, next), rootOf(next), 5, planTime), "only older slots make room")
	}

	for i, d := range []wire.AttestationData{old, current, current, current} {
		require.Equal(t, kept, b.addAggregate(merge(t, d, wire.ValidatorIndex(i), wire.ValidatorIndex(i+1)), 5))
	}
	require.Equal(t, kept, b.addAggregate(merge(t, current, 8, 9, 10), 5))
	require.Empty(t, b.slots[0].groups[0].aggregates, "the old slot's went")
	require.Equal(t, kept, b.addAggregate(merge(t, current, 11, 12, 13), 5))
	require.Equal(t, refusedFull, b.addAggregate(merge(t, old, upTo(16)...), 5), "what would be the first to go does not come in")
	audit(t, b)

	small := testBook(16, bookLimits{rawVotes: 100, rawBytes: 3000, aggregates: 10, aggregateBytes: 250})
	for v := range wire.ValidatorIndex(16) {
		small.addRaw(vote(v, current), rootOf(current), 5, planTime)
		small.addAggregate(merge(t, current, v, (v+1)%16), 5)
	}
	audit(t, small)
	require.Equal(t, 2, small.rawVotes)
	require.Equal(t, 2, small.aggregates)
}

func TestDataRootsOfASlotAreBounded(t *testing.T) {
	t.Parallel()
	b := testBook(200, roomy)
	for v := range wire.ValidatorIndex(100) { // each validator says something else
		d := dataOf(5, fmt.Sprint(v))
		b.addRaw(vote(v, d), rootOf(d), 5, planTime)
	}
	audit(t, b)
	honest := dataOf(5, "honest")
	for v := wire.ValidatorIndex(100); v < 200; v++ {
		require.Equal(t, kept, b.addRaw(vote(v, honest), rootOf(honest), 5, planTime))
	}
	audit(t, b)
	for v := range wire.ValidatorIndex(64) {
		d := dataOf(6, fmt.Sprint(v))
		require.Equal(t, kept, b.addRaw(vote(v, d), rootOf(d), 5, planTime))
		require.Equal(t, kept, b.addRaw(vote(v+64, d), rootOf(d), 5, planTime))
	}
	d := dataOf(6, "one too many")
	require.Equal(t, refusedFull, b.addRaw(vote(199, d), rootOf(d), 5, planTime))
	require.Equal(t, refusedFull, b.addAggregate(merge(t, d, 1, 2), 5))
	audit(t, b)
}

func TestProgressCountsOurSubnetsOnly(t *testing.T) {
	t.Parallel()
	var ours set
	for v := wire.ValidatorIndex(0); v < 16; v += 2 {
		ours.add(v)
	}
	b := newBook(roomy, 16, &ours)
	d := dataOf(5, "a")
	for v := range wire.ValidatorIndex(6) {
		b.addRaw(vote(v, d), rootOf(d), 5, planTime.Add(time.Duration(v)))
	}
	p := b.progress(5)
	require.Equal(t, 3, p.Votes)
	require.Equal(t, 3, p.Reached)
	require.Equal(t, planTime.Add(5), p.LastAdded)
	b.addAggregate(merge(t, d, 4, 6, 7), 5)
	p = b.progress(5)
	require.Equal(t, 3, p.Votes)
	require.Equal(t, 4, p.Reached)
	require.EqualValues(t, 1, p.Merges)
	require.Zero(t, b.progress(6))
}

// TestSixHoursWithoutFinality feeds all votes of every slot, and some aggregates, for six hours of slots of 4 s and 8 s.
func TestSixHoursWithoutFinality(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ validators, slots int }{{6, 5400}, {1024, 2700}} {
		t.Run(fmt.Sprintf("%d validators", c.validators), func(t *testing.T) {
			t.Parallel()
			n := c.validators
			b := testBook(n, bookLimits{rawVotes: max(4*n, minRawVotes), rawBytes: defaultRawBytes, aggregates: defaultAggregates, aggregateBytes: defaultAggregateBytes})
			sig := make([]byte, 2404)
			steady := 0
			for s := range wire.Slot(c.slots) {
				b.prune(s)
				d := dataOf(s, "a")
				root := rootOf(d)
				a := wire.SignedAttestation{Data: d, Signature: sig}
				for v := range n {
					a.ValidatorIndex = wire.ValidatorIndex(v)
					if r := b.addRaw(&a, root, s, planTime); r != kept {
						t.Fatalf("slot %d, validator %d: %s", s, v, refusalCodes[r])
					}
				}
				b.addAggregate(merge(t, d, 0, 1), s)
				b.addAggregate(merge(t, d, 0, 1, 2), s)
				if s == 10 {
					steady = b.rawBytes
				}
				require.LessOrEqual(t, len(b.slots), aggregateWindow)
			}
			audit(t, b)
			require.Equal(t, 2*n, b.rawVotes)
			require.Equal(t, steady, b.rawBytes, "flat")
			require.Equal(t, aggregateWindow, b.aggregates)
			require.Zero(t, b.evictedRaw)
		})
	}
}

// FuzzBook drives a book with random operations against a slow reference of what must be in it when nothing was evicted.
func FuzzBook(f *testing.F) {
	f.Add(uint64(1), uint16(200), false)
	f.Add(uint64(2), uint16(400), true)
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16, isTight bool) {
		rng := rand.New(rand.NewPCG(seed, 0))
		limits := roomy
		if isTight {
			limits = bookLimits{rawVotes: 12, rawBytes: 14 * 1208, aggregates: 5, aggregateBytes: 700}
		}
		b := testBook(12, limits)
		type key struct {
			root wire.DataRoot
			v    wire.ValidatorIndex
		}
		slots := make(map[key]wire.Slot)
		now := wire.Slot(3)
		for range min(steps, 300) {
			d := dataOf(now-2+wire.Slot(rng.IntN(5)), string(rune('a'+rng.IntN(3))))
			switch rng.IntN(8) {
			case 0:
				if rng.IntN(4) == 0 {
					now++
				}
				b.prune(now)
				for k, s := range slots {
					if age(s, now) >= rawWindow {
						delete(slots, k)
					}
				}
			case 1, 2:
				members := indices{wire.ValidatorIndex(rng.IntN(12)), wire.ValidatorIndex(rng.IntN(12)), wire.ValidatorIndex(rng.IntN(14))}
				b.addAggregate(merge(t, d, members...), now)
			default:
				v := wire.ValidatorIndex(rng.IntN(13))
				if b.addRaw(vote(v, d), rootOf(d), now, planTime) == kept {
					k := key{rootOf(d), v}
					_, had := slots[k]
					require.True(t, !had || isTight, "taken twice")
					slots[k] = d.Slot
				}
			}
			audit(t, b)
		}
		if isTight {
			return
		}
		got := 0
		for _, g := range b.snapshot(planTime).Groups {
			for _, r := range g.Raw {
				got++
				require.Contains(t, slots, key{g.Root, r.Index})
			}
		}
		require.Equal(t, len(slots), got)
	})
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{128, 1024, 4096} {
		b.Run(fmt.Sprintf("%d votes", n), func(b *testing.B) {
			book := testBook(n, roomy)
			d := dataOf(5, "a")
			for v := range wire.ValidatorIndex(n) {
				book.addRaw(vote(v, d), rootOf(d), 5, planTime)
			}
			b.ReportAllocs()
			for b.Loop() {
				if len(book.snapshot(planTime).Groups) != 1 {
					b.Fatal("no group")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/snapshot")
		})
	}
}

func BenchmarkAddVote(b *testing.B) {
	const n = 4096
	d := dataOf(5, "a")
	votes := make([]*wire.SignedAttestation, n)
	for v := range votes {
		votes[v] = vote(wire.ValidatorIndex(v), d)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { votes[i], votes[j] = votes[j], votes[i] })
	b.ReportAllocs()
	var book *book
	for i := 0; b.Loop(); i++ {
		if i%n == 0 {
			book = testBook(n, roomy)
		}
		book.addRaw(votes[i%n], rootOf(d), 5, planTime)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/vote")
}

func TestSets(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		pick := func() indices {
			out := upTo(1 + rng.IntN(wire.MaxRegistryLimit))
			rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			out = out[:min(rng.IntN(40), len(out))]
			slices.Sort(out)
			return out
		}
		x, y := pick(), pick()
		px, py := participants(t, x...), participants(t, y...)
		a, b := setOf(px), setOf(py)
		require.Equal(t, len(x), a.count())
		require.Equal(t, px.Indices(), a.indices())
		require.Equal(t, px.CountNotIn(py), a.countNotIn(b))
		require.Equal(t, px.IsSubsetOf(py), a.isSubsetOf(b))
		require.Equal(t, px.Intersects(py), a.intersects(b))
		require.Equal(t, len(x)-px.CountNotIn(py), common(a, b).count())
		before := a.clone()
		a.addAll(b)
		require.Equal(t, px.Indices(), before.indices(), "a clone has its own storage")
		require.Equal(t, px.Union(py).Indices(), a.indices())
		require.Equal(t, hashed(setOf(px.Union(py))), hashed(a), "in whatever order it grew")
		for _, v := range y {
			require.True(t, a.has(v))
		}
		require.False(t, a.has(wire.MaxRegistryLimit))
	}
	require.NotEqual(t, hashed(&set{}, setOf(participants(t, 1))), hashed(setOf(participants(t, 1)), &set{}))
	require.NotEqual(t, hashed(setOf(participants(t, 1, 65))), hashed(setOf(participants(t, 1)), setOf(participants(t, 1))))
}

func common(a, b *set) *set {
	s := new(set)
	s.addCommon(a, b)
	return s
}

// hashed returns what a fingerprint makes of sets one after the other.
func hashed(sets ...*set) []byte {
	h := sha256.New()
	for _, s := range sets {
		s.writeTo(h)
	}
	return h.Sum(nil)
}
