package signer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// runUntil runs the signer until a time after its genesis.
func (r *rig) runUntil(t *testing.T, end time.Duration) {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), r.clock.genesis.Add(end))
	defer cancel()
	require.NoError(t, r.Run(ctx))
}

func TestRunVotesAtInterval1OfEachSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, 2, func(r *rig, cfg *Config, _ []validator) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r.clock.genesis = time.Now().Add(10 * time.Second)
		})
		r.runUntil(t, 3*testSlot)
		require.Len(t, r.net.published, 6)
		for i, s := range r.net.published {
			slot := wire.Slot(i / 2)
			require.Equal(t, slot, s.vote.Data.Slot)
			require.Equal(t, r.clock.IntervalStart(slot, 1), s.at)
		}
		require.Equal(t, 3, strings.Count(log.String(), "votes signed"), "one line a slot")
		require.Contains(t, log.String(), "slot=2 votes=2 head_slot=2 block=true into_slot_ms=800")
	})
}

func TestRunWaitsHalfAnIntervalForTheBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		r.chain.blockAt = func(slot wire.Slot) time.Time {
			switch slot {
			case 0:
				return r.clock.IntervalStart(slot, 1).Add(100 * time.Millisecond)
			default:
				return r.clock.IntervalStart(slot, 2)
			}
		}
		r.runUntil(t, 2*testSlot)
		require.Len(t, r.net.published, 2)
		require.Equal(t, r.clock.IntervalStart(0, 1).Add(100*time.Millisecond), r.net.published[0].at)
		require.Equal(t, r.clock.IntervalStart(1, 1).Add(testInterval/2), r.net.published[1].at)
		require.InDelta(t, 1, testutil.ToFloat64(r.metrics.noBlock), 0)
	})
}

func TestRunWarmsTheDutyStillAheadBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start     time.Duration // after genesis
		builds    time.Duration
		votes     []wire.Slot // that are made in the first three slots
		proposals uint32      // the first slot whose proposer is prepared
	}{
		"before genesis":          {start: -time.Hour, votes: []wire.Slot{0, 1, 2}, proposals: 1},
		"in interval 0":           {start: 4100 * time.Millisecond, votes: []wire.Slot{1, 2}, proposals: 1},
		"in interval 1":           {start: 1500 * time.Millisecond, votes: []wire.Slot{0, 1, 2}, proposals: 1},
		"in interval 2":           {start: 1700 * time.Millisecond, votes: []wire.Slot{1, 2}, proposals: 1},
		"slow keys in interval 1": {start: 800 * time.Millisecond, builds: time.Second, votes: []wire.Slot{0, 1, 2}, proposals: 1},
		"too slow in interval 1":  {start: 800 * time.Millisecond, builds: 2 * time.Second, votes: []wire.Slot{1, 2}, proposals: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proposal := newKey(100)
				r := newRig(t, 1, func(r *rig, cfg *Config, v []validator) {
					r.clock.genesis = time.Now().Add(-c.start)
					cfg.Validators = 1 // validator 0 proposes always
					v[0].proposal = proposal
					r.keys[0].builds = c.builds
					proposal.builds = 0
				})
				if c.builds > 0 {
					r.keys[0].builds = c.builds
				}
				r.runUntil(t, 3*testSlot)
				got := make([]wire.Slot, 0, 3)
				for _, s := range r.net.published {
					got = append(got, s.vote.Data.Slot)
				}
				require.Equal(t, c.votes, got)
				first := r.keys[0].prepare[0]
				require.LessOrEqual(t, first, uint32(c.votes[0]))
				require.GreaterOrEqual(t, proposal.prepare[0], c.proposals)
			})
		})
	}
}

