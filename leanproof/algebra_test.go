package leanproof

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

func randomElements(r *rand.Rand, n int) []gf.E {
	out := make([]gf.E, n)
	for i := range out {
		out[i] = gf.E{C0: r.Uint64(), C1: r.Uint64(), C2: r.Uint64()}
	}
	return out
}

func eqTable(point []gf.E) []gf.E {
	out := make([]gf.E, 1<<len(point))
	gf.EqTable(point, out)
	return out
}

// The short forms of multilinear extensions are their definitions, sums over the cube.
func TestExtensionsAreSumsOverTheCube(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 7 {
		point := randomElements(r, n)
		eq := eqTable(point)
		values := randomElements(r, len(eq))

		require.Equal(t, gf.Dot(eq, values), fold(slices.Clone(values), point))

		powers := make([]uint64, len(eq))
		for i := range powers {
			powers[i] = gf.PowGenerator(uint64(i))
		}
		require.Equal(t, gf.DotK(eq, powers), generatorPowers(point))

		for i := range eq {
			require.Equal(t, eq[i], selector(uint64(i), point))
		}
		for rows := range len(eq) + 1 {
			var want gf.E
			for _, e := range eq[rows:] {
				want = gf.Add(want, e)
			}
			require.Equal(t, want, paddingWeight(uint64(rows), point), "%d rows of %d", rows, len(eq))
		}
		other := randomElements(r, n)
		for k, e := range eqPrefixes(point, other) {
			if k <= n {
				require.Equal(t, gf.Eq(point[:k], other), e)
			}
		}
	}
}

func TestShiftWeightsAreSumsOverTheCube(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	a, b := randomElements(r, sliceLog), randomElements(r, sliceLog)
	eqA, eqB := eqTable(a), eqTable(b)
	var got [laneBits]gf.E
	shiftWeights(a, b, &got)
	for shift := range got {
		var want gf.E
		for y := range laneBits {
			want = gf.Add(want, gf.Mul(eqA[(y+shift)%laneBits], eqB[y]))
		}
		require.Equal(t, want, got[shift], "shift %d", shift)
	}
}

// roundLinear is theta, rho and pi of Keccak-f as FIPS 202 has them.
func roundLinear(a lanes.KeccakState) (b lanes.KeccakState) {
	var c [5]uint64
	for x := range c {
		c[x] = a[x] ^ a[x+5] ^ a[x+10] ^ a[x+15] ^ a[x+20]
	}
	for i := range a {
		x, y := i%5, i/5
		lane := a[i] ^ c[(x+4)%5] ^ bits.RotateLeft64(c[(x+1)%5], 1)
		b[y+5*((2*x+3*y)%5)] = bits.RotateLeft64(lane, int(key.KeccakRho[i]))
	}
	return b
}

// A linear form over the bits of a state, through the linear part of a round: bit by bit, and by linearForm.
func TestLinearFormIsThatOfTheRound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 3))
	var laneWeights [laneCount]gf.E
	copy(laneWeights[:], randomElements(r, laneCount))
	sliceWeights := randomElements(r, laneBits)
	for lane := range laneCount {
		z := r.IntN(laneBits)
		var state lanes.KeccakState
		state[lane] = 1 << z
		var want gf.E
		for l, word := range roundLinear(state) {
			for ; word != 0; word &= word - 1 {
				want = gf.Add(want, gf.Mul(laneWeights[l], sliceWeights[bits.TrailingZeros64(word)]))
			}
		}

		var shifts [laneBits]gf.E
		for r := range shifts {
			shifts[r] = sliceWeights[(z+r)%laneBits]
		}
		from := make([]gf.E, laneCount)
		from[lane] = gf.One
		require.Equal(t, want, linearForm(&laneWeights, &shifts, from), "lane %d", lane)

		if lane == 0 {
			k := keccakClaim{lanes: laneWeights, slices: [laneBits]gf.E(sliceWeights)}
			require.Equal(t, want, k.constantBit(1, z))
		}
	}
}

// A layer goes back one round in both segments.
func TestIotaHasTheRoundConstants(t *testing.T) {
	t.Parallel()
	constants := [24]uint64{
		0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
		0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
		0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
		0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
	}
	for layer := range key.KeccakDepth {
		for segment := range key.KeccakSegments {
			var got uint64
			for _, i := range key.KeccakIota[layer][segment] {
				got |= 1 << (1<<i - 1)
			}
			require.Equal(t, constants[key.KeccakDepth*(segment+1)-1-layer], got, "layer %d, segment %d", layer, segment)
		}
	}
}

