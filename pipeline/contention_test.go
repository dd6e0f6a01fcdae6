package pipeline

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// queueOp is one step of a vote through the queue.
type queueOp struct {
	name string
	took [][]time.Duration // by goroutine
}

// quantile returns that of all goroutines together.
func (o *queueOp) quantile(q float64) time.Duration {
	all := slices.Concat(o.took...)
	slices.Sort(all)

	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// BenchmarkQueueOf16 has 16 goroutines put votes into a queue that is 128 deep, take one and give its verdict, without a
// pause, through the code of Submit and of the workers. The target is 50 us at p99 for each of the three. Every vote that
// waits has data of its own, so that one is taken at a time and nobody waits for work.
func BenchmarkQueueOf16(b *testing.B) {
	const goroutines, depth, each = 16, 128, 256
	r := newRig(b, clockAt(10, time.Hour), func(c *Config) { c.Validators, c.Workers = goroutines*each, goroutines })
	votes := make([]*wire.SignedAttestation, goroutines*each)
	roots := make([]wire.DataRoot, len(votes))
	for v := range votes {
		votes[v] = r.attestation(v, dataFor(10, 1, uint64(v)), good)
		roots[v] = votes[v].Data.HashTreeRoot()
	}
	item := func(goroutine, n int) *Item {
		v := goroutine*each + n%each

		return &Item{Class: ClassAttestation, kind: kindAttestation, Slot: 10, Peer: "p", Attestation: votes[v], DataRoot: roots[v]}
	}
	put := func(it *Item) {
		it.answered.Add(1) // as Submit, which would wait for it
		r.place(it)
	}
	for n := range depth {
		put(item(n%goroutines, n/goroutines))
	}
	ops := []*queueOp{{name: "put"}, {name: "take"}, {name: "verdict"}}
	rounds := b.N/goroutines + 1
	for _, o := range ops {
		o.took = make([][]time.Duration, goroutines)
		for g := range o.took {
			o.took[g] = make([]time.Duration, rounds)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			w := newWorker(r.Pipeline)
			for n := range rounds {
				it := item(g, depth/goroutines+n)
				began := time.Now()
				put(it)
				in := time.Now()
				w.take()
				taken := time.Now()
				w.finish(wire.ReasonBadSignature, w.items...)
				w.putDown()
				ops[0].took[g][n], ops[1].took[g][n], ops[2].took[g][n] = in.Sub(began), taken.Sub(in), time.Since(taken)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	for _, c := range r.Stats().Classes {
		if c.Class == ClassAttestation {
			require.Equal(b, depth, c.Waiting, "every vote that was put was taken")
		}
	}
	for _, o := range ops {
		b.ReportMetric(float64(o.quantile(0.99).Nanoseconds())/1e3, o.name+"-p99-µs")
		b.ReportMetric(float64(o.quantile(0.5).Nanoseconds())/1e3, o.name+"-p50-µs")
	}
}
