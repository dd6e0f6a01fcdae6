package signer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestSearchesBeginWhenTheBlockIsKnown(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		block     time.Duration // after the slot's start; above an interval and a half: none in time
		published time.Duration // the last of four votes, after the timer; two are searched for at once, 100 ms each
		searches  int
		same      float64
	}{
		{"long before the votes", 0, 0, 4, 1},
		{"while half is done", testInterval - 100*ms, 100 * ms, 4, 1},
		{"while the first are under way", testInterval - 50*ms, 150 * ms, 4, 1},
		{"with the timer", testInterval, 200 * ms, 4, 1},
		{"never: begun at the timer for what is known, used after half an interval", testSlot, testInterval / 2, 4, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 4, func(r *rig, _ *Config, _ []validator) {
					for _, k := range r.keys {
						k.signs = 100 * ms
					}
				})
				r.chain.blockAt = func(slot wire.Slot) time.Time { return r.clock.SlotStart(slot).Add(c.block) }
				r.runUntil(t, testSlot)
				require.Len(t, r.net.published, 4)
				timer := r.clock.IntervalStart(0, 1)
				require.InDelta(t, c.published, r.net.published[3].at.Sub(timer), float64(time.Microsecond))
				searches := 0
				for _, k := range r.keys {
					searches += len(k.searched)
				}
				require.Equal(t, c.searches, searches, "nothing is searched for twice")
				require.LessOrEqual(t, testutil.ToFloat64(r.metrics.early.WithLabelValues(earlySame)), c.same)
				require.Zero(t, testutil.ToFloat64(r.metrics.early.WithLabelValues(earlyOther)))
			})
		})
	}
}

// The block comes after the timer: what was begun for the head before it is left, and the votes are for the block.
func TestSearchesForOtherDataAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, func(r *rig, _ *Config, _ []validator) {
			for _, k := range r.keys {
				k.signs = 300 * time.Millisecond
			}
		})
		block := r.clock.IntervalStart(0, 1).Add(100 * time.Millisecond)
		r.chain.blockAt = func(wire.Slot) time.Time { return block }
		r.chain.data = func(slot wire.Slot) wire.AttestationData {
			data := wire.AttestationData{Slot: slot}
			if !time.Now().Before(block) {
				data.Head.Slot = slot + 7
			}
			return data
		}
		r.runUntil(t, testSlot)
		require.Len(t, r.net.published, 4)
		for _, p := range r.net.published {
			require.EqualValues(t, 7, p.vote.Data.Head.Slot)
		}
		require.Equal(t, block.Add(600*time.Millisecond), r.net.published[3].at, "two at once, none waits for a search that is left")
		require.InDelta(t, 1, testutil.ToFloat64(r.metrics.early.WithLabelValues(earlyOther)), 0)
		require.Len(t, r.marks.batches, 1)
		require.Len(t, r.marks.batches[0], 4, "one position a key, for the data of the duty")
	})
}

func TestADutyThatHasAskedGetsNoEarlySearches(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	require.Nil(t, r.takeEarly(3, wire.DataRoot{}))
	cancelled := false
	late := &early{slot: 3, cancel: context.CancelFunc(func() { cancelled = true })}
	require.False(t, r.offerEarly(late))
	require.True(t, r.offerEarly(&early{slot: 4, root: wire.DataRoot{1}, cancel: late.cancel}))
	require.Nil(t, r.takeEarly(4, wire.DataRoot{2}))
	require.True(t, cancelled)
}
