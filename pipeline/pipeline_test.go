package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"aggnode/wire"
)

func TestConfigurationsThatCanNotWorkAreRefused(t *testing.T) {
	t.Parallel()
	profile, err := wire.LookupProfile("local", "")
	require.NoError(t, err)
	ok := Config{Profile: profile, Validators: 8, SlotDuration: testSlot}
	clock := clockAt(1, testSlot)
	for want, mutate := range map[string]func(*Config){
		"no profile":                    func(c *Config) { c.Profile = nil },
		"0 validators":                  func(c *Config) { c.Validators = 0 },
		"4097 validators":               func(c *Config) { c.Validators = 4097 },
		"-1 workers":                    func(c *Config) { c.Workers = -1 },
		"slot of 0s":                    func(c *Config) { c.SlotDuration = 0 },
		"subnet 2, must be below the 2": func(c *Config) { c.Committees = 2; c.Subnets = []wire.SubnetID{0, 2} },
		"subnet 1, must be below the 1": func(c *Config) { c.Subnets = []wire.SubnetID{1} },
	} {
		cfg := ok
		mutate(&cfg)
		_, err := New(cfg, clock, nil, nil, nil)
		require.ErrorContains(t, err, want)
	}
	p, err := New(ok, clock, nil, nil, nil)
	require.NoError(t, err)
	require.Positive(t, p.Limits().Workers)
}

func TestLimitsFollowTheRegistry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		validators         int
		committees         uint64
		subnets            int
		attestations, park int
	}{
		{1024, 8, 1, 256, 256},
		{1024, 8, 8, 2048, 2048},
		{1000, 3, 2, 1336, 1336},
		{8, 2, 1, 256, 16},
		{4096, 1, 1, 8192, 8192},
		{4096, 4096, 0, 256, 16},
		{4096, 2, 5, 8192, 8192},
	}
	for _, tt := range tests {
		l := limitsFor(tt.validators, tt.committees, tt.subnets, 3)
		require.Equal(t, Limits{
			Workers: 3, Blocks: 16, Attestations: tt.attestations, Aggregates: 64,
			ParkedAttestations: tt.park, ParkedAggregates: 16,
		}, l)
	}
}

func TestOneWorkerIsNoted(t *testing.T) {
	t.Parallel()
	one := newRig(t, clockAt(1, testSlot), func(c *Config) { c.Workers = 1 })
	require.Len(t, one.Notes(), 1)
	two := newRig(t, clockAt(1, testSlot), nil)
	require.Empty(t, two.Notes())
}

func TestRunIsForOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		synctest.Wait()
		require.ErrorContains(t, r.Run(context.Background()), "twice")
	})
}

func TestAnItemIsForOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		topic, payload := r.encode(r.attestation(1, dataFor(10, 1, 0), good))
		it, _ := r.Screen(topic, "p", payload)
		require.Equal(t, Accept, r.Submit(context.Background(), it).Verdict)
		require.Panics(t, func() { r.Submit(context.Background(), it) })
	})
}

// An item that no Screen made ends like any other.
func TestAnEmptyItemEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		require.Equal(t, outcomeOf(wire.ReasonInternalError), r.Submit(context.Background(), &Item{}))
		require.Equal(t, outcomeOf(wire.ReasonInternalError), r.Submit(context.Background(), &Item{Class: 77}))
		_, out := r.Screen(wire.Topic{}, "p", nil)
		require.Equal(t, outcomeOf(wire.ReasonMalformed), out)
		r.balanced()
	})
}

// 16 aggregates come within 100 ms and a check takes 127 ms: with four workers
// three check at once, and a vote meanwhile is checked without a wait.
func TestSlowProofsDoNotDelayVotes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Workers = 4 }, func(r *rig) {
		r.verifier.gate = slow(0, 127*time.Millisecond)
		start := time.Now()
		var proofs []<-chan Outcome
		for i := range 16 {
			proofs = append(proofs, r.later(fmt.Sprint(i), r.aggregate(dataFor(10, 1, uint64(i)), 10, good, i)))
			advance(6 * time.Millisecond)
			at := time.Now()
			require.Equal(t, Accept, r.receive("p", r.attestation(i, dataFor(10, 1, 0), good)).Verdict)
			require.Zero(t, time.Since(at))
		}
		for _, ch := range proofs {
			require.Equal(t, Accept, (<-ch).Verdict)
		}
		require.LessOrEqual(t, time.Since(start), 6*127*time.Millisecond)
	})
}

