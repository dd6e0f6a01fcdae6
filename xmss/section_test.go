package xmss

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// cheapTree is a treeHasher whose hashes cost little and name their place.
type cheapTree struct{ made *atomic.Int64 } // leaves so far

func cheapHash(kind byte, level int, index uint32, rest ...node) (n node) {
	b := binary.LittleEndian.AppendUint32([]byte{kind, byte(level)}, index)
	for _, r := range rest {
		b = append(b, r[:]...)
	}
	sum := sha256.Sum256(b)
	copy(n[:], sum[:])
	return n
}

func (c cheapTree) leaves(first uint32, out []node) {
	c.made.Add(int64(len(out)))
	for i := range out {
		out[i] = cheapHash(0, 0, first+uint32(i))
	}
}

func (c cheapTree) parents(level int, first uint32, children, out []node) {
	for i := range out {
		out[i] = cheapHash(1, level, first+uint32(i), children[2*i], children[2*i+1])
	}
}

func (c cheapTree) filler(level int, index uint32) node { return cheapHash(2, level, index) }

// plainNode is the definition: a node is real when a leaf in range lies below it, and else filler.
func plainNode(level int, index, lo, hi uint32) node {
	switch {
	case index < lo>>level || index > hi>>level:
		return cheapHash(2, level, index)
	case level == 0:
		return cheapHash(0, 0, index)
	}
	return cheapHash(1, level, index, plainNode(level-1, 2*index, lo, hi), plainNode(level-1, 2*index+1, lo, hi))
}

func TestSectionsAgreeWithTheDefinition(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(17, 18))
	ranges := [][2]uint32{{0, 0}, {0, 511}, {511, 512}, {512, 1023}, {1<<32 - 1, 1<<32 - 1}, {1<<32 - 513, 1<<32 - 1}, {1<<31 - 2, 1<<31 + 2}}
	for range 12 {
		lo := rng.Uint32()
		ranges = append(ranges, [2]uint32{lo, lo + min(rng.Uint32N(2500), 1<<32-1-lo)})
	}
	for _, r := range ranges {
		lo, hi := r[0], r[1]
		tree := cheapTree{new(atomic.Int64)}
		row, err := newRowBuilder(GenerateOptions{Workers: 3}, 0).row(context.Background(), tree, lo, hi)
		require.NoError(t, err)
		require.Equal(t, int64(hi)-int64(lo)+1, tree.made.Load(), "each leaf once")
		upper := newSection(tree, subtreeHeight, 32, lo>>subtreeHeight, row)
		require.Equal(t, plainNode(32, 0, lo, hi), upper.top(), "root of %d..%d", lo, hi)
		for _, epoch := range []uint32{lo, hi, lo + (hi-lo)/2} {
			below, err := buildSubtree(context.Background(), tree, epoch>>subtreeHeight, lo, hi)
			require.NoError(t, err)
			require.Equal(t, upper.levels[0][epoch>>subtreeHeight-lo>>subtreeHeight], below.top())
			path := upper.appendPath(below.appendPath(nil, epoch), epoch)
			for l := range 32 {
				want := plainNode(l, epoch>>l^1, lo, hi)
				require.Equal(t, want[:], path[16*l:16*l+16], "%d..%d, epoch %d, level %d", lo, hi, epoch, l)
			}
		}
	}
}

func TestRowsReportEachSubtreeOnce(t *testing.T) {
	t.Parallel()
	var seen []int
	b := newRowBuilder(GenerateOptions{Workers: 4, Progress: func(done, total int) {
		require.Equal(t, 20, total)
		seen = append(seen, done) // calls do not overlap: the race detector would see it
	}}, 20)
	_, err := b.row(context.Background(), cheapTree{new(atomic.Int64)}, 0, 20*512-1)
	require.NoError(t, err)
	require.Len(t, seen, 20)
	for i, done := range seen {
		require.Equal(t, i+1, done)
	}
}

func TestRowsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	tree := cheapTree{new(atomic.Int64)}
	b := newRowBuilder(GenerateOptions{Workers: 2, Progress: func(int, int) { cancel(stop) }}, 0)
	_, err := b.row(ctx, tree, 0, 1<<24)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, tree.made.Load(), int64(10*512), "it stops soon")
}
