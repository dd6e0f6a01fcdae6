package leanproof

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

func TestScratchFitsEveryLadder(t *testing.T) {
	t.Parallel()
	for r := range key.LogRates {
		for l := range key.LogSizes {
			logSize := key.MinLogSize + l
			ladder := key.LadderFor(1+r, logSize)
			require.NotNil(t, ladder)
			require.LessOrEqual(t, logSize, maxCommittedLog)
			require.NotEmpty(t, ladder.Levels)
			require.LessOrEqual(t, len(ladder.Levels), key.MaxLevels)
			require.LessOrEqual(t, 1<<ladder.LogTail, maxTail)
			left := logSize
			for i, level := range ladder.Levels {
				left -= int(level.Folds)
				require.Equal(t, left, int(level.LogMessage), "a level's message is what its folds leave")
				require.Equal(t, logSize-rowLog+1+r-i, int(level.LogDomain), "and its tree halves from level to level")
				require.LessOrEqual(t, int(level.LogDomain), maxTreeDepth)
				require.LessOrEqual(t, int(level.Queries), maxQueries)
				require.LessOrEqual(t, left, len(key.Vanishing))
				require.Equal(t, uint8(17), level.GrindBits)
				require.Equal(t, min(i, 1), int(level.Samples), "every level but the first has a sample")
				if i == 0 {
					require.Equal(t, rowLog, int(level.Folds))
				} else {
					require.LessOrEqual(t, 3<<level.Folds, maxRowWords)
				}
			}
			require.Equal(t, int(ladder.LogTail), left, "the last level's message is the one in clear")
		}
	}
	require.Nil(t, key.LadderFor(0, key.MinLogSize))
	require.Nil(t, key.LadderFor(key.LogRates+1, key.MinLogSize))
	require.Nil(t, key.LadderFor(1, key.MinLogSize-1))
	require.Nil(t, key.LadderFor(1, maxCommittedLog+1))
}

func TestLayoutIsWhatTheStagesAssume(t *testing.T) {
	t.Parallel()
	require.Equal(t, len(key.Claims), key.BusClaims+key.ColumnValues+3)
	for side := range key.Sides {
		require.LessOrEqual(t, len(key.Blocks[side]), maxBlocks)
		for i := range key.Blocks[side] {
			b := &key.Blocks[side][i]
			require.LessOrEqual(t, len(b.Coords), 1<<alphaBits)
			if side == key.Count {
				require.Len(t, b.Coords, 1)
				require.NotEqual(t, uint8(key.Framework), b.Table)
			}
			for j := range b.Coords {
				isFramework := b.Table == key.Framework
				require.Equal(t, isFramework, b.Coords[j].Kind != key.CoordTerms)
				if isFramework {
					require.Zero(t, b.Coords[j].Padding)
				}
			}
		}
	}
	require.Len(t, key.Blocks[key.Pull], len(key.Blocks[key.Push]))
	for i := range key.Blocks[key.Push] {
		require.Equal(t, key.Blocks[key.Push][i].Height, key.Blocks[key.Pull][i].Height)
	}
	// There is a count for each lookup, fewer than pushes: the count's tree is not deeper than the others.
	for table := range key.Tables {
		blocks := func(side int) (n int) {
			for i := range key.Blocks[side] {
				if int(key.Blocks[side][i].Table) == table {
					n++
				}
			}
			return n
		}
		require.Less(t, blocks(key.Count), blocks(key.Push))
	}
	for i, c := range key.Claims {
		isOutput := i >= key.KeccakOutputs && i < key.KeccakOutputs+laneCount
		require.Equal(t, isOutput, c.Point == key.PointKeccak)
		if c.Point == key.PointSlot {
			require.Equal(t, uint8(key.KeccakColumn), c.Column)
		}
	}
	require.Equal(t, 1<<keccakPackLog, key.KeccakPack)
}

// The genuine proofs use three of the 28 codes. A forgery made of random words goes through the stages of any of them.
func TestStagesRunWithEveryLadder(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	for r := range key.LogRates {
		for l := range key.LogSizes {
			if !thorough() && l != 2*r {
				continue
			}
			t.Run(fmt.Sprintf("rate 2^-%d, size 2^%d", 1+r, key.MinLogSize+l), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(r), uint64(l)))
				f := &forger{t: t, v: v, d: randomDraft(t, random, 1+r, key.MinLogSize+l)}
				f.forge()
				require.Equal(t, MerkleRoot, verdictOf(t, v, f.d.encode()))
				require.NoError(t, verdictOf(t, v, f.d.encode(), MerkleRoot))
			})
		}
	}
}

