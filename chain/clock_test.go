package chain

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestClockAgreesWithLeanSpec(t *testing.T) {
	t.Parallel()
	type slotClock struct {
		Operation struct {
			Kind                    string
			GenesisTime             int64
			CurrentTimeMilliseconds float64
			UnixSeconds             float64
			Slot                    wire.Slot
		}
		Config struct{ SecondsPerSlot, IntervalsPerSlot, MillisecondsPerInterval int64 }
		Output struct {
			Interval, TotalIntervals uint64
			Slot                     wire.Slot
		}
	}
	n := cases(t, leanspec(t, "slot_clock"), func(t *testing.T, c slotClock) {
		require.EqualValues(t, wire.IntervalsPerSlot, c.Config.IntervalsPerSlot)
		op := c.Operation
		now := time.UnixMilli(int64(op.CurrentTimeMilliseconds))
		clock := NewClock(time.Unix(op.GenesisTime, 0), time.Duration(c.Config.SecondsPerSlot)*time.Second, func() time.Time { return now })
		require.Equal(t, time.Duration(c.Config.MillisecondsPerInterval)*time.Millisecond, clock.IntervalDuration())
		slot, interval := clock.At()
		switch op.Kind {
		case "current_slot":
			require.Equal(t, c.Output.Slot, slot)
			require.Equal(t, c.Output.Slot, clock.Slot())
		case "current_interval":
			require.EqualValues(t, c.Output.Interval, interval)
		case "total_intervals":
			require.Equal(t, c.Output.TotalIntervals, clock.intervals(now))
		case "from_unix_time":
			require.Equal(t, c.Output.Interval, clock.intervals(time.Unix(int64(op.UnixSeconds), 0)))
		case "from_slot":
			require.Equal(t, c.Output.Interval, clock.intervals(clock.SlotStart(op.Slot)))
		default:
			t.Fatalf("operation %q has no test", op.Kind)
		}
	})
	require.Positive(t, n)
}

func TestClockAtTheEdges(t *testing.T) {
	t.Parallel()
	m := &manualTime{}
	clock := NewClock(testGenesis, testSlot, m.now)
	for _, c := range []struct {
		name     string
		offset   time.Duration
		slot     wire.Slot
		interval wire.Interval
		before   bool
	}{
		{"long before genesis is slot 0", -1000 * time.Hour, 0, 0, true},
		{"a nanosecond before genesis is slot 0", -1, 0, 0, true},
		{"genesis starts slot 0", 0, 0, 0, false},
		{"the last nanosecond of interval 0", 800*time.Millisecond - 1, 0, 0, false},
		{"interval 1 starts", 800 * time.Millisecond, 0, 1, false},
		{"the last nanosecond of slot 0", testSlot - 1, 0, 4, false},
		{"slot 1 starts", testSlot, 1, 0, false},
		{"slot 2^30 is as good as any", testSlot << 30, 1 << 30, 0, false},
	} {
		m.set(testGenesis.Add(c.offset))
		slot, interval := clock.At()
		require.Equal(t, c.slot, slot, c.name)
		require.Equal(t, c.interval, interval, c.name)
		require.Equal(t, c.before, clock.BeforeGenesis(), c.name)
	}
}

func TestSlotStartsNeverOverflow(t *testing.T) {
	t.Parallel()
	clock := NewClock(testGenesis, testSlot, testNow)
	last := clock.SlotStart(math.MaxUint64)
	require.True(t, last.After(testGenesis.Add(200*365*24*time.Hour)))
	for _, s := range []wire.Slot{1 << 40, 1 << 62, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		require.False(t, clock.SlotStart(s).Before(clock.SlotStart(s-1)), "slot %d", s)
		require.False(t, clock.SlotStart(s).After(last), "slot %d", s)
		require.True(t, clock.IntervalStart(s, 4).After(testGenesis), "slot %d", s)
	}
	require.Equal(t, testGenesis.Add(7*testSlot+3*testSlot/5), clock.IntervalStart(7, 3))
}

func testNow() time.Time { return testGenesis }

func TestClockRefusesAnUnusableSlot(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, -1, 4, 4*time.Second + 1} {
		require.Panics(t, func() { NewClock(testGenesis, d, nil) }, "%v", d)
	}
}

type seen struct {
	slot     wire.Slot
	interval wire.Interval
	late     time.Duration
}

// ticks collects what Ticks gives until n intervals were seen; work is done in
// each call.
func ticks(clock *Clock, n int, work func(int)) (got []seen) {
	ctx, cancel := context.WithCancel(context.Background())
	clock.Ticks(ctx, func(s wire.Slot, i wire.Interval) {
		got = append(got, seen{s, i, clock.Now().Sub(clock.IntervalStart(s, i))})
		if len(got) == n {
			cancel()
		}
		work(len(got))
	})

	return got
}

func TestTicksGiveEachIntervalOnceFromTheNextOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			ahead time.Duration // genesis from now
			first seen
		}{
			{"before genesis the first is genesis", 10 * time.Second, seen{0, 0, 0}},
			{"at genesis it is given", 0, seen{0, 0, 0}},
			{"in the middle of an interval the next one comes", -1 * time.Second, seen{0, 2, 0}},
			{"a boundary that is right now is given", -4800 * time.Millisecond, seen{1, 1, 0}},
		} {
			clock := NewClock(time.Now().Add(c.ahead), testSlot, nil)
			got := ticks(clock, 12, func(int) {})
			require.Len(t, got, 12, c.name)
			ordinal := int(c.first.slot)*5 + int(c.first.interval)
			for i, g := range got {
				slot, interval := split(uint64(ordinal + i))
				require.Equal(t, seen{slot, interval, 0}, g, c.name)
			}
		}
	})
}

func TestSlowReceiverLosesIntervalsAndNeverGetsThemTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock(time.Now(), testSlot, nil)
		got := ticks(clock, 4, func(n int) {
			if n == 2 { // in interval 1: stays away until the middle of interval 0 of slot 1
				require.NoError(t, clock.WaitUntil(context.Background(), clock.SlotStart(1).Add(400*time.Millisecond)))
			}
		})
		require.Equal(t, []seen{{0, 0, 0}, {0, 1, 0}, {1, 0, 400 * time.Millisecond}, {1, 1, 0}}, got)
	})
}

func TestWaitUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock(time.Now(), testSlot, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, clock.WaitUntil(ctx, clock.SlotStart(2)))
		require.Equal(t, wire.Slot(2), clock.Slot())
		require.NoError(t, clock.WaitUntil(ctx, clock.Genesis()), "a time that has passed")
		require.ErrorIs(t, clock.WaitUntil(ctx, clock.SlotStart(1000)), context.DeadlineExceeded)
		require.ErrorIs(t, clock.WaitUntil(ctx, clock.Genesis()), context.DeadlineExceeded, "an ended context wins")
	})
}

func TestWaitUntilFollowsASlowClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := NewClock(start, testSlot, func() time.Time { return start.Add(time.Since(start) / 2) })
		require.NoError(t, clock.WaitUntil(t.Context(), clock.SlotStart(1)))
		require.GreaterOrEqual(t, time.Since(start), 2*testSlot)
	})
}
