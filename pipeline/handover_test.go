package pipeline

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// pickySink decides by validator what becomes of a vote: taken, refused or a panic.
type pickySink struct {
	fakeSink
	refuses, fails wire.ValidatorIndex
}

func (s *pickySink) AddAttestation(ctx context.Context, a *wire.SignedAttestation, root wire.DataRoot) bool {
	switch a.ValidatorIndex {
	case s.refuses:
		return false
	case s.fails:
		panic("sink fails")
	}

	return s.fakeSink.AddAttestation(ctx, a, root)
}

// A batch is handed over in one turn, and each vote ends as the pool answered for it.
func TestEachVoteOfABatchEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clockAt(10, testSlot), func(c *Config) { c.Workers = 1 })
		picky := &pickySink{refuses: 2, fails: 4}
		r.Pipeline.sink = picky
		data := dataFor(10, 1, 0)
		var outcomes []<-chan Outcome
		for v := range 6 {
			outcomes = append(outcomes, r.later("p", r.attestation(v, data, good)))
			synctest.Wait() // queued in this order
		}
		stop := r.start()
		defer stop()
		want := []wire.Reason{
			wire.ReasonNone, wire.ReasonNone, wire.ReasonPoolFull, wire.ReasonNone,
			wire.ReasonInternalError, wire.ReasonInternalError, // the panic, and the one that it kept from the pool
		}
		for v, ch := range outcomes {
			require.Equal(t, outcomeOf(want[v]), <-ch, "vote of validator %d", v)
		}
		require.Equal(t, []int{6}, r.verifier.batches)

		picky.refuses, picky.fails = 100, 100
		for v, reason := range want {
			again := wire.ReasonNone // what is not in the pool is not held against a copy
			if reason == wire.ReasonNone {
				again = wire.ReasonDuplicate
			}
			require.Equal(t, again, r.receive("q", r.attestation(v, data, good)).Reason, "second vote of validator %d", v)
		}
		_, votes, _ := picky.counts()
		require.Equal(t, 6, votes, "each once")
	})
}

// TestEnqueuedItemsNeedNobodyWhoWaits: they are checked at once, and their verdicts are there for who comes later.
func TestEnqueuedItemsNeedNobodyWhoWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		data := dataFor(10, 1, 0)
		var burst []*Item
		for v := range 5 {
			topic, payload := r.encode(r.attestation(v, data, good))
			it, _ := r.Screen(topic, "p", payload)
			burst = append(burst, it)
			r.Enqueue(context.Background(), it)
		}
		synctest.Wait()
		over, cancel := context.WithCancel(context.Background())
		cancel()
		for _, it := range burst {
			require.Equal(t, outcomeOf(wire.ReasonNone), r.Submit(over, it), "the verdict is there")
			require.Panics(t, func() { r.Enqueue(over, it) })
		}
		_, votes, _ := r.sink.counts()
		require.Equal(t, 5, votes)
	})
}

func TestRootMemoTellsDataApart(t *testing.T) {
	t.Parallel()
	var m rootMemo
	a, b := dataFor(10, 1, 0), dataFor(10, 1, 1)
	for _, d := range []*wire.AttestationData{&a, &a, &b, &a, &b, &b} {
		require.Equal(t, d.HashTreeRoot(), m.of(d))
	}
}
