package pipeline

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// sharingPipeline is one whose verifier is given up to eight aggregates, and takes 10 ms for a call.
func sharingPipeline(t *testing.T, f func(r *rig)) {
	t.Helper()
	inBubble(t, func(c *Config) {
		c.Workers, c.AggregateBatch = 2, func() int { return 8 }
	}, func(r *rig) {
		r.verifier.gate = func(context.Context, any) { <-time.NewTimer(10 * time.Millisecond).C }
		f(r)
	})
}

// holding is how many workers hold aggregates, once all is at rest.
func (r *rig) holding() int {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.queue.aggregating
}

func TestManyWaitingAggregatesAreCheckedTogether(t *testing.T) {
	t.Parallel()
	sharingPipeline(t, func(r *rig) {
		qualities := map[int]byte{3: bad, 5: unavailable, 9: bad}
		want := map[byte]wire.Reason{good: wire.ReasonNone, bad: wire.ReasonBadProof, unavailable: wire.ReasonVerifierUnavailable}
		var outcomes []<-chan Outcome
		for i := range 34 {
			quality, known := qualities[i]
			if !known {
				quality = good
			}
			outcomes = append(outcomes, r.later(fmt.Sprint("peer", i), r.aggregate(dataFor(10, 1, 0), 200, quality, i)))
			synctest.Wait()
		}
		// A vote that comes now has a worker to itself.
		began := time.Now()
		require.Equal(t, wire.ReasonNone, r.receive("voter", r.attestation(60, dataFor(10, 1, 0), good)).Reason)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		for i, ch := range outcomes {
			quality, known := qualities[i]
			if !known {
				quality = good
			}
			require.Equal(t, want[quality], (<-ch).Reason, "aggregate %d", i)
		}
		require.Equal(t, []int{1, 8, 7, 5, 4, 3, 2, 2, 1, 1}, r.verifier.proofs, "a quarter of what waits beside the first")
		require.Zero(t, r.holding())
		r.balanced()
	})
}

func TestAggregatesOfWhichOneCoversAnotherAreNotCheckedTogether(t *testing.T) {
	t.Parallel()
	sharingPipeline(t, func(r *rig) {
		data := dataFor(10, 1, 0)
		outcomes := []<-chan Outcome{r.later("busy", r.aggregate(data, 200, good, 63))}
		synctest.Wait()
		for i := range 12 { // each within the next one
			var indices []int
			for v := range i + 1 {
				indices = append(indices, v)
			}
			outcomes = append(outcomes, r.later(fmt.Sprint("peer", i), r.aggregate(data, 200, good, indices...)))
			synctest.Wait()
		}
		require.Equal(t, wire.ReasonNone, (<-outcomes[0]).Reason)
		require.Equal(t, wire.ReasonNone, (<-outcomes[12]).Reason, "the widest goes first")
		for _, ch := range outcomes[1:12] {
			require.Equal(t, wire.ReasonSubsumed, (<-ch).Reason)
		}
		require.Equal(t, []int{1, 1}, r.verifier.proofs, "what the widest covers is not checked")
	})
}

func TestOurOwnAggregateWaitsForNoOther(t *testing.T) {
	t.Parallel()
	sharingPipeline(t, func(r *rig) {
		var outcomes []<-chan Outcome
		for i := range 20 {
			outcomes = append(outcomes, r.later(fmt.Sprint("peer", i), r.aggregate(dataFor(10, 1, 0), 200, good, i)))
			synctest.Wait()
		}
		began := time.Now()
		require.Equal(t, wire.ReasonNone, r.SubmitLocal(context.Background(), &Item{Aggregate: r.aggregate(dataFor(10, 1, 0), 200, good, 40)}).Reason)
		require.Equal(t, 20*time.Millisecond, time.Since(began), "the one that was being checked, and its own time")
		for _, ch := range outcomes {
			require.Equal(t, wire.ReasonNone, (<-ch).Reason)
		}
		require.Equal(t, []int{1, 1}, r.verifier.proofs[:2])
	})
}

// A verifier that fails takes the batch that it was given, and no more.
func TestAPanicEndsItsBatchAndNothingElse(t *testing.T) {
	t.Parallel()
	sharingPipeline(t, func(r *rig) {
		var outcomes []<-chan Outcome
		for i := range 16 {
			quality := byte(good)
			if i == 3 {
				quality = panics
			}
			outcomes = append(outcomes, r.later(fmt.Sprint("peer", i), r.aggregate(dataFor(10, 1, 0), 200, quality, i)))
			synctest.Wait()
		}
		count := map[wire.Reason]int{}
		for _, ch := range outcomes {
			count[(<-ch).Reason]++
		}
		require.Equal(t, map[wire.Reason]int{wire.ReasonNone: 12, wire.ReasonInternalError: 4}, count)
		require.Zero(t, r.holding())
		r.balanced()
	})
}