// Embedding and projection make products of packs out of products of polynomials: the product of two embedded packs, projected,
// is the pack of the products.
func TestPacksMultiplyThroughTheirEmbedding(t *testing.T) {
	t.Parallel()
	embed := func(pack uint16) (p uint64) {
		for i := range key.KeccakEmbed {
			if pack>>i&1 == 1 {
				for _, c := range key.KeccakEmbed[i] {
					p ^= 1 << c
				}
			}
		}
		return p
	}
	r := rand.New(rand.NewPCG(1, 4))
	for range 200 {
		a, b := uint16(r.Uint32()), uint16(r.Uint32())
		var product uint64
		for p, q := embed(a), embed(b); q != 0; q &= q - 1 {
			product ^= p << bits.TrailingZeros64(q)
		}
		var got uint16
		for c := range key.KeccakProject {
			if product>>c&1 == 1 {
				for _, i := range key.KeccakProject[c] {
					got ^= 1 << i
				}
			}
		}
		require.Equal(t, a&b, got)
	}
}

func TestRingSwitchMapIsItsSumOfPowers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 5))
	drawn := [sliceLog]gf.E(randomElements(r, sliceLog))
	coefficients := mapCoefficients(&drawn)
	for range 10 {
		v := randomElements(r, 1)[0]
		var want gf.E
		for k, c := range coefficients {
			want = gf.Add(want, gf.Mul(c, gf.SquareN(v, k)))
		}
		require.Equal(t, want, mapSlice(&drawn, v))
	}
}

// At a vertex of the cube, a position's weight is the product of normalized vanishing polynomials: zero on the positions below
// 2^t, one at 2^t, and additive.
func TestPositionWeightsAreTheNovelBasis(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 6))
	const n = 18
	basis := func(b int, position uint32) gf.E {
		point := make([]gf.E, n)
		point[b] = gf.One
		return positionWeight(position, point)
	}
	for b := range n {
		require.Equal(t, gf.One, basis(b, 1<<b))
		require.Zero(t, basis(b, r.Uint32N(1<<b)))
		p, q := r.Uint32N(1<<n), r.Uint32N(1<<n)
		require.Equal(t, gf.Add(basis(b, p), basis(b, q)), basis(b, p^q))
	}
}

func TestPlacementsAreAlignedAndDisjoint(t *testing.T) {
	t.Parallel()
	logs := []int{3, 0, 5, 3, 0, 1}
	offsets := make([]uint64, len(logs))
	placements(logs, offsets)
	require.Equal(t, []uint64{32, 50, 0, 40, 51, 48}, offsets)
}

func TestPositionsAreTheLowBitsFirst(t *testing.T) {
	t.Parallel()
	for depth := 14; depth <= maxTreeDepth; depth++ {
		var c check
		c.sponge.start(digest{1}, digest{2})
		s := c.sponge
		got := make([]uint32, 40)
		c.drawPositions(got, depth)
		for i := 0; i < len(got); {
			c := s.challenge()
			e := [3]uint64{c.C0, c.C1, c.C2}
			for at := 0; at+depth <= 192 && i < len(got); at += depth {
				var want uint32
				for b := range depth {
					want |= uint32(e[(at+b)/64]>>((at+b)%64)&1) << b
				}
				require.Equal(t, want, got[i], "position %d of %d bits", i, depth)
				i++
			}
		}
		require.Equal(t, s.state, c.sponge.state, "no challenge more than is needed")
	}
}

// A climb with pruned siblings reaches the root that a whole tree has, for any set of positions.
func TestClimbReachesTheRootOfTheWholeTree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 7))
	const depth, width = 6, 5
	var levels [][]digest
	leaves := make([][]uint64, 1<<depth)
	level := make([]digest, len(leaves))
	for i := range leaves {
		leaves[i] = make([]uint64, maxRowWords)
		for w := maxRowWords - width; w < maxRowWords; w++ {
			leaves[i][w] = r.Uint64()
		}
		level[i] = hashWords(leaves[i])
	}
	for levels = append(levels, level); len(level) > 1; levels = append(levels, level) {
		next := make([]digest, len(level)/2)
		for i := range next {
			next[i] = hashWords(slices.Concat(level[2*i][:], level[2*i+1][:]))
		}
		level = next
	}
	for range 50 {
		drawn := make([]uint32, 1+r.IntN(40))
		for i := range drawn {
			drawn[i] = r.Uint32N(1 << depth)
		}
		var c check
		rows := openedRows{width: width}
		at := slices.Clone(c.opening.tree.start(drawn))
		for _, p := range at {
			rows.rows = appendWords(appendWords(rows.rows, width), leaves[p][maxRowWords-width:]...)
			rows.count++
		}
		for l := range depth {
			for _, p := range at {
				if !slices.Contains(at, p^1) {
					rows.siblings = appendWords(rows.siblings, levels[l][p^1][:]...)
				}
			}
			for i := range at {
				at[i] >>= 1
			}
			at = slices.Compact(at)
		}
		require.NoError(t, c.climb(&rows, true, depth, levels[depth][0]))
		c.opening.tree.start(drawn)
		require.Equal(t, MerkleRoot, c.climb(&rows, true, depth, digest{}))
	}
}