func TestAnnouncedSizesAreBounded(t *testing.T) {
	t.Parallel()
	base := readProof(t, "two")
	for _, tc := range []struct {
		name string
		word int
		to   uint64
		want Refusal
	}{
		{"memory below the least", 0, 15, AnnouncedSize},
		{"memory of nothing", 0, 0, AnnouncedSize},
		{"memory above the most", 0, 33, AnnouncedSize},
		{"memory of absurd size", 0, 1 << 63, AnnouncedSize},
		{"memory that no code holds", 0, 32, CommittedSize},
		{"memory too large for the largest code", 0, 27, CommittedSize},
		{"memory of another code", 0, 20, StreamLength},
		{"no rows", 1, 0, AnnouncedSize},
		{"too many rows", 6, 1<<28 + 1, AnnouncedSize},
		{"absurdly many rows", 3, 1 << 63, AnnouncedSize},
		{"as many rows as there may be, of a table that no code holds", 2, 1 << 28, CommittedSize},
		{"rows of another height", 3, 1<<14 + 1, StreamLength},
		{"inverse rate of zero", 7, 0, InverseRate},
		{"inverse rate above the most", 7, 5, InverseRate},
		{"inverse rate of absurd size", 7, 1 << 40, InverseRate},
		{"another rate, with the same lengths", 7, 1, ProductLayer},
		{"another rate, with fewer positions", 7, 4, MerkleShape},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDraft(t, base)
			d.words[tc.word] = gf.FromBase(tc.to)
			require.Equal(t, tc.want, verdictOf(t, newVerifier(t), d.encode()))
		})
	}
	t.Run("fewer words than are announced", func(t *testing.T) {
		t.Parallel()
		d := newDraft(t, base)
		d.words = d.words[:announcedWords-1]
		require.Equal(t, StreamLength, verdictOf(t, newVerifier(t), d.encode()))
	})
	t.Run("committed size below the least", func(t *testing.T) {
		t.Parallel()
		d := newDraft(t, base)
		d.words[0] = gf.FromBase(16)
		for i := range key.Tables {
			d.words[1+i] = gf.One
		}
		require.Equal(t, CommittedSize, verdictOf(t, newVerifier(t), d.encode()))
	})
}

func TestOpenedRowsHaveTheFormOfTheLadder(t *testing.T) {
	t.Parallel()
	base := readProof(t, "two")
	for name, edit := range map[string]func(*draft){
		"a level less":              func(d *draft) { d.levels = d.levels[:3] },
		"a level more":              func(d *draft) { d.levels = append(d.levels, d.levels[3]) },
		"more levels than any code": func(d *draft) { d.levels = append(d.levels, d.levels...) },
		"no rows":                   func(d *draft) { d.levels[2].rows = nil },
		"more rows than positions":  func(d *draft) { d.levels[1].rows = append(d.levels[1].rows, d.levels[1].rows[0]) },
		"more rows than any code": func(d *draft) {
			for range 3 {
				d.levels[0].rows = append(d.levels[0].rows, d.levels[0].rows...)
			}
		},
		"a row with a word less": func(d *draft) { d.levels[0].rows[5] = d.levels[0].rows[5][1:] },
		"a row of another width": func(d *draft) { d.levels[3].rows[0] = append(d.levels[3].rows[0], 0) },
		"all rows with a word more": func(d *draft) {
			for i := range d.levels[0].rows {
				d.levels[0].rows[i] = append(d.levels[0].rows[i], 0)
			}
		},
		"a row wider than any": func(d *draft) { d.levels[0].rows[0] = make([]uint64, maxRowWords+1) },
		"more siblings than paths have nodes": func(d *draft) {
			d.levels[3].siblings = make([]byte, digestSize*(len(d.levels[3].rows)*15+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDraft(t, base)
			edit(d)
			require.Equal(t, MerkleShape, verdictOf(t, newVerifier(t), d.encode()))
		})
	}
}
