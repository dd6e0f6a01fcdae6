package key_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

func TestLayoutIsWhole(t *testing.T) {
	t.Parallel()
	require.Len(t, key.Columns, 99)
	require.Len(t, key.Claims, 165)
	columns := 0
	for _, n := range key.TableColumns {
		columns += int(n)
	}
	require.Equal(t, key.ColumnValues, columns)
	require.Len(t, key.Blocks[key.Push], 54)
	require.Len(t, key.Blocks[key.Pull], 54)
	require.Len(t, key.Blocks[key.Count], 45)
	fresh := 0
	for side := range key.Blocks {
		for _, b := range key.Blocks[side] {
			require.LessOrEqual(t, len(b.Coords), key.Slots, "a coordinate for each weight at most")
			for _, c := range b.Coords {
				if c.Fresh {
					require.Equal(t, uint8(fresh), c.Claim, "fresh claims come in order")
					fresh++
				}
				if b.Table == key.Framework {
					require.NotEqual(t, key.CoordTerms, c.Kind)
					continue
				}
				require.Equal(t, key.CoordTerms, c.Kind)
				for _, term := range c.Terms {
					require.Less(t, term.A, key.TableColumns[b.Table])
					require.Less(t, term.B, key.TableColumns[b.Table])
				}
			}
		}
	}
	require.Equal(t, key.BusClaims, fresh)
	for i, c := range key.Claims {
		require.Less(t, int(c.Column), len(key.Columns), "claim %d", i)
		require.Less(t, int(c.Slot), 1<<key.KeccakSlotLog, "claim %d", i)
	}
}

func TestPushAndPullBlocksHaveTheSameHeights(t *testing.T) {
	t.Parallel()
	for i, b := range key.Blocks[key.Push] {
		require.Equal(t, b.Height, key.Blocks[key.Pull][i].Height)
		require.Equal(t, b.Table, key.Blocks[key.Pull][i].Table)
	}
}

// The vanishing polynomials of the novel basis of x^0, x^1, ...: V_0 is the identity, V_(i+1)(z) = V_i(z) (V_i(z) + V_i(x^i)).
func TestVanishingValuesAreThoseOfTheNovelBasis(t *testing.T) {
	t.Parallel()
	require.Len(t, key.VanishingInverses, len(key.Vanishing))
	for i, v := range key.Vanishing {
		z := gf.PowGenerator(uint64(i))
		for _, below := range key.Vanishing[:i] {
			z = gf.MulBase(z, z^below)
		}
		require.Equal(t, z, v)
		require.Equal(t, uint64(1), gf.MulBase(v, key.VanishingInverses[i]))
	}
}

// The lists of the Keccak reduction are those of FIPS 202.
func TestKeccakListsAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	x, y := 1, 0
	for i := range 24 { // sections 3.2.2 and 3.2.3
		require.Equal(t, uint8((i+1)*(i+2)/2%64), key.KeccakRho[x+5*y])
		x, y = y, (2*x+3*y)%5
	}
	require.Zero(t, key.KeccakRho[0])
	for x := range 5 {
		for y := range 5 {
			require.Equal(t, uint8(y+5*((2*x+3*y)%5)), key.KeccakPi[x+5*y], "lane (%d, %d)", x, y)
		}
	}
	lfsr := uint8(1)
	for round := range 24 { // section 3.2.5
		var bits []uint8
		for i := range uint8(7) {
			if lfsr&1 == 1 {
				bits = append(bits, i)
			}
			carry := lfsr >> 7
			lfsr = lfsr<<1 ^ carry*0x71
		}
		got := key.KeccakIota[key.KeccakDepth-1-round%key.KeccakDepth][round/key.KeccakDepth]
		require.ElementsMatch(t, bits, got, "round %d", round)
	}
}

func TestLaddersCoverRatesAndSizes(t *testing.T) {
	t.Parallel()
	for rate := 1; rate <= key.LogRates; rate++ {
		for size := key.MinLogSize; size < key.MinLogSize+key.LogSizes; size++ {
			l := key.LadderFor(rate, size)
			require.NotNil(t, l)
			require.LessOrEqual(t, len(l.Levels), key.MaxLevels)
			left, domain := size, size-int(l.Levels[0].Folds)+rate
			for i, level := range l.Levels {
				left -= int(level.Folds)
				require.Equal(t, left, int(level.LogMessage))
				require.Equal(t, domain-i, int(level.LogDomain), "a level halves the domain")
				require.Equal(t, i > 0, level.Samples == 1, "out of domain samples come with a new commitment")
				require.Equal(t, uint8(17), level.GrindBits)
			}
			require.Equal(t, left, int(l.LogTail))
		}
	}
	for _, none := range [][2]int{{0, 22}, {5, 22}, {1, 21}, {1, 29}, {-1, -1}} {
		require.Nil(t, key.LadderFor(none[0], none[1]))
	}
}
