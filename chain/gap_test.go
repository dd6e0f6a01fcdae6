package chain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// A node that starts late, or lost a block, follows as soon as two blocks in a
// row are there.
func TestChainIsFollowedOverAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	missing := fakeRoot(99)
	b100 := w.insert(100, missing, 1, wire.ReasonUnknownParent)
	require.Empty(t, w.imported)
	b101 := w.insert(101, b100, 1, wire.ReasonNone)
	require.Equal(t, []wire.Root{b100, b101}, w.imported)
	require.Equal(t, checkpoint(b101, 101), w.tree.Head())
	require.Equal(t, SyncSynced, w.tree.SyncStatus())
	require.True(t, w.tree.IsAncestor(w.genesis, b101))

	vote := wire.AttestationData{Slot: 101, Head: checkpoint(b101, 101), Target: checkpoint(b100, 100), Source: checkpoint(w.genesis, 0)}
	r, _ := w.tree.CheckData(&vote)
	require.Equal(t, wire.ReasonNone, r)
	vote.Target = checkpoint(missing, 99)
	r, root := w.tree.CheckData(&vote)
	require.Equal(t, wire.ReasonUnknownHead, r)
	require.Equal(t, missing, root)
}

// What a gap hides is not held against a vote, and is known once the blocks come.
func TestGapIsNotAFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b1 := w.insert(1, w.genesis, 1, wire.ReasonNone)
	lost, lostRoot := w.block(2, b1, 1)
	b3 := w.insert(3, lostRoot, 1, wire.ReasonUnknownParent)
	b4 := w.insert(4, b3, 1, wire.ReasonNone)
	b5 := w.insert(5, b4, 1, wire.ReasonNone)
	fork := w.insert(5, b1, 2, wire.ReasonNone)

	vote := wire.AttestationData{Slot: 5, Head: checkpoint(b5, 5), Target: checkpoint(b1, 1), Source: checkpoint(w.genesis, 0)}
	r, missing := w.tree.CheckData(&vote)
	require.Equal(t, wire.ReasonUnknownHead, r, "b1 may or may not be an ancestor of b5")
	require.Equal(t, lostRoot, missing)
	require.False(t, w.tree.IsAncestor(b1, b5))
	wrong := wire.AttestationData{Slot: 5, Head: checkpoint(fork, 5), Target: checkpoint(b3, 3), Source: checkpoint(w.genesis, 0)}
	r, _ = w.tree.CheckData(&wrong)
	require.Equal(t, wire.ReasonBadCheckpoints, r, "the fork has no gap: b3 is not in it")

	require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(lost, lostRoot, 0))
	r, _ = w.tree.CheckData(&vote)
	require.Equal(t, wire.ReasonNone, r)
	require.True(t, w.tree.IsAncestor(lostRoot, b5))
	require.True(t, w.tree.IsAncestor(b1, b5))
	require.False(t, w.tree.IsAncestor(b1, fakeRoot(1)))
}

func TestGapWaitsForGossipToCatchUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.time.slot(10)
	b1, r1 := w.block(1, w.genesis, 1)
	_, r2 := w.block(2, r1, 1)
	w.insert(3, r2, 1, wire.ReasonUnknownParent)
	w.insert(2, r1, 1, wire.ReasonUnknownParent) // two in a row, but at one moment
	require.Empty(t, w.imported)
	w.time.add(testSlot)
	require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(b1, r1, 0))
	require.Len(t, w.imported, 3)
	require.Nil(t, w.tree.head.gap, "no gap was needed")
}

func TestGapNeedsAChainAheadOfTheTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.insert(20, w.genesis, 1, wire.ReasonNone)
	a := w.insert(10, fakeRoot(1), 1, wire.ReasonUnknownParent)
	w.time.slot(22)
	b := w.insert(11, a, 1, wire.ReasonUnknownParent)
	require.Len(t, w.imported, 1, "an old branch is not joined")
	w.insert(21, b, 1, wire.ReasonNone)
	require.Len(t, w.imported, 4, "it overtook the tree")
}

// The block below the gap is not older than the block above: it is no parent.
func TestImpossibleParentDoesNotCloseAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.time.slot(6)
	parent, parentRoot := w.block(6, w.genesis, 1)
	a := w.insert(5, parentRoot, 1, wire.ReasonUnknownParent)
	b := w.insert(7, a, 1, wire.ReasonNone)
	require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(parent, parentRoot, 0))
	require.False(t, w.tree.IsAncestor(parentRoot, b))
	require.Equal(t, w.tree.genesis, w.tree.blocks[a].parent)
}

func TestParkedChildOfAnImpossibleParentIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.time.slot(6)
	parent, parentRoot := w.block(6, w.genesis, 1)
	child := w.insert(5, parentRoot, 1, wire.ReasonUnknownParent)
	require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(parent, parentRoot, 0))
	_, _, known := w.tree.Known(child)
	require.False(t, known)
	require.Empty(t, w.tree.parked.blocks)
}
