package chain

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// A sender fills every slot with four blocks on random parents for as long as the
// side branches are kept twice over: memory stays, the tree keeps its answers.
func TestBlockSpamDoesNotGrowTheTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	recent := []wire.Root{w.genesis}
	for slot := wire.Slot(1); slot <= 3*branchWindow; slot++ {
		var made []wire.Root
		for i := range byte(maxPerSlot + 3) {
			w.time.slot(slot)
			b, root := w.block(slot, recent[rnd.IntN(len(recent))], i)
			if r := w.tree.InsertBlock(b, root, 1000); i < maxPerSlot {
				require.Equal(t, wire.ReasonNone, r)
				made = append(made, root)
			} else {
				require.Equal(t, wire.ReasonTooManyForSlot, r)
			}
			w.insert(slot, fakeRoot(uint64(slot)), 200+i, parkedReason(i))
		}
		recent = append(recent, made...)
		recent = recent[max(0, len(recent)-8):]
		if slot%500 == 0 {
			compare(t, w, rnd)
		}
	}
	require.LessOrEqual(t, len(w.tree.blocks), maxPerSlot*(branchWindow+pruneStep+2)+3*branchWindow)
	require.LessOrEqual(t, len(w.tree.slots), 3*branchWindow+1)
	require.Len(t, w.tree.parked.blocks, maxParked)
	compare(t, w, rnd)
	kept := 0
	for _, n := range w.tree.blocks {
		if n.included != nil {
			kept++
		}
		require.True(t, n.slot >= branchFloor(w.clock.Slot())-pruneStep || w.tree.head.ancestorAt(n.slot) == n)
	}
	require.Zero(t, kept)
}

func parkedReason(i byte) wire.Reason {
	if i < maxParkedPerSlot {
		return wire.ReasonUnknownParent
	}

	return wire.ReasonTooManyForSlot
}

// Days without finality: the head's chain stays up to its window, genesis stays
// an ancestor of everything, and what was cut off is unknown, not refused.
func TestLongChainIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.OnImport = nil })
	const last = chainWindow + 2*cutStep
	insert := func(slot wire.Slot, parent wire.Root, number uint64) wire.Root {
		b := &wire.SignedBlock{Block: wire.Block{Slot: slot, ProposerIndex: wire.ValidatorIndex(slot % 4), ParentRoot: parent}}
		root := fakeRoot(number) // the tree takes the caller's word; hashing would be most of this test
		if r := w.tree.InsertBlock(b, root, 0); r != wire.ReasonNone {
			t.Fatalf("slot %d: %s", slot, r)
		}

		return root
	}
	roots := make([]wire.Root, 1, last+1)
	roots[0] = w.genesis
	for slot := wire.Slot(1); slot <= last; slot++ {
		w.time.slot(slot)
		parent := roots[slot-1]
		if slot%3 == 0 {
			insert(slot, parent, uint64(2*slot)) // a side block
		}
		roots = append(roots, insert(slot, parent, uint64(2*slot+1)))
	}
	require.LessOrEqual(t, len(w.tree.blocks), chainWindow+cutStep+branchWindow+pruneStep)
	head := w.tree.Head()
	require.EqualValues(t, last, head.Slot)
	require.True(t, w.tree.IsAncestor(w.genesis, head.Root))
	require.True(t, w.tree.IsAncestor(roots[last-chainWindow+pruneStep], head.Root))
	_, _, known := w.tree.Known(roots[100])
	require.False(t, known)

	vote := wire.AttestationData{Slot: head.Slot, Head: head, Target: head, Source: checkpoint(roots[100], 100)}
	r, missing := w.tree.CheckData(&vote)
	require.Equal(t, wire.ReasonUnknownHead, r)
	require.Equal(t, roots[100], missing)
	vote.Source = checkpoint(w.genesis, 0)
	r, _ = w.tree.CheckData(&vote)
	require.Equal(t, wire.ReasonNone, r)
	require.Equal(t, wire.Slot(last-5000), w.tree.AttestationData(last-5000).Head.Slot)
}

// A block on a side branch whose root was pruned stays answerable.
func TestBranchBelowTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	side, main := w.genesis, w.genesis
	for slot := wire.Slot(1); slot <= 2*branchWindow; slot++ {
		if slot%2 == 1 { // the head is on the main branch whenever the tree is pruned
			side = w.insert(slot, side, 2, wire.ReasonNone)
		} else {
			main = w.insert(slot, main, 1, wire.ReasonNone)
		}
	}
	require.Equal(t, main, w.tree.Head().Root)
	require.True(t, w.tree.IsAncestor(w.genesis, side))
	first, ok := w.tree.BlockBySlot(2)
	require.True(t, ok)
	require.Equal(t, relationUnknown, w.tree.blocks[first].relation(w.tree.blocks[side]), "the branch lost its lower part")
	w.insert(2*branchWindow+1, side, 2, wire.ReasonNone)
}

func BenchmarkCheckData(b *testing.B) {
	t := &testing.T{}
	w := newWorld(t, func(c *Config) { c.OnImport = nil })
	parent := w.genesis
	for slot := wire.Slot(1); slot <= 20_000; slot++ {
		parent = w.insert(slot, parent, 1, wire.ReasonNone)
	}
	head := w.tree.Head()
	target, _ := w.tree.BlockBySlot(13)
	vote := wire.AttestationData{Slot: head.Slot, Head: head, Target: checkpoint(target, 13), Source: checkpoint(w.genesis, 0)}
	b.ReportAllocs()
	for b.Loop() {
		if r, _ := w.tree.CheckData(&vote); r != wire.ReasonNone {
			b.Fatal(r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/check")
}