// The votes never end and one aggregate comes a second: it waits for the running
// check of a vote at most.
func TestVotesDoNotStarveProofs(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		r.verifier.gate = slow(5*time.Millisecond, 50*time.Millisecond)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range 64 { // 64 callers that come again at once keep the queue full
			wg.Go(func() {
				for n := uint64(0); ctx.Err() == nil; n++ {
					slot, _ := r.clock.At()
					r.receive("p", r.attestation(i, dataFor(slot, 1, n*64+uint64(i)), bad))
				}
			})
		}
		for i := range 5 {
			advance(time.Second)
			slot, _ := r.clock.At()
			at := time.Now()
			require.Equal(t, Accept, r.receive("q", r.aggregate(dataFor(slot, 1, 0), 10, good, i)).Verdict)
			require.LessOrEqual(t, time.Since(at), 55*time.Millisecond)
		}
		cancel()
		wg.Wait()
	})
}

// No worker idles while something that it may take waits.
func TestNothingWaitsWhileAWorkerIsFree(t *testing.T) {
	t.Parallel()
	for workers := 1; workers <= 5; workers++ {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(c *Config) { c.Workers = workers }, func(r *rig) {
				r.verifier.gate = slow(7*time.Millisecond, 30*time.Millisecond)
				var all []<-chan Outcome
				for i := range 200 {
					if i%10 == 0 {
						all = append(all, r.later("p", r.aggregate(dataFor(10, 1, uint64(i)), 10, good, i)))
					}
					all = append(all, r.later("p", r.attestation(i, dataFor(10, 1, uint64(i%5)), good)))
					advance(time.Millisecond)
					synctest.Wait()
					s := r.Stats()
					r.mu.Lock()
					require.False(t, r.idle > 0 && r.queue.ready(), "%+v", s)
					require.Equal(t, workers, r.idle+r.queue.busy)
					r.mu.Unlock()
				}
				for _, ch := range all {
					<-ch
				}
			})
		})
	}
}

// Panics end the item with internal_error; the stack is logged once a minute.
func TestStacksAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // the handler locks it, and it is read when all is done
	inBubble(t, func(c *Config) {
		c.Workers = 1
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}, func(r *rig) {
		for i := range 20 {
			slot, _ := r.clock.At()
			require.Equal(t, wire.ReasonInternalError, r.receive("p", r.attestation(i, dataFor(slot, 1, 0), panics)).Reason)
			advance(6 * time.Second)
		}
		require.Zero(t, r.PeerScore("p").Rejected)
	})
	require.Equal(t, 2, strings.Count(log.String(), "panic while checking"))
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "stack=") {
			require.Less(t, len(line), 400)
		}
	}
}

// A vote of a batch that fails takes the others of the batch along, not the ones
// behind it, and leaves no mark.
func TestAPanicLeavesNoMark(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		r.sink.fail = true
		data := dataFor(10, 1, 0)
		require.Equal(t, wire.ReasonInternalError, r.receive("p", r.attestation(1, data, good)).Reason)
		r.sink.mu.Lock()
		r.sink.fail = false
		r.sink.mu.Unlock()
		require.Equal(t, wire.ReasonNone, r.receive("q", r.attestation(1, data, good)).Reason)
	})
}

func TestPeersAreKeptWithinABound(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		for i := range 3 * maxPeerRecords {
			_, out := r.Screen(wire.Topic{Kind: wire.TopicBlock}, fmt.Sprint("peer ", i), []byte{1})
			require.Equal(t, Reject, out.Verdict)
		}
		r.mu.Lock()
		require.Len(t, r.peers.records, maxPeerRecords)
		r.mu.Unlock()
		require.Equal(t, PeerScore{Rejected: 1}, r.PeerScore("peer 3"))
		require.Equal(t, PeerScore{}, r.PeerScore("a stranger"))
		advance(testSlot)
		require.Equal(t, PeerScore{Rejected: 1}, r.PeerScore("peer 3"), "the slot before counts")
		advance(testSlot)
		require.Equal(t, PeerScore{}, r.PeerScore("peer 3"))
		r.mu.Lock()
		require.Empty(t, r.peers.records)
		r.mu.Unlock()
		series, err := testutil.GatherAndCount(r.registry)
		require.NoError(t, err)
		require.Less(t, series, 250, "no series grows with peers")
	})
}

func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		r.receive("p", r.attestation(1, dataFor(10, 1, 0), good))
		r.receive("p", r.attestation(2, dataFor(10, 1, 0), bad))
		r.receive("p", r.attestation(3, dataFor(10, 9, 0), good))
		r.receive("p", r.aggregate(dataFor(10, 1, 0), 5000, good, 1))
		problems, err := testutil.GatherAndLint(r.registry)
		require.NoError(t, err)
		require.Empty(t, problems)
		want := `
# HELP lean_attestations_invalid_total Votes whose data checks failed.
# TYPE lean_attestations_invalid_total counter
lean_attestations_invalid_total 0
# HELP lean_attestations_valid_total Votes whose data checks passed.
# TYPE lean_attestations_valid_total counter
lean_attestations_valid_total 1
# HELP lean_gossip_attestation_arrival_total Gossip attestation messages by arrival relative to their interval.
# TYPE lean_gossip_attestation_arrival_total counter
lean_gossip_attestation_arrival_total{position="after"} 0
lean_gossip_attestation_arrival_total{position="before"} 3
lean_gossip_attestation_arrival_total{position="inside"} 0
`
		require.NoError(t, testutil.GatherAndCompare(r.registry, strings.NewReader(want),
			"lean_attestations_valid_total", "lean_attestations_invalid_total", "lean_gossip_attestation_arrival_total"))
	})
}

