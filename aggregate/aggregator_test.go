package aggregate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"aggnode/prover"
	"aggnode/wire"
)

// everySlot runs slots with f called at the start of interval 1 of each.
func (r *rig) everySlot(slots int, f func(s wire.Slot)) {
	for range slots {
		s := r.clock.Slot()
		r.until(s, 1, 0)
		f(s)
		r.until(s+1, 0, 0)
	}
}

func TestSoleAggregatorWithoutPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		r.net.peers = 0
		r.everySlot(20, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) }) // handed in locally
		r.stop()
		require.Equal(t, 20, len(r.net.published()))
		for _, a := range r.net.published() {
			require.Equal(t, 8, a.Participants.Count())
		}
		require.InDelta(t, 20, r.value("lean_pq_sig_aggregated_signatures_total"), 0)
		require.InDelta(t, 160, r.value("lean_pq_sig_attestations_in_aggregated_signatures_total"), 0)
		require.InDelta(t, 20, r.value("aggnode_aggregates_published_total", "0"), 0)
		require.InDelta(t, 20, r.value("aggnode_aggregate_published_delay_seconds"), 0)
		require.InDelta(t, 20, r.value("aggnode_aggregate_published_without_peers_total"), 0)
		require.InDelta(t, 20, r.value("lean_pq_sig_aggregated_signatures_building_time_seconds"), 0)
		require.InDelta(t, 20, r.value("lean_aggregated_proof_size_bytes"), 0)
		require.InDelta(t, 20, r.value("lean_aggregation_early_starts_total"), 0)
		require.InDelta(t, 20, r.value("aggnode_jobs_total", "published"), 0)
		require.InDelta(t, 20, r.value("aggnode_sessions_total", "proved"), 0)
		require.InDelta(t, 1, r.value("lean_is_aggregator"), 0)
		require.Len(t, r.slotLines(), 20)
	})
}

func TestSupersededProofsAreNoneOfOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		r.everySlot(3, func(s wire.Slot) {
			r.vote(dataOf(s, "a"), 0, 1, 2, 3, 4, 5)
			r.wait(100 * time.Millisecond)
			r.aggregate(dataOf(s, "a"), upTo(8)...)
		})
		r.stop()
		require.Zero(t, len(r.net.published()))
		require.InDelta(t, 3, r.value("aggnode_jobs_total", "superseded"), 0)
		require.InDelta(t, 0, r.value("aggnode_aggregate_published_delay_seconds"), 0)
		require.InDelta(t, 0, r.value("lean_pq_sig_aggregated_signatures_total"), 0)
		ok, _ := r.agg.Ready()
		require.True(t, ok, "the proofs were made")
	})
}

func TestProverThatNeverReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		r.prover.set(func(f *fakeProver) { f.next = []behaviour{hangsForever} }) // it does not even honour its deadline
		r.everySlot(5, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		lines := r.slotLines()
		require.Contains(t, lines[0], "reason=still_proving")
		for _, l := range lines[1:] {
			require.Contains(t, l, "reason=prover_busy")
		}
		ok, why := r.agg.Ready()
		require.False(t, ok)
		require.Contains(t, why, "made no proof: prover_busy")
		require.True(t, r.agg.Busy())
		close(r.prover.released)
		r.wait(time.Second)
		r.everySlot(1, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		ok, _ = r.agg.Ready()
		require.True(t, ok, "it came back")
		require.False(t, r.agg.Busy())
		r.stop()
	})
}

// TestWedgedProver is the one of the field: every job times out.
func TestWedgedProver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		for range 100 {
			r.prover.next = append(r.prover.next, hangs)
		}
		r.everySlot(2, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		r.wait(3 * time.Second) // the deadline of the second job may lie past its slot
		ok, why := r.agg.Ready()
		require.False(t, ok, "not ready after two slots")
		require.Contains(t, why, "timed_out")
		r.until(3, 0, 0)
		r.everySlot(9, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		r.prover.set(func(f *fakeProver) { f.next = nil })
		r.everySlot(6, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		ok, why = r.agg.Ready()
		require.True(t, ok, why)
		r.stop()
		require.InDelta(t, 0, r.value("aggnode_jobs_total", "crashed"), 0)
		last := r.net.published()
		require.GreaterOrEqual(t, last[len(last)-1].Data.Slot, wire.Slot(16), "the next slots are served")
	})
}

