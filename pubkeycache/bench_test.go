package pubkeycache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"aggnode/wire"
	"aggnode/xmss"
)

// crowd returns those of n validators that keep chooses.
func crowd(tb testing.TB, n int, keep func(i int) bool) wire.Participants {
	tb.Helper()
	var indices []wire.ValidatorIndex
	for i := range n {
		if keep(i) {
			indices = append(indices, wire.ValidatorIndex(i))
		}
	}
	return participants(tb, indices...)
}

// look looks a signer set up, which is there or can be built.
func look(tb testing.TB, c *Cache, who wire.Participants) *SignerSet {
	set, err := c.SignerSet(context.Background(), who)
	if err != nil || len(set.Keys) != who.Count()*xmss.PublicKeySize {
		tb.Fatalf("signer set of %v: %v", who, err)
	}
	return set
}

// The ways from participants to their signer set. Nineteen of twenty validators take part.
func BenchmarkSignerSet(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		rng := rand.New(rand.NewPCG(1, 2))
		most := func() wire.Participants { return crowd(b, n, func(int) bool { return rng.IntN(20) != 0 }) }
		name := func(way string) string { return fmt.Sprintf("%s/validators=%d", way, n) }

		b.Run(name("rebuilt"), func(b *testing.B) {
			c, who := testCache(b, Config{}, n), most()
			b.ReportAllocs()
			for b.Loop() {
				look(b, c, who)
			}
		})
		b.Run(name("cached"), func(b *testing.B) {
			c, who := testCache(b, Config{}, n), most()
			c.Admit(look(b, c, who))
			b.ReportAllocs()
			for b.Loop() {
				look(b, c, who)
			}
		})
		// Each set is new at its first look, verified, and looked up three times more: as a message of a peer's, as a
		// child of a job, and in a block. The cache is full of sets that go.
		b.Run(name("churn"), func(b *testing.B) {
			c := testCache(b, Config{}, n)
			crowds := make([]wire.Participants, 2*c.size)
			for i := range crowds {
				crowds[i] = most()
				c.Admit(look(b, c, crowds[i]))
			}
			b.ReportAllocs()
			for looks := 0; b.Loop(); looks++ {
				who := crowds[looks/4%len(crowds)]
				set := look(b, c, who)
				if looks%4 == 0 {
					c.Admit(set)
				}
			}
		})
		for _, eager := range []bool{false, true} {
			way := "slot/lazy"
			if eager {
				way = "slot/eager"
			}
			b.Run(name(way), func(b *testing.B) { benchmarkSlot(b, n, eager) })
		}
	}
}

// benchmarkSlot looks up what a first slot brings: of each of eight committees an early and a late aggregate, each four
// times. In half of the committees all take part in the end. The eager variant makes the sets of whole committees ahead.
func benchmarkSlot(b *testing.B, n int, eager bool) {
	const committees = 8
	c := testCache(b, Config{}, n)
	var whole, traffic []wire.Participants
	for k := range committees {
		all := func(i int) bool { return i%committees == k }
		whole = append(whole, crowd(b, n, all))
		traffic = append(traffic, crowd(b, n, func(i int) bool { return all(i) && i/committees%4 != 0 }))
		if k%2 == 0 {
			traffic = append(traffic, whole[k])
		} else {
			traffic = append(traffic, crowd(b, n, func(i int) bool { return all(i) && i/committees%32 != 1 }))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c.sets.Purge()
		if eager {
			for _, who := range whole {
				c.Admit(look(b, c, who))
			}
		}
		for round := range 4 {
			for _, who := range traffic {
				if set := look(b, c, who); round == 0 {
					c.Admit(set)
				}
			}
		}
	}
}

func BenchmarkUpper(b *testing.B) {
	c := testCache(b, Config{}, 1_000)
	known, unknown := xmss.UpperKey{}, xmss.UpperKey{Tree: 2}
	for v := range wire.ValidatorIndex(1_000) {
		c.AdmitUpper(v, &xmss.Upper{})
	}
	for name, key := range map[string]xmss.UpperKey{"hit": known, "miss": unknown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			v := wire.ValidatorIndex(0)
			for b.Loop() {
				if (c.Upper(v, key) != nil) != (key == known) {
					b.Fatal("a wrong answer")
				}
				v = (v + 1) % 1_000
			}
		})
	}
}
