package signer

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
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

func TestTheDutyStillAheadIsPreparedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start    time.Duration // after genesis
		first    wire.Slot     // whose votes are made first
		proposal []uint32      // what is prepared for a block before any duty
	}{
		"before genesis": {start: -time.Hour, first: 0},
		"in interval 0":  {start: 4100 * time.Millisecond, first: 1, proposal: []uint32{1}},
		"in interval 1":  {start: 4900 * time.Millisecond, first: 1, proposal: nil},
		"in interval 2":  {start: 1700 * time.Millisecond, first: 1, proposal: []uint32{1}},
		"in interval 4":  {start: 3900 * time.Millisecond, first: 1, proposal: []uint32{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proposal := newKey(100)
				r := newRig(t, 1, func(r *rig, cfg *Config, v []validator) {
					r.clock.genesis = time.Now().Add(-c.start)
					cfg.Validators = 1 // validator 0 proposes always
					v[0].proposal = proposal
				})
				r.Warm(t.Context())
				require.Equal(t, []uint32{uint32(c.first)}, r.keys[0].prepare)
				require.Equal(t, c.proposal, proposal.prepare)
				r.runUntil(t, 3*testSlot)
				got, want := []wire.Slot{}, []wire.Slot{}
				for _, s := range r.net.published {
					got = append(got, s.vote.Data.Slot)
				}
				for slot := c.first; slot < 3; slot++ {
					want = append(want, slot)
				}
				require.Equal(t, want, got)
			})
		})
	}
}

// A subtree takes two seconds here, longer than what is left before the first votes: these wait for it, and for no more.
func TestVotesWaitForTheSubtreeThatIsBeingBuilt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 8, func(r *rig, cfg *Config, _ []validator) {
			cfg.Parallel = 8
			for _, k := range r.keys[:2] { // two goroutines prepare eight keys
				k.builds = 2 * time.Second
			}
		})
		r.runUntil(t, 2*testSlot)
		require.Len(t, r.net.published, 16)
		for i, s := range r.net.published[:8] {
			if i < 6 {
				require.GreaterOrEqual(t, s.vote.ValidatorIndex, wire.ValidatorIndex(2), "the quick keys do not wait for the slow ones")
				require.Equal(t, testInterval, s.at.Sub(r.clock.genesis))
			} else {
				require.Equal(t, 2*time.Second, s.at.Sub(r.clock.genesis), "built from the start on, not anew at the duty")
			}
		}
		for _, k := range r.keys {
			require.Equal(t, 1, k.built)
		}
	})
}

func TestWarmEndsWithTheDuty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ start, end time.Duration }{
		"before genesis": {-time.Second, testInterval},
		"in interval 0":  {0, testInterval},
		"in interval 1":  {testInterval + 1, 2 * testInterval},
		"in interval 2":  {2 * testInterval, testSlot + testInterval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 3, func(r *rig, _ *Config, _ []validator) {
					r.clock.genesis = time.Now().Add(-c.start)
					for _, k := range r.keys {
						k.builds = time.Hour
					}
				})
				r.Warm(t.Context())
				require.Equal(t, c.end, time.Since(r.clock.genesis))
				require.Zero(t, testutil.ToFloat64(r.metrics.warmFailed))
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
		r := newRig(t, 1, func(_ *rig, cfg *Config, _ []validator) {
			cfg.Pace = func(ctx context.Context, _ time.Time) error { return pass(ctx, 9*time.Second) }
		})
		r.runUntil(t, 5*testSlot)
		require.Len(t, r.net.published, 5)
		for i, s := range r.net.published {
			require.Equal(t, r.clock.IntervalStart(wire.Slot(i), 1), s.at)
		}
		require.Positive(t, testutil.ToFloat64(r.metrics.warmSkipped))
	})
}

func TestWarmingStandsBackUntilItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type look struct{ at, until time.Time }
		var mu sync.Mutex
		var looks []look // guarded by mu
		r := newRig(t, 3, func(_ *rig, cfg *Config, _ []validator) {
			cfg.Parallel = 1
			cfg.Pace = func(ctx context.Context, until time.Time) error {
				mu.Lock()
				defer mu.Unlock()
				looks = append(looks, look{time.Now(), until})

				return ctx.Err()
			}
		})
		r.runUntil(t, testSlot)
		require.Contains(t, looks, look{r.clock.genesis, r.clock.IntervalStart(0, 1)}, "searches before the duty")
		looks = slices.DeleteFunc(looks, func(l look) bool {
			return l.at.Equal(r.clock.genesis) && !l.until.IsZero() || l.at.Equal(r.clock.SlotStart(1))
		})
		require.Len(t, looks, 3+6, "at the start, and one of each key for the next slot and one ahead")
		for _, l := range looks[:3] {
			require.Zero(t, l.until, "the first duty is near")
		}
		for _, l := range looks[3:] {
			require.Equal(t, r.clock.IntervalStart(0, 1), l.at)
			require.Equal(t, r.clock.SlotStart(1), l.until)
		}
	})
}

