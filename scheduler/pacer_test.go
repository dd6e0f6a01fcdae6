package scheduler

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// votes is a queue that the tests fill and that counts the looks at it.
type votes struct{ waiting, looks atomic.Int64 }

func (v *votes) wait() bool {
	v.looks.Add(1)
	return v.waiting.Load() > 0
}

func newPacer(t *testing.T) (*Scheduler, *votes, *Pacer) {
	t.Helper()
	s, err := New(Config{})
	require.NoError(t, err)
	v := new(votes)
	return s, v, s.Pacer(v.wait)
}

func TestANilPacerNeverWaits(t *testing.T) {
	t.Parallel()
	var p *Pacer
	require.NoError(t, p.Pace(t.Context()))
	require.NoError(t, p.Until(time.Now().Add(time.Hour)).Pace(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Pace(ctx), context.Canceled)
}

func TestPaceLooksOnceAMillisecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, v, p := newPacer(t)
		for range 100 {
			for range 50 {
				require.NoError(t, p.Pace(t.Context()))
			}
			time.Sleep(paceEvery / 10)
		}
		require.EqualValues(t, 10, v.looks.Load())
	})
}

func TestPaceWaitsWhileVotesWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, v, p := newPacer(t)
		v.waiting.Store(1)
		began := time.Now()
		ended := make(chan time.Duration, 3)
		for range cap(ended) { // all that share it stand back at once
			go func() {
				for v.waiting.Load() > 0 {
					if err := p.Pace(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(paceEvery / 100) // a piece of work
				}
				ended <- time.Since(began)
			}()
		}
		time.Sleep(40*time.Millisecond + paceEvery/2)
		require.Empty(t, ended)
		v.waiting.Store(0)
		for range cap(ended) {
			require.InDelta(t, 41*time.Millisecond, <-ended, float64(paceEvery/10))
		}
		require.InDelta(t, 3*0.041, testutil.ToFloat64(s.metrics.paced), 0.0001)
	})
}

func TestPaceDoesNotWaitPastTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, v, p := newPacer(t)
		v.waiting.Store(1)
		began := time.Now()
		work := p.Until(began.Add(time.Second))
		require.NoError(t, work.Pace(t.Context()))
		require.Equal(t, time.Second, time.Since(began))
		for range 10 { // unpaced from here on
			require.NoError(t, work.Pace(t.Context()))
			require.Equal(t, time.Second, time.Since(began))
		}
	})
}

func TestPaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, v, p := newPacer(t)
		v.waiting.Store(1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Pace(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, p.Pace(ctx), context.DeadlineExceeded)
	})
}

func BenchmarkPace(b *testing.B) {
	s, err := New(Config{})
	require.NoError(b, err)
	p := s.Pacer(func() bool { return false })
	for b.Loop() {
		_ = p.Pace(b.Context())
	}
}