// TestCrashesLeaveThePoolAlone crashes at every job of a slot.
func TestCrashesLeaveThePoolAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8, committees: 2, subnets: []wire.SubnetID{0}})
		r.prover.next = []behaviour{crashes, crashes, refusesAll}
		r.until(0, 1, 0)
		r.aggregate(dataOf(0, "a"), 1, 3)
		r.vote(dataOf(0, "a"), 0, 2, 4, 6)
		before, err := r.pool.Snapshot(t.Context())
		require.NoError(t, err)
		r.until(0, 4, 700*time.Millisecond)
		after, err := r.pool.Snapshot(t.Context())
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(before.Groups, after.Groups))
		require.GreaterOrEqual(t, len(r.prover.jobs()), 2)
		r.stop()
	})
}

// TestSlowSteadySupply has more useful groups than can be proved: the prover must not idle, and not make many small
// proofs. What is left idle is the rest before the next slot's votes that is shorter than the smallest job.
func TestSlowSteadySupply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProver()
		p.fixed, p.raw, p.caps.HelloProve = 2*time.Second, 200*time.Millisecond, 2400*time.Millisecond
		r := newRig(t, rigConfig{validators: 64, slot: 10 * time.Second, prover: p})
		r.everySlot(3, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		began := time.Now()
		busy := p.busy
		calls := len(p.jobs())
		r.everySlot(200, func(s wire.Slot) {
			for g := range wire.ValidatorIndex(4) {
				r.vote(dataOf(s, fmt.Sprint(g)), upTo(64)[16*g:16*g+16]...)
			}
		})
		share := (p.busy - busy).Seconds() / time.Since(began).Seconds()
		require.GreaterOrEqual(t, share, 0.9)
		raw := 0
		jobs := p.jobs()[calls:]
		for _, j := range jobs {
			raw += len(j.Raw)
		}
		require.Greater(t, float64(raw)/float64(len(jobs)), 8.0, "signatures in a proof")
		r.stop()
	})
}

// TestStall runs 2,000 slots with live votes, no finality and a prover that is too slow for all of them, then a fast one.
func TestStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProver()
		p.fixed, p.caps.HelloProve = 1700*time.Millisecond, 1700*time.Millisecond
		r := newRig(t, rigConfig{validators: 8, prover: p})
		served := 0
		most := 0
		r.everySlot(2000, func(s wire.Slot) {
			// Votes of the slot, late ones of the slot before, and a split view.
			r.vote(dataOf(s, "a"), 0, 1, 2, 3, 4, 5)
			r.vote(dataOf(s, "b"), 6, 7)
			if s > 0 {
				r.vote(dataOf(s-1, "late"), 0, 1)
			}
			snapshot, err := r.pool.Snapshot(t.Context())
			require.NoError(t, err)
			most = max(most, len(snapshot.Groups))
			for _, a := range r.net.published()[served:] {
				require.LessOrEqual(t, s-a.Data.Slot, wire.Slot(2))
				served++
			}
		})
		require.LessOrEqual(t, most, 9, "groups")
		require.LessOrEqual(t, len(r.agg.bars.plans)+len(r.agg.bars.votes), 3)
		require.GreaterOrEqual(t, served, 1999, "aggregates keep coming")
		slots := make(map[wire.Slot]int)
		for _, a := range r.net.published() {
			slots[a.Data.Slot] = max(slots[a.Data.Slot], a.Participants.Count())
		}
		for s := wire.Slot(3); s < 1999; s++ {
			require.GreaterOrEqual(t, slots[s], 6, "slot %d", s)
		}
		p.set(func(f *fakeProver) { f.fixed = 300 * time.Millisecond })
		r.everySlot(5, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		lines := r.slotLines()
		require.Contains(t, lines[len(lines)-1], "proved=8")
		r.stop()
	})
}

func TestPhasesAddUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		r.budget.delay = 150 * time.Millisecond
		r.net.stall = 70 * time.Millisecond
		r.net.noAnswers = 1
		r.until(0, 1, 0)
		r.vote(dataOf(0, "a"), upTo(8)...)
		r.until(1, 0, 0)
		r.stop()
		sums := make(map[string]float64)
		families, err := r.reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetHistogram() == nil {
					continue
				}
				name := f.GetName()
				if len(m.GetLabel()) == 1 {
					name += " " + m.GetLabel()[0].GetValue()
				}
				sums[name] = m.GetHistogram().GetSampleSum()
			}
		}
		require.InDelta(t, 0.64, sums["lean_pq_sig_aggregated_signatures_building_time_seconds"], 0.001)
		require.InDelta(t, 0.14, sums["aggnode_job_phase_seconds check"], 0.001)
		total := 0.0
		for _, p := range phaseCodes[phaseSnapshot:] {
			total += sums["aggnode_job_phase_seconds "+p]
		}
		require.InEpsilon(t, 1.0, total, 0.01)
		require.InEpsilon(t, sums["lean_committee_signatures_aggregation_time_seconds"], total, 0.05)
	})
}

// TestChaos throws everything at an aggregator that can go wrong, and counts.
func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range 6 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), 11))
				p := newFakeProver()
				p.caps.ChildrenMayOverlap = rng.IntN(2) == 0
				p.fixed = time.Duration(200+rng.IntN(1500)) * time.Millisecond
				r := newRig(t, rigConfig{validators: 16, committees: 2, subnets: []wire.SubnetID{0}, prover: p})
				began := 0
				p.onCall = func(prover.Job) { began++ }
				r.everySlot(150, func(s wire.Slot) {
					p.set(func(f *fakeProver) {
						f.isReady = rng.IntN(12) > 0
						f.next = nil
						for range rng.IntN(3) {
							f.next = append(f.next, behaviour(rng.IntN(int(refusesAll)+1)))
							if f.next[len(f.next)-1] == hangsForever {
								f.next[len(f.next)-1] = hangs
							}
						}
					})
					r.net.set(func(n *fakeNetwork) {
						n.failures, n.noAnswers = rng.IntN(3), rng.IntN(3)
						n.stall = time.Duration(rng.IntN(2)*rng.IntN(6000)) * time.Millisecond
					})
					r.budget.mu.Lock()
					r.budget.delay = time.Duration(rng.IntN(4)/3*rng.IntN(2000)) * time.Millisecond
					r.budget.mu.Unlock()
					if rng.IntN(20) == 0 {
						r.agg.SetEnabled(!r.agg.Enabled())
					}
					for range 8 {
						r.wait(time.Duration(rng.IntN(400)) * time.Millisecond)
						d := dataOf(r.clock.Slot(), string(rune('a'+rng.IntN(5)/4)))
						r.vote(d, wire.ValidatorIndex(rng.IntN(16)), wire.ValidatorIndex(2*rng.IntN(8)), wire.ValidatorIndex(2*rng.IntN(8)))
						if rng.IntN(3) == 0 {
							v := wire.ValidatorIndex(rng.IntN(12))
							r.aggregate(d, v, v+1, v+3)
						}
					}
				})
				r.stop()
				ended := 0.0
				for _, o := range JobOutcomes() {
					ended += r.value("aggnode_jobs_total", o.String())
				}
				require.GreaterOrEqual(t, ended, float64(began), "every job ended")
				require.InDelta(t, r.value("aggnode_jobs_total", "published"), float64(len(r.net.published())), 0)
				for _, a := range r.net.published() {
					want := proofOf(claimOf(r.registry, rootOf(a.Data), a.Data.Slot, a.Participants))
					require.True(t, bytes.Equal(want, a.Proof), "a wrong proof was published")
				}
				sessions := 0.0
				for _, s := range SessionReasons() {
					sessions += r.value("aggnode_sessions_total", s.String())
				}
				require.InDelta(t, float64(r.clock.Slot()), sessions, 1, "one reason a slot")
				require.Zero(t, r.agg.outbox.len())
			})
		})
	}
}

