package aggregate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// BenchmarkSnapshot4096x16 asks a running pool for its material, as a job does: one vote of each of 4,096 validators, over
// 16 data roots. The target is 1 ms.
func BenchmarkSnapshot4096x16(b *testing.B) {
	const validators, roots = 4096, 16
	p := newTestPool(b, validators, PoolConfig{Subnets: []wire.SubnetID{0}})
	ctx, stop := context.WithCancel(b.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = p.Run(ctx) }) // it ends with its context and has no other error
	defer func() { stop(); run.Wait() }()
	for v := range wire.ValidatorIndex(validators) {
		d := dataOf(0, fmt.Sprint(v%roots))
		for !p.AddAttestation(ctx, vote(v, d), rootOf(d)) {
		}
	}
	s, err := p.Snapshot(ctx)
	require.NoError(b, err)
	require.Len(b, s.Groups, roots)
	votes := 0
	for _, g := range s.Groups {
		votes += len(g.Raw)
	}
	require.Equal(b, validators, votes)

	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		if s, err = p.Snapshot(ctx); err != nil || len(s.Groups) != roots {
			b.Fatal(err, len(s.Groups))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
}
