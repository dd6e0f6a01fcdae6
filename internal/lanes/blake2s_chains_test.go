package lanes_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
)

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestBlake2sGatherReadsTheWordsOfEachLane(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(11, 12))
		for range differentialCases {
			used, rows, stride := randomSet(rng), make([]lanes.Blake2sRow, 4*rng.IntN(9)), rng.IntN(200)
			from := randomBytes(rng, 15*stride+4*len(rows)) // just enough
			b := lanes.NewBlake2s()
			b.Gather(rows, from, uint32(stride), used)
			for _, k := range members(used) {
				words := column(rows, k)
				for w := range words {
					require.Equal(t, binary.LittleEndian.Uint32(from[k*stride+4*w:]), words[w], "lane %d of %016b", k, used)
				}
			}
		}
	})
}

func TestBlake2sGatherAndAdvanceRefuseShortMemory(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		b := lanes.NewBlake2s()
		const stride = 100
		rows := make([]lanes.Blake2sRow, 8)
		from := make([]byte, 15*stride+32)
		chains := []lanes.Blake2sChain{1, 2, 3, 4, 5, 6, 7, 8}
		values := make([]byte, 15*stride+64*16)
		for _, used := range []lanes.LaneSet{0xffff, 1} {
			b.Gather(rows, from, stride, used)
			require.Panics(t, func() { b.Gather(rows, from[1:], stride, used) })
			require.Panics(t, func() { b.Gather(rows, from, 1<<32-1, used) })
			chains := chains[:min(used.Len(), len(chains))]
			b.Advance(new(lanes.Blake2sOwners), values, stride, chains, 1)
			require.Panics(t, func() { b.Advance(new(lanes.Blake2sOwners), values[1:], stride, chains, 1) })
			require.Panics(t, func() { b.Advance(new(lanes.Blake2sOwners), values, 1<<32-1, chains, 1) })
		}
		b.Advance(new(lanes.Blake2sOwners), values, stride, nil, 1)
		chains = randomChains(rand.New(rand.NewPCG(1, 2)), lanes.Blake2sWidth+1)
		require.Panics(t, func() { b.Advance(new(lanes.Blake2sOwners), values, stride, chains, 1) })
	})
}

// randomChains is n different chains of owners with random bits above their 4, which say nothing.
func randomChains(rng *rand.Rand, n int) (chains []lanes.Blake2sChain) {
	for _, id := range rng.Perm(16 * 64)[:n] {
		c := lanes.NewBlake2sChain(id/64, id%64)
		chains = append(chains, c|lanes.Blake2sChain(rng.IntN(8)|rng.IntN(8)<<13))
	}
	return chains
}

func randomOwners(rng *rand.Rand) *lanes.Blake2sOwners {
	rows := randomWide(rng)
	return &lanes.Blake2sOwners{Words: [8]lanes.Blake2sRow(rows[:8])}
}

func TestBlake2sAdvanceEqualsReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(13, 14))
		owners := randomOwners(rng)
		const stride = 64*16 + 16
		for n := range 4 * differentialCases {
			chains, steps := randomChains(rng, n%17), rng.IntN(8)
			values := randomBytes(rng, 16*stride)
			want, before := slices.Clone(values), slices.Clone(chains)
			for _, c := range chains {
				owner, number := int(c)>>9&15, int(c)>>3&63
				value := want[owner*stride+16*number:][:16]
				for step := range steps {
					message := column(owners.Words[:], owner)
					message[1], message[2] = uint32(c)&511+uint32(step), 0
					d := blake2sReference(append(blake2sBytes(message), value...))
					copy(value, blake2sBytes(d[:]))
				}
			}
			b := lanes.NewBlake2s()
			b.Advance(owners, values, stride, chains, steps)
			require.Equal(t, want, values, "%d steps of %v", steps, chains)
			require.Equal(t, before, chains)
			if n%50 == 0 {
				owners = randomOwners(rng)
			}
		}
	})
}

func TestBlake2sChainsAreNamedByOwnerNumberAndPosition(t *testing.T) {
	t.Parallel()
	seen := map[lanes.Blake2sChain]bool{}
	for owner := range 16 {
		for number := range 64 {
			for position := range 8 {
				c := lanes.NewBlake2sChain(owner, number) + lanes.Blake2sChain(position)
				require.Equal(t, position, c.Position())
				require.False(t, seen[c])
				seen[c] = true
			}
		}
	}
}

func FuzzBlake2sAdvance(f *testing.F) {
	f.Add([]byte{}, uint8(1), uint32(0))
	f.Add(binary.LittleEndian.AppendUint16(nil, 0xffff), uint8(7), uint32(1024))
	f.Fuzz(func(t *testing.T, ids []byte, steps uint8, stride uint32) {
		var chains []lanes.Blake2sChain
		taken := map[lanes.Blake2sChain]bool{}
		for ; len(ids) >= 2 && len(chains) < lanes.Blake2sWidth; ids = ids[2:] {
			c := lanes.Blake2sChain(binary.LittleEndian.Uint16(ids))
			if id := c >> 3 & 1023; !taken[id] {
				taken[id] = true
				chains = append(chains, c)
			}
		}
		stride = max(stride%2048, 1024) // values do not overlap
		start := randomBytes(rand.New(rand.NewPCG(uint64(stride), 1)), 16*2048)
		owners := randomOwners(rand.New(rand.NewPCG(uint64(steps), 2)))
		var want []byte
		defer lanes.Use(lanes.Current())
		for _, p := range lanes.Paths() {
			lanes.Use(p)
			values := slices.Clone(start)
			b := lanes.NewBlake2s()
			b.Advance(owners, values, stride, chains, int(steps%16))
			if p == lanes.PathGeneric {
				want = values
			}
			require.Equal(t, want, values, p)
		}
	})
}