func TestRole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8, configure: func(c *Config) { c.Enabled = false }})
		ok, why := r.agg.Ready()
		require.True(t, ok)
		require.Equal(t, "not_aggregator", why)
		r.everySlot(3, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		require.InDelta(t, 3, r.value("lean_aggregator_skipped_total", "not_aggregator"), 0)
		require.InDelta(t, 0, r.value("lean_is_aggregator"), 0)
		require.Len(t, r.slotLines(), 1, "said once")
		require.Zero(t, len(r.prover.jobs()))
		require.False(t, r.agg.SetEnabled(true))
		require.True(t, r.agg.SetEnabled(true))
		r.everySlot(1, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		jobs := r.prover.jobs()
		require.Equal(t, 2, len(jobs))
		require.EqualValues(t, 2, jobs[0].Epoch, "what was left over of the slot before")
		require.EqualValues(t, 3, jobs[1].Epoch)
		require.InDelta(t, 1, r.value("lean_is_aggregator"), 0)
		require.InDelta(t, 0, r.value("lean_aggregator_skipped_total", "other"), 0, "seeded")
		r.stop()
	})
}

func TestNothingBeforeGenesis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8, genesisIn: time.Hour})
		r.wait(59 * time.Minute)
		require.Zero(t, len(r.slotLines()))
		r.wait(59500 * time.Millisecond)
		r.vote(dataOf(0, "a"), upTo(8)...) // by a clock that is fast
		require.Zero(t, len(r.prover.jobs()))
		r.until(1, 0, 0)
		require.Equal(t, 1, len(r.slotLines()))
		require.Contains(t, r.slotLines()[0], "slot=0 votes=8 expected=8 proved=8")
		r.stop()
		require.Error(t, r.agg.Run(t.Context()), "Run is called once")
		require.Error(t, r.pool.Run(t.Context()))
	})
}

func TestJobsOfOneDataRootShareATrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var recorders []*tracetest.SpanRecorder
		for range 2 { // two aggregators that know nothing of each other
			rec := tracetest.NewSpanRecorder()
			recorders = append(recorders, rec)
			tracer := trace.NewTracerProvider(trace.WithSpanProcessor(rec)).Tracer("test")
			r := newRig(t, rigConfig{validators: 8, configure: func(c *Config) { c.Tracer = tracer }})
			r.until(0, 1, 0)
			r.vote(dataOf(0, "a"), upTo(8)...)
			r.until(1, 0, 0)
			r.stop()
		}
		var ids []string
		for _, rec := range recorders {
			var names []string
			for _, s := range rec.Ended() {
				names = append(names, s.Name())
				ids = append(ids, s.SpanContext().TraceID().String())
			}
			require.ElementsMatch(t, []string{"snapshot", "plan", "wait", "prove", "check", "publish", "job"}, names)
		}
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
	})
}

func TestAggregatorConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := NewAggregator(Config{}, nil, nil, nil, nil, nil, nil)
	require.EqualError(t, err, "aggregator config: no profile")
	_, err = NewAggregator(Config{Profile: testProfile(t), MinInputs: -1}, nil, nil, nil, nil, nil, nil)
	require.Error(t, err)
	a, err := NewAggregator(Config{Profile: testProfile(t), MaxChildren: -1}, nil, nil, nil, nil, nil, nil)
	require.NoError(t, err)
	l := limitsOf(&a.cfg, prover.Capabilities{MaxChildren: 16, MinInputs: 1, MaxRaw: 434, MaxSigners: 434})
	require.Equal(t, limits{maxRaw: 434, maxSigners: 434, maxChildren: 0, minInputs: 2}, l)
}

func TestMetricNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		r.everySlot(1, func(s wire.Slot) { r.vote(dataOf(s, "a"), upTo(8)...) })
		r.stop()
		problems, err := testutil.GatherAndLint(r.reg)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}