// The preparation for the next slot begins after the last signature, also where the network holds up the votes.
func TestWarmingWaitsForNoNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var warmed time.Time // guarded by mu
		r := newRig(t, 2, func(r *rig, _ *Config, _ []validator) {
			for _, k := range r.keys {
				k.signs = 10 * time.Millisecond
			}
			r.net.check = func(*wire.SignedAttestation) { _ = pass(t.Context(), time.Second) }
			r.chain.blockAt = func(slot wire.Slot) time.Time { return r.clock.IntervalStart(slot, 1) } // nothing is searched before
		})
		r.cfg.Pace = func(ctx context.Context, until time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			if until.Equal(r.clock.SlotStart(1)) && warmed.IsZero() {
				warmed = time.Now()
			}

			return ctx.Err()
		}
		r.runUntil(t, testSlot)
		require.Equal(t, testInterval+10*time.Millisecond, warmed.Sub(r.clock.genesis))
		require.Len(t, r.net.published, 2)
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
		var log bytes.Buffer
		r := newRig(t, 3, func(r *rig, cfg *Config, _ []validator) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r.keys[1].panics = true
			r.keys[2].end = 1
		})
		r.runUntil(t, 3*testSlot)
		require.Len(t, r.net.published, 3+2)
		require.Positive(t, testutil.ToFloat64(r.metrics.warmFailed))
		require.InDelta(t, 1, testutil.ToFloat64(r.metrics.refused.WithLabelValues("attestation", "key_range")), 0)
		require.Equal(t, 3, strings.Count(log.String(), "votes refused"), "one line a slot")
		require.Equal(t, 1, strings.Count(log.String(), "key can not be prepared"), "one line a minute")
	})
}

func TestAKeyPastItsRangeIsReportedOnceASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, 40, func(r *rig, cfg *Config, _ []validator) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			for _, k := range r.keys[:30] {
				k.end = 1
			}
		})
		r.runUntil(t, 5*testSlot)
		require.Len(t, r.net.published, 2*40+3*10)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 3, log.String())
		for _, line := range lines {
			require.Contains(t, line, "votes=10")
			require.Contains(t, line, "refused=30")
			require.Contains(t, line, "key_range")
		}
		require.InDelta(t, 3*30, testutil.ToFloat64(r.metrics.refused.WithLabelValues("attestation", "key_range")), 0)
		require.Zero(t, testutil.ToFloat64(r.metrics.warmFailed))
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

// Across the slot in which all keys go over to their next subtree no vote is late, and no key builds one twice: the one that
// is prepared ahead does not drive out the one in use.
func TestNoVoteWaitsAtAChangeOfSubtrees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const first, last = 440, 520 // around 512
		r := newRig(t, 40, func(r *rig, cfg *Config, v []validator) {
			r.clock.genesis = time.Now().Add(-first * testSlot)
			cfg.Validators = len(v)
			for i, k := range r.keys {
				k.builds = 100 * time.Millisecond
				proposal := newKey(100 + i)
				proposal.builds = k.builds
				v[i].proposal = proposal
			}
		})
		r.Warm(t.Context()) // not to the end: forty builds in two goroutines take two seconds
		r.runUntil(t, (last+1)*testSlot)
		require.Equal(t, 40*(last-first+1), len(r.net.published)) //nolint:testifylint // a failure would print them all
		for _, s := range r.net.published {
			if s.vote.Data.Slot > first {
				require.Equal(t, r.clock.IntervalStart(s.vote.Data.Slot, 1), s.at)
			}
		}
		for _, k := range r.keys {
			require.Equal(t, 2, k.built)
		}
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

// TestTrialsAreBegunForTheNextDuty: before the first duty and after each, for all keys, within the memory for them.
func TestTrialsAreBegunForTheNextDuty(t *testing.T) {
	t.Parallel()
	for keys, trials := range map[int]int{2: mostBegun, 32: mostBegun, 64: mostBegun / 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, keys, nil)
			r.runUntil(t, 2*testSlot)
			for _, k := range r.keys {
				require.Equal(t, map[uint32]int{0: trials, 1: trials, 2: trials}, k.begun)
			}
		})
	}
}