// What the gauges of one scrape say is of one moment.
func TestDepthIsWaitingPlusRunning(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Workers = 1 }, func(r *rig) {
		r.verifier.gate = slow(time.Second, time.Second)
		first := r.later("p", r.attestation(1, dataFor(10, 1, 9), good))
		synctest.Wait()
		var rest []<-chan Outcome
		for v := range 5 {
			rest = append(rest, r.later("p", r.attestation(10+v, dataFor(10, 1, 0), good)))
		}
		advance(300 * time.Millisecond)
		require.Equal(t, ClassStats{
			Class: ClassAttestation, Waiting: 5, Running: 1, InFlight: 6,
			Capacity: 2048, Oldest: 300 * time.Millisecond,
		}, r.Stats().Classes[1])
		require.Equal(t, 1, r.Stats().Busy)
		want := `
# HELP aggnode_pipeline_depth Items that wait or are on workers.
# TYPE aggnode_pipeline_depth gauge
aggnode_pipeline_depth{class="aggregate"} 0
aggnode_pipeline_depth{class="attestation"} 6
aggnode_pipeline_depth{class="block"} 0
aggnode_pipeline_depth{class="local"} 0
`
		require.NoError(t, testutil.GatherAndCompare(r.registry, strings.NewReader(want), "aggnode_pipeline_depth"))
		for _, ch := range append(rest, first) {
			<-ch
		}
	})
}

// One aggregate of many signers sent twice and one bad one: one valid, one
// duplicate, one invalid, whatever the number of signers.
func TestCountersCountMessages(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		data := dataFor(10, 1, 0)
		var signers []int
		for v := range 100 {
			signers = append(signers, v)
		}
		r.receive("p", r.aggregate(data, 10, good, signers...))
		r.receive("q", r.aggregate(data, 11, good, signers...))
		r.receive("q", r.aggregate(dataFor(10, 1, 2), 10, bad, signers...))
		reasons := r.balanced()
		require.Equal(t, 1, reasons["none"])
		require.Equal(t, 1, reasons["duplicate"])
		require.Equal(t, 1, reasons["bad_proof"])
	})
}

func TestTwoPipelinesOnOneRegistryAreRefused(t *testing.T) {
	t.Parallel()
	profile, err := wire.LookupProfile("local", "")
	require.NoError(t, err)
	cfg := Config{Profile: profile, Validators: 8, SlotDuration: testSlot, Registerer: prometheus.NewRegistry()}
	_, err = New(cfg, clockAt(1, testSlot), nil, nil, nil)
	require.NoError(t, err)
	_, err = New(cfg, clockAt(1, testSlot), nil, nil, nil)
	require.Error(t, err)
}

// Each aggregate has a span with its check below it, one vote in 64 has. All are in the trace of their data root.
func TestSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	inBubble(t, func(c *Config) { c.Tracer, c.Network = provider.Tracer("test"), "net" }, func(r *rig) {
		r.receive("p", r.aggregate(dataFor(10, 1, 0), 10, good, 1))
		for v := range 130 {
			r.receive("p", r.attestation(v, dataFor(10, 1, 0), good))
		}
	})
	names := map[string]int{}
	for _, s := range recorder.Ended() {
		names[s.Name()]++
		data := dataFor(10, 1, 0)
		require.EqualValues(t, wire.TraceID("net", 10, data.HashTreeRoot()), s.SpanContext().TraceID())
		require.Equal(t, s.Name() == "check", s.Parent().SpanID().IsValid(), "an item is a root, its check is below it")
	}
	require.Equal(t, map[string]int{"aggregate": 1, "attestation": 2, "check": 3}, names)
}

// The log has one line for a slot in which something was shed.
func TestShedItemsAreReportedOnceASlot(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	inBubble(t, func(c *Config) {
		c.Workers, c.Validators = 2, 16
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}, func(r *rig) {
		r.verifier.gate = slow(10*time.Second, 0)
		for i := range 600 {
			r.later("p", r.attestation(i%16, dataFor(10, 1, uint64(i)), good))
		}
		advance(3 * testSlot)
	})
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	require.Contains(t, log.String(), "slot=10 attestation.evicted=")
}
