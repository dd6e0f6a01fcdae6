package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// block has the verifier wait until a test lets it go.
func block(r *rig) (release func()) {
	gate := make(chan struct{}) // only ever closed
	r.verifier.gate = func(context.Context, any) { <-gate }

	return func() { close(gate) }
}

// waitUnder submits a vote of a validator on a goroutine of its own.
func waitUnder(ctx context.Context, r *rig, v int) <-chan Outcome {
	ch := make(chan Outcome, 1)
	go func() { ch <- r.receiveCtx(ctx, "p", r.attestation(v, dataFor(10, 1, uint64(v)), good)) }()
	synctest.Wait()

	return ch
}

func TestAContextThatEndsAnswersAllThatWaitUnderIt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		defer block(r)()
		first, end := context.WithCancel(context.Background())
		other, endOther := context.WithCancel(context.Background())
		defer endOther()
		var ended, waiting []<-chan Outcome
		for v := range 8 { // more than the workers, so that some are queued
			ended = append(ended, waitUnder(first, r, 2*v))
			waiting = append(waiting, waitUnder(other, r, 2*v+1))
		}
		end()
		synctest.Wait()
		for _, ch := range ended {
			require.Equal(t, outcomeOf(wire.ReasonExpired), <-ch)
		}
		for _, ch := range waiting {
			require.Empty(t, ch, "under another context")
		}
		require.Equal(t, outcomeOf(wire.ReasonExpired), <-waitUnder(first, r, 100), "under one that ended before")
		require.Equal(t, len(waiting), r.Stats().Classes[ClassAttestation-1].InFlight)
		endOther()
		synctest.Wait()
		for _, ch := range waiting {
			require.Equal(t, outcomeOf(wire.ReasonExpired), <-ch)
		}
		r.balanced()
	})
}

func TestManyVotesUnderOneContextAreWatchedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		defer block(r)()
		ctx, end := context.WithCancel(context.Background())
		defer end()
		waitUnder(ctx, r, 0)
		require.False(t, r.watch.Load().armed, "the first one watches for itself")
		waitUnder(ctx, r, 1)
		armed := r.watch.Load()
		require.True(t, armed.armed)
		for v := 2; v < 6; v++ {
			passing, endPassing := context.WithCancel(context.Background())
			defer endPassing()
			waitUnder(passing, r, v)
			require.Same(t, armed, r.watch.Load(), "a context that passes by takes nobody's place")
		}
		end()
		synctest.Wait()
		next, endNext := context.WithCancel(context.Background())
		defer endNext()
		waitUnder(next, r, 6)
		require.NotSame(t, armed, r.watch.Load(), "it has ended")
		waitUnder(next, r, 7)
		require.True(t, r.watch.Load().armed)
	})
}

func TestOurOwnItemsWatchTheirContextThemselves(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		defer block(r)()
		ctx, end := context.WithTimeout(context.Background(), time.Second)
		defer end()
		for v := range 3 {
			go r.SubmitLocal(ctx, &Item{Attestation: r.attestation(v, dataFor(10, 1, 0), good)})
		}
		synctest.Wait()
		require.Nil(t, r.watch.Load())
		require.Equal(t, 3, r.Stats().Classes[ClassLocal-1].InFlight)
		advance(time.Second)
		require.Zero(t, r.Stats().Classes[ClassLocal-1].InFlight)
	})
}
