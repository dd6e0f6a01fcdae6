package aggregate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/wire"
)

// eagerProver proves at once and notes how long it had nothing to do between two jobs.
type eagerProver struct {
	*fakeProver
	most int           // jobs
	full chan struct{} // closed after them

	mu    sync.Mutex
	ended time.Time
	gaps  []time.Duration
}

func (p *eagerProver) Prove(_ context.Context, j prover.Job) (prover.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended.IsZero() && len(p.gaps) < p.most {
		p.gaps = append(p.gaps, time.Since(p.ended))
		if len(p.gaps) == p.most {
			close(p.full)
		}
	}
	proof := proofOf(j.Claim())
	p.ended = time.Now()
	return prover.Result{Proof: proof}, nil
}

// BenchmarkHandover measures the time between two jobs while there is always something to prove: 4096 votes in 16 data
// roots, jobs of 16 votes. It is snapshot, decision over all votes, budget and the change of goroutines; the snapshot grows
// with each aggregate made.
func BenchmarkHandover(b *testing.B) {
	const validators, roots = 4096, 16
	registry := testRegistry(b, validators)
	var gaps []time.Duration
	for b.Loop() {
		clock := &testClock{genesis: time.Now().Add(-25 * time.Second), slot: time.Minute} // in interval 2
		p := &eagerProver{fakeProver: newFakeProver(), most: 200, full: make(chan struct{})}
		p.caps.MaxRaw, p.caps.HelloProve = 16, time.Millisecond
		net := &fakeNetwork{registry: registry}
		pool, err := NewPool(PoolConfig{Subnets: []wire.SubnetID{0}}, registry, clock)
		require.NoError(b, err)
		agg, err := NewAggregator(Config{Enabled: true, Profile: testProfile(b)}, pool, clock, p, &fakeBudget{}, net, net)
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = pool.Run(ctx) })
		for r := range roots {
			data := dataOf(0, fmt.Sprint(r))
			root := data.HashTreeRoot()
			for v := range wire.ValidatorIndex(validators / roots) {
				require.True(b, pool.AddAttestation(ctx, vote(wire.ValidatorIndex(r*validators/roots)+v, data), root))
			}
		}
		run.Go(func() { _ = agg.Run(ctx) })
		<-p.full
		cancel()
		run.Wait()
		gaps = append(gaps, p.gaps...)
	}
	slices.Sort(gaps)
	b.ReportMetric(float64(gaps[len(gaps)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(gaps[len(gaps)*99/100].Microseconds()), "µs-p99")
	b.ReportMetric(0, "ns/op")
}