func TestRunWarmsTheNextSlotAfterTheVotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proposals := []*fakeKey{newKey(100), newKey(101)}
		r := newRig(t, 2, func(_ *rig, cfg *Config, v []validator) {
			cfg.Validators = 2
			v[0].proposal, v[1].proposal = proposals[0], proposals[1]
		})
		r.runUntil(t, 900*time.Millisecond)
		require.Contains(t, r.keys[0].prepare, uint32(1))
		require.Contains(t, r.keys[1].prepare, uint32(1))
		require.Contains(t, r.keys[1].prepare, uint32(2), "the second key builds a slot earlier")
		require.NotContains(t, proposals[0].prepare, uint32(1))
		require.Contains(t, proposals[1].prepare, uint32(1))
		require.Zero(t, testutil.ToFloat64(r.metrics.warmSkipped))
	})
}

func TestSlowWarmingIsNotDoubledAndDelaysNoVote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		ctx, cancel := context.WithDeadline(t.Context(), r.clock.genesis.Add(5*testSlot))
		defer cancel()
		done := make(chan error, 1) // one answer
		go func() { done <- r.Run(ctx) }()
		require.NoError(t, r.clock.WaitUntil(t.Context(), r.clock.genesis.Add(time.Millisecond)))
		r.keys[0].mu.Lock()
		r.keys[0].builds = 9 * time.Second
		r.keys[0].mu.Unlock()
		require.NoError(t, <-done)
		require.Len(t, r.net.published, 5)
		for i, s := range r.net.published {
			require.Equal(t, r.clock.IntervalStart(wire.Slot(i), 1), s.at)
		}
		require.Positive(t, testutil.ToFloat64(r.metrics.warmSkipped))
	})
}

func TestRunCountsSlotsThatItMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, 1, func(r *rig, cfg *Config, _ []validator) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r.keys[0].stuck = true // the duty ends with the slot
		})
		r.runUntil(t, 3*testSlot)
		require.Empty(t, r.net.published)
		require.Equal(t, 3, strings.Count(log.String(), "votes refused"))
		require.Contains(t, log.String(), "cancelled")
		require.Zero(t, testutil.ToFloat64(r.metrics.missed), "each slot had its duty")

		r = newRig(t, 1, func(r *rig, _ *Config, _ []validator) {
			r.net.check = func(*wire.SignedAttestation) { _ = pass(context.Background(), 3*testSlot) }
		})
		r.runUntil(t, 7*testSlot)
		require.InDelta(t, 4, testutil.ToFloat64(r.metrics.missed), 0, "slots 1, 2, 4 and 5 were over")
	})
}

func TestBrokenKeyIsPreparedWithoutHarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, func(r *rig, _ *Config, _ []validator) {
			r.keys[1].panics = true
			r.keys[2].end = 1
		})
		r.runUntil(t, 3*testSlot)
		require.Len(t, r.net.published, 3+2)
		require.Positive(t, testutil.ToFloat64(r.metrics.warmFailed))
		require.InDelta(t, 1, testutil.ToFloat64(r.metrics.refused.WithLabelValues("attestation", "key_range")), 0)
	})
}

func TestRunWithoutKeysWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.runUntil(t, testSlot)
		require.Equal(t, r.clock.SlotStart(1), time.Now())
	})
}

func TestKeysBuildTheirNextSubtreesAtDifferentSlots(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, nil)
	boundary := uint32(512)
	builds := map[wire.Slot]int{} // first slot in which a key's subtree of the boundary is asked for
	seen := map[secretKey]bool{}
	for slot := wire.Slot(400); slot < 520; slot++ {
		for _, task := range append(r.voteTasks(slot), r.aheadTasks(slot)...) {
			if uint32(task.slot) >= boundary && !seen[task.key] {
				seen[task.key] = true
				builds[slot]++
			}
			require.Less(t, uint32(task.slot), uint32(slot)+spreadSlots)
		}
	}
	require.Len(t, seen, 60)
	for slot, n := range builds {
		require.LessOrEqual(t, n, 1, "slot %d", slot)
	}
}
