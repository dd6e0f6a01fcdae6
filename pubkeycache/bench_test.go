package pubkeycache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/xmss"
)

// crowd is some validators of a registry as the cache sees participants. Bitlists on the wire end at wire.RegistryLimit, and
// so do wire.Participants; a crowd may be larger.
type crowd struct {
	indices []wire.ValidatorIndex
	ssz     []byte // its bitlist
}

// newCrowd takes those of n validators that keep chooses.
func newCrowd(n int, keep func(i int) bool) *crowd {
	c := &crowd{}
	for i := range n {
		if keep(i) {
			c.indices = append(c.indices, wire.ValidatorIndex(i))
		}
	}
	length := int(c.indices[len(c.indices)-1]) + 1
	c.ssz = make([]byte, length/8+1)
	for _, v := range c.indices {
		c.ssz[v/8] |= 1 << (v % 8)
	}
	c.ssz[length/8] |= 1 << (length % 8)
	return c
}

// crowdCache is a Cache that looks crowds up: all of its way but the first look at the highest index.
type crowdCache struct {
	*Cache
	building *crowd
}

func newCrowdCache(tb testing.TB, n int) *crowdCache {
	tb.Helper()
	r, err := newRegistry(xmss.Blake2s, testValidators(n), n)
	require.NoError(tb, err)
	cache, err := New(Config{}, r, nil)
	require.NoError(tb, err)
	c := &crowdCache{Cache: cache}
	c.resolve = func(wire.Participants) ([]byte, error) {
		ranks := r.newRanks()
		for _, v := range c.building.indices {
			ranks.add(r.rank[v])
		}
		return r.keysOf(ranks, len(c.building.indices)), nil
	}
	return c
}

func (c *crowdCache) look(tb testing.TB, who *crowd) *SignerSet {
	c.building = who
	set, err := c.find(context.Background(), who.ssz, wire.Participants{})
	if err != nil || len(set.Keys) != len(who.indices)*xmss.PublicKeySize {
		tb.Fatalf("signer set of %d validators: %v", len(who.indices), err)
	}
	return set
}

// The ways from participants to their signer set. Nineteen of twenty validators take part.
func BenchmarkSignerSet(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		rng := rand.New(rand.NewPCG(1, 2))
		most := func() *crowd { return newCrowd(n, func(int) bool { return rng.IntN(20) != 0 }) }
		name := func(way string) string { return fmt.Sprintf("%s/validators=%d", way, n) }

		b.Run(name("rebuilt"), func(b *testing.B) {
			c, who := newCrowdCache(b, n), most()
			b.ReportAllocs()
			for b.Loop() {
				c.look(b, who)
			}
		})
		b.Run(name("cached"), func(b *testing.B) {
			c, who := newCrowdCache(b, n), most()
			c.Admit(c.look(b, who))
			b.ReportAllocs()
			for b.Loop() {
				c.look(b, who)
			}
		})
		// Each set is new at its first look, verified, and looked up three times more: as a message of a peer's, as a
		// child of a job, and in a block. The cache is full of sets that go.
		b.Run(name("churn"), func(b *testing.B) {
			c := newCrowdCache(b, n)
			crowds := make([]*crowd, 2*c.size.signerSets)
			for i := range crowds {
				crowds[i] = most()
				c.Admit(c.look(b, crowds[i]))
			}
			b.ReportAllocs()
			for looks := 0; b.Loop(); looks++ {
				who := crowds[looks/4%len(crowds)]
				set := c.look(b, who)
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
	c := newCrowdCache(b, n)
	var whole, traffic []*crowd
	for k := range committees {
		all := func(i int) bool { return i%committees == k }
		whole = append(whole, newCrowd(n, all))
		traffic = append(traffic, newCrowd(n, func(i int) bool { return all(i) && i/committees%4 != 0 }))
		if k%2 == 0 {
			traffic = append(traffic, whole[k])
		} else {
			traffic = append(traffic, newCrowd(n, func(i int) bool { return all(i) && i/committees%32 != 1 }))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c.sets.Purge()
		if eager {
			for _, who := range whole {
				c.Admit(c.look(b, who))
			}
		}
		for look := range 4 {
			for _, who := range traffic {
				if set := c.look(b, who); look == 0 {
					c.Admit(set)
				}
			}
		}
	}
}

func BenchmarkUpper(b *testing.B) {
	c := testCache(b, Config{}, 1_000)
	known, unknown := xmss.UpperKey{Tree: 1}, xmss.UpperKey{Tree: 2}
	c.AdmitUpper(known, &xmss.Upper{})
	for name, key := range map[string]xmss.UpperKey{"hit": known, "miss": unknown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if (c.Upper(key) != nil) != (key == known) {
					b.Fatal("a wrong answer")
				}
			}
		})
	}
}
