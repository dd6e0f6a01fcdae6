package chain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestGenesisIsEverythingAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	genesis := checkpoint(w.genesis, 0)
	require.Equal(t, genesis, w.tree.Head())
	require.Equal(t, genesis, w.tree.Justified())
	require.Equal(t, genesis, w.tree.Finalized())
	require.Equal(t, genesis, w.tree.Source())
	require.Equal(t, wire.Status{Finalized: genesis, Head: genesis}, w.tree.Status())
	require.Equal(t, wire.AttestationData{Slot: 9, Head: genesis, Target: genesis, Source: genesis}, w.tree.AttestationData(9))
	require.Equal(t, SyncIdle, w.tree.SyncStatus())
	root, ok := w.tree.BlockBySlot(0)
	require.True(t, ok)
	require.Equal(t, w.genesis, root)
}

func TestNewTreeRefusesAnUnusableConfig(t *testing.T) {
	t.Parallel()
	profile, err := wire.LookupProfile("local", "")
	require.NoError(t, err)
	clock := NewClock(testGenesis, testSlot, testNow)
	for _, cfg := range []Config{
		{Validators: 4},
		{Profile: profile},
		{Profile: profile, Validators: wire.DefaultRegistryLimit + 1},
	} {
		_, err := NewTree(cfg, clock)
		require.Error(t, err)
	}
	wide, err := profile.WithRegistryLimit(wire.DefaultRegistryLimit + 1)
	require.NoError(t, err)
	_, err = NewTree(Config{Profile: wide, Validators: wire.DefaultRegistryLimit + 1}, clock)
	require.NoError(t, err, "the limit is the profile's")
}

func TestBlockAdmission(t *testing.T) {
	t.Parallel()
	votes := func(slots ...wire.Slot) (body wire.BlockBody) {
		p, err := wire.NewParticipants([]wire.ValidatorIndex{0, 3})
		require.NoError(t, err)
		for _, s := range slots {
			body.Attestations = append(body.Attestations, wire.AggregatedAttestation{Participants: p, Data: wire.AttestationData{Slot: s}})
		}

		return body
	}
	stranger, err := wire.NewParticipants([]wire.ValidatorIndex{0, 4})
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		slot   wire.Slot
		at     time.Duration // after the start of the slot; slot 10 when the slot has none
		change func(w *world, b *wire.Block)
		want   wire.Reason
	}{
		{name: "a child of genesis", slot: 10, want: wire.ReasonNone},
		{name: "exactly one interval ahead", slot: 10, at: -800 * time.Millisecond, want: wire.ReasonNone},
		{name: "a nanosecond earlier", slot: 10, at: -800*time.Millisecond - 1, want: wire.ReasonEarly},
		{name: "slot 2^63", slot: 1 << 63, want: wire.ReasonEarly},
		{name: "slot 2^64-4", slot: 1<<64 - 4, want: wire.ReasonEarly},
		{name: "the slot of genesis", slot: 0, at: 40 * time.Second, want: wire.ReasonStale},
		{name: "the oldest slot of the window", slot: 10, at: branchWindow * testSlot, want: wire.ReasonNone},
		{name: "a slot older", slot: 10, at: (branchWindow + 1) * testSlot, want: wire.ReasonStale},
		{name: "another validator's turn", slot: 10, change: func(_ *world, b *wire.Block) { b.ProposerIndex++ }, want: wire.ReasonBadProposer},
		{name: "a proposer outside the registry", slot: 10, change: func(_ *world, b *wire.Block) { b.ProposerIndex += 4 }, want: wire.ReasonBadProposer},
		{name: "an unknown parent", slot: 10, change: func(_ *world, b *wire.Block) { b.ParentRoot = fakeRoot(1) }, want: wire.ReasonUnknownParent},
		{name: "a parent of the same slot", slot: 10, change: func(w *world, b *wire.Block) {
			b.ParentRoot = w.insert(10, w.genesis, 7, wire.ReasonNone)
		}, want: wire.ReasonMalformed},
		{name: "different votes", slot: 10, change: func(_ *world, b *wire.Block) { b.Body = votes(1, 2, 3) }, want: wire.ReasonNone},
		{name: "the same attestation data twice", slot: 10, change: func(_ *world, b *wire.Block) { b.Body = votes(1, 2, 1) }, want: wire.ReasonMalformed},
		{name: "a voter outside the registry", slot: 10, change: func(_ *world, b *wire.Block) {
			b.Body = votes(1)
			b.Body.Attestations[0].Participants = stranger
		}, want: wire.ReasonUnknownValidator},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.time.slot(10)
			if c.slot < 1<<30 {
				w.time.slot(c.slot)
				w.time.add(c.at)
			}
			b, _ := w.block(c.slot, w.genesis, 1)
			if c.change != nil {
				c.change(w, &b.Block)
			}
			root := b.Block.HashTreeRoot(w.tree.cfg.Profile)
			admitted := c.want
			if admitted == wire.ReasonUnknownParent {
				admitted = wire.ReasonNone // its signature is worth a check: it will be parked
			}
			require.Equal(t, admitted, w.tree.AdmitBlock(b, root))
			require.Equal(t, c.want, w.tree.InsertBlock(b, root, 0))
			_, _, known := w.tree.Known(root)
			require.Equal(t, c.want == wire.ReasonNone, known)
		})
	}
}

func TestBlockIsTakenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.insert(1, w.genesis, 1, wire.ReasonNone)
	w.insert(1, w.genesis, 1, wire.ReasonDuplicate)
	w.insert(2, fakeRoot(1), 1, wire.ReasonUnknownParent)
	w.insert(2, fakeRoot(1), 1, wire.ReasonDuplicate)
	require.Len(t, w.imported, 1)
}

func TestAtMostFourBlocksOfASlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range byte(maxPerSlot) {
		w.insert(5, w.genesis, i, wire.ReasonNone)
	}
	w.insert(5, w.genesis, 100, wire.ReasonTooManyForSlot)
	b, root := w.block(5, w.genesis, 101)
	require.Equal(t, wire.ReasonTooManyForSlot, w.tree.AdmitBlock(b, root))
}

func TestHeadIsTheHighestThenTheLargerRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.insert(1, w.genesis, 1, wire.ReasonNone)
	b := w.insert(1, w.genesis, 2, wire.ReasonNone)
	larger := a
	if string(b[:]) > string(a[:]) {
		larger = b
	}
	require.Equal(t, checkpoint(larger, 1), w.tree.Head())
	c := w.insert(3, a, 1, wire.ReasonNone)
	require.Equal(t, checkpoint(c, 3), w.tree.Head())
	w.insert(2, b, 1, wire.ReasonNone)
	require.Equal(t, checkpoint(c, 3), w.tree.Head(), "a lower block comes late")

	require.Equal(t, checkpoint(c, 3), w.tree.AttestationData(3).Head)
	require.Equal(t, checkpoint(c, 3), w.tree.AttestationData(7).Head)
	require.Equal(t, wire.Slot(2), w.tree.AttestationData(2).Head.Slot)
	require.Equal(t, checkpoint(larger, 1), w.tree.AttestationData(1).Head)
	require.Equal(t, checkpoint(w.genesis, 0), w.tree.AttestationData(0).Head)

	root, ok := w.tree.BlockBySlot(1)
	require.True(t, ok)
	require.Equal(t, a, root, "the block on the head's chain")
	_, ok = w.tree.BlockBySlot(2)
	require.False(t, ok)
	slot, parent, ok := w.tree.Known(c)
	require.True(t, ok)
	require.Equal(t, wire.Slot(3), slot)
	require.Equal(t, a, parent)
}

func TestParkedBlocksFollowTheirParentInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.time.slot(5)
	b1, r1 := w.block(1, w.genesis, 1)
	_, r2 := w.block(2, r1, 1)
	r3 := w.insert(3, r2, 1, wire.ReasonUnknownParent)
	r5 := w.insert(5, r2, 1, wire.ReasonUnknownParent)
	require.Equal(t, r2, w.insert(2, r1, 1, wire.ReasonUnknownParent))
	require.Empty(t, w.imported)
	require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(b1, r1, 0))
	require.Equal(t, []wire.Root{r1, r2, r3, r5}, w.imported)
	require.Empty(t, w.tree.parked.blocks)
	require.Equal(t, checkpoint(r5, 5), w.tree.Head())
	require.True(t, w.tree.IsAncestor(w.genesis, r5))
}

func TestParkIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.time.slot(100)
	for s := wire.Slot(80); s < 88; s++ {
		w.insert(s, fakeRoot(1), 1, wire.ReasonUnknownParent)
		w.insert(s, fakeRoot(2), 2, wire.ReasonUnknownParent)
		w.insert(s, fakeRoot(3), 3, wire.ReasonTooManyForSlot)
	}
	require.Len(t, w.tree.parked.blocks, maxParked)

	b, root := w.block(79, fakeRoot(4), 1)
	require.Equal(t, wire.ReasonUnknownParent, w.tree.AdmitBlock(b, root), "older than all: not worth a signature check")
	w.insert(79, fakeRoot(4), 1, wire.ReasonUnknownParent)
	require.NotContains(t, w.tree.parked.blocks, root)

	newer := w.insert(90, fakeRoot(5), 1, wire.ReasonUnknownParent)
	require.Contains(t, w.tree.parked.blocks, newer)
	require.Len(t, w.tree.parked.blocks, maxParked, "one of slot 80 went")

	w.time.slot(90 + parkedSlots + 1)
	w.insert(122, fakeRoot(6), 1, wire.ReasonUnknownParent)
	require.Len(t, w.tree.parked.blocks, 1, "the rest waited too long")
}

func TestParkIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.time.slot(20)
	const size = 7 << 20
	for s := wire.Slot(10); s < 15; s++ {
		b, root := w.block(s, fakeRoot(1), 1)
		require.Equal(t, wire.ReasonUnknownParent, w.tree.InsertBlock(b, root, size))
	}
	require.Len(t, w.tree.parked.blocks, 2)
	require.LessOrEqual(t, w.tree.parked.bytes, maxParkedBytes)
	for _, b := range w.tree.parked.blocks {
		require.GreaterOrEqual(t, b.slot, wire.Slot(13), "the oldest slots went first")
	}
	b, root := w.block(16, fakeRoot(1), 1)
	require.Equal(t, wire.ReasonUnknownParent, w.tree.InsertBlock(b, root, maxParkedBytes+1))
	require.LessOrEqual(t, w.tree.parked.bytes, maxParkedBytes)
}

func TestIncludedIsTheUnionOfTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := wire.AttestationData{Slot: 1, Head: checkpoint(w.genesis, 0), Target: checkpoint(w.genesis, 0), Source: checkpoint(w.genesis, 0)}
	parent := w.genesis
	for s := wire.Slot(2); s < 4; s++ {
		w.time.slot(s)
		b, _ := w.block(s, parent, 1)
		p, err := wire.NewParticipants([]wire.ValidatorIndex{wire.ValidatorIndex(s)})
		require.NoError(t, err)
		b.Block.Body.Attestations = []wire.AggregatedAttestation{{Participants: p, Data: data}}
		parent = b.Block.HashTreeRoot(w.tree.cfg.Profile)
		require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(b, parent, 0))
	}
	require.Equal(t, []wire.ValidatorIndex{2, 3}, w.tree.Included(parent, data.HashTreeRoot()).Indices())
	require.True(t, w.tree.Included(w.genesis, data.HashTreeRoot()).IsEmpty(), "another chain")
	require.True(t, w.tree.Included(parent, wire.DataRoot{1}).IsEmpty(), "other data")
	require.True(t, w.tree.Included(fakeRoot(1), data.HashTreeRoot()).IsEmpty(), "an unknown chain")
}

func TestWaitBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.tree.WaitBlock(t.Context(), 0), "genesis is there")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, w.tree.WaitBlock(ctx, 2), context.DeadlineExceeded)

		done := make(chan error, 1) // one answer
		go func() { done <- w.tree.WaitBlock(t.Context(), 2) }()
		synctest.Wait()
		r1 := w.insert(1, w.genesis, 1, wire.ReasonNone)
		synctest.Wait()
		require.Empty(t, done, "a block of another slot")
		w.insert(2, r1, 1, wire.ReasonNone)
		require.NoError(t, <-done)
	})
}

func TestSyncStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.insert(1, w.genesis, 1, wire.ReasonNone)
	require.Equal(t, SyncSynced, w.tree.SyncStatus())
	w.time.slot(1 + syncLag)
	require.Equal(t, SyncSynced, w.tree.SyncStatus())
	w.time.slot(2 + syncLag)
	require.Equal(t, SyncSyncing, w.tree.SyncStatus())
}
