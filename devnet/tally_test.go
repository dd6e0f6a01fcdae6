package devnet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCoverageCountsDistinctValidatorsBeforeInterval4(t *testing.T) {
	t.Parallel()
	tl := newTally(4, 5*time.Second, 2) // measured slots 2 and 3, interval 4 begins at 4000 ms
	for _, r := range []record{
		{Slot: 0, Indices: []int{0, 1, 2, 3}, AtMS: 100, CheckMS: 99}, // warm-up
		{Slot: 2, Indices: []int{0, 1}, AtMS: 3000, CheckMS: 10},
		{Slot: 2, Indices: []int{0, 1, 2}, AtMS: 3900, CheckMS: 20}, // 0 and 1 once
		{Slot: 2, Indices: []int{3}, AtMS: 4000, CheckMS: 30},       // in the slot, too late for the figure
		{Slot: 3, Indices: []int{0, 1, 2, 3, 7, -1}, AtMS: 4999, CheckMS: 40},
		{Slot: 4, Indices: []int{0}, AtMS: 1, CheckMS: 1}, // after the last measured slot
	} {
		tl.observe(r)
	}
	tl.publish(record{Slot: 1, AtMS: 1})
	tl.publish(record{Slot: 2, AtMS: 2500})
	tl.publish(record{Slot: 3, AtMS: 4500})
	s := tl.summary()
	require.Equal(t, 8, s.VotesExpected)
	require.Equal(t, 3, s.VotesCovered)
	require.InDelta(t, 3.0/8, s.Coverage, 1e-9)
	require.InDelta(t, 1.0, s.CoverageSlotEnd, 1e-9)
	require.Equal(t, 4, s.AggregatesVerified)
	require.Equal(t, 2, s.AggregatesPublished)
	require.InDelta(t, 20, s.CheckMSp50, 0)
	require.InDelta(t, 40, s.CheckMSp99, 0)
	require.InDelta(t, 2500, s.PublishMSp50, 0)
	require.InDelta(t, 4500, s.PublishMSp99, 0)
	require.InDelta(t, 3900, s.TwoThirdsMSp50, 0, "three of four in slot 2, and 4999 in slot 3")
	require.False(t, s.Passed())
}

func TestANetworkThatProvesNothingHasZeros(t *testing.T) {
	t.Parallel()
	s := newTally(3, time.Second, 5).summary()
	require.Equal(t, Summary{Slots: 5, Validators: 3, VotesExpected: 15, SlotDurationMS: 1000}, s)
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	values := func() []float64 { return []float64{5, 1, 4, 2, 3} }
	for q, want := range map[float64]float64{0: 1, 0.2: 1, 0.21: 2, 0.5: 3, 0.99: 5, 1: 5} {
		require.InDelta(t, want, percentile(values(), q), 0, "%v", q)
	}
	require.Zero(t, percentile(nil, 0.5))
}
