package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func dataRoot(b byte) (r wire.DataRoot) {
	r[0] = b

	return r
}

func TestVotesAreKnownByVerifiedFactsAlone(t *testing.T) {
	t.Parallel()
	d := newDedupe(8)
	a, b, c := dataRoot(1), dataRoot(2), dataRoot(3)
	require.Equal(t, wire.ReasonNone, d.checkAttestation(3, 10, a))
	require.Equal(t, wire.ReasonNone, d.checkAttestation(3, 10, a), "a look leaves no mark")
	require.Equal(t, wire.ReasonNone, d.markAttestation(3, 10, a))
	require.Equal(t, wire.ReasonDuplicate, d.checkAttestation(3, 10, a))
	require.Equal(t, wire.ReasonDuplicate, d.markAttestation(3, 10, a))
	require.Equal(t, wire.ReasonNone, d.checkAttestation(4, 10, a))
	require.Equal(t, wire.ReasonNone, d.checkAttestation(3, 11, a))

	require.Equal(t, wire.ReasonNone, d.checkAttestation(3, 10, b), "may be forged")
	require.Equal(t, wire.ReasonEquivocation, d.markAttestation(3, 10, b))
	require.Equal(t, wire.ReasonEquivocation, d.checkAttestation(3, 10, c), "proved once is enough")
	require.Equal(t, wire.ReasonDuplicate, d.checkAttestation(3, 10, a))

	d.forgetAttestation(3, 10)
	require.Equal(t, wire.ReasonNone, d.checkAttestation(3, 10, a))
	require.Equal(t, wire.ReasonNone, d.checkAttestation(8, 10, a), "outside the registry")
	require.Equal(t, wire.ReasonNone, d.markAttestation(1<<63, 10, a))
}

func TestTheRingForgetsOldSlotsOnly(t *testing.T) {
	t.Parallel()
	d := newDedupe(8)
	for slot := wire.Slot(10); slot < 14; slot++ {
		require.Equal(t, wire.ReasonNone, d.markAttestation(1, slot, dataRoot(1)))
	}
	for slot := wire.Slot(10); slot < 14; slot++ {
		require.Equal(t, wire.ReasonDuplicate, d.checkAttestation(1, slot, dataRoot(1)))
	}
	require.Equal(t, wire.ReasonNone, d.markAttestation(1, 14, dataRoot(1)))
	require.Equal(t, wire.ReasonNone, d.checkAttestation(1, 10, dataRoot(1)))
	require.Equal(t, wire.ReasonNone, d.markAttestation(2, 10, dataRoot(1)), "a late check does not disturb slot 14")
	require.Equal(t, wire.ReasonDuplicate, d.checkAttestation(1, 14, dataRoot(1)))
	require.Equal(t, wire.ReasonNone, d.checkAttestation(2, 14, dataRoot(1)))
}

func TestDataRootsBeyondTheBoundShareOneNumber(t *testing.T) {
	t.Parallel()
	d := newDedupe(200)
	for i := range byte(maxRoots) {
		require.Equal(t, wire.ReasonNone, d.markAttestation(wire.ValidatorIndex(i), 10, dataRoot(i)))
	}
	require.Equal(t, wire.ReasonNone, d.markAttestation(100, 10, dataRoot(200)))
	require.Equal(t, wire.ReasonDuplicate, d.checkAttestation(100, 10, dataRoot(200)))
	require.Equal(t, wire.ReasonEquivocation, d.markAttestation(100, 10, dataRoot(5)))
	require.Equal(t, wire.ReasonEquivocation, d.markAttestation(5, 10, dataRoot(200)))
	require.Equal(t, wire.ReasonNone, d.markAggregate(10, dataRoot(200), participants(t, 1)))
	require.Equal(t, wire.ReasonNone, d.checkAggregate(10, dataRoot(200), participants(t, 1)))
}

func TestOnlyOneVerifiedAggregateSubsumes(t *testing.T) {
	t.Parallel()
	d := newDedupe(64)
	root := dataRoot(1)
	check := func(indices ...int) wire.Reason { return d.checkAggregate(10, root, participants(t, indices...)) }
	mark := func(indices ...int) wire.Reason { return d.markAggregate(10, root, participants(t, indices...)) }
	require.Equal(t, 3, d.gain(10, root, participants(t, 1, 2, 3)))
	require.Equal(t, wire.ReasonNone, mark(1, 2, 3))
	require.Equal(t, wire.ReasonNone, mark(4, 5))
	require.Equal(t, wire.ReasonDuplicate, check(1, 2, 3))
	require.Equal(t, wire.ReasonSubsumed, check(1, 3))
	require.Equal(t, wire.ReasonNone, check(3, 4), "a union suppresses nothing")
	require.Zero(t, d.gain(10, root, participants(t, 3, 4)))
	require.Equal(t, 1, d.gain(10, root, participants(t, 3, 4, 9)))
	require.Equal(t, wire.ReasonNone, d.checkAggregate(11, root, participants(t, 1)))
	require.Equal(t, wire.ReasonNone, d.checkAggregate(10, dataRoot(2), participants(t, 1)))
	require.Equal(t, wire.ReasonNone, mark(1, 2, 3, 4, 5))
	require.Len(t, d.rootFacts(10, root).sets, 1, "what it covers is dropped")
	for v := 10; v < 10+2*maxSetsPerRoot; v++ {
		require.Equal(t, wire.ReasonNone, mark(v))
	}
	require.Len(t, d.rootFacts(10, root).sets, maxSetsPerRoot)
	require.Equal(t, wire.ReasonSubsumed, check(1, 5), "the small ones go first")
}
