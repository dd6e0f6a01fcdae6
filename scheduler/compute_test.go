package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestComputationsHaveThreadsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s, err := New(Config{})
	require.NoError(t, err)
	var mu sync.Mutex
	tids := map[int]bool{} // guarded by mu
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			require.NoError(t, s.Compute(t.Context(), func() {
				mu.Lock()
				defer mu.Unlock()
				tids[unix.Gettid()] = true
			}))
		})
	}
	wg.Wait()
	require.LessOrEqual(t, len(tids), s.Machine().CPUs)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Compute(t.Context(), func() { t.Error("ran") }), errClosed)
}

func TestAPanicOfAComputationIsItsCallers(t *testing.T) {
	t.Parallel()
	s, err := New(Config{})
	require.NoError(t, err)
	defer s.Close()
	for range 2 * s.Machine().CPUs { // no thread is lost to it
		func() {
			defer func() {
				err, ok := recover().(error)
				require.True(t, ok)
				require.ErrorContains(t, err, "out of range")
				require.ErrorContains(t, err, "compute_test.go", "the stack of where it happened")
			}()
			var empty []int
			_ = s.Compute(t.Context(), func() { empty[len(empty)]++ })
		}()
	}
	require.NoError(t, s.Compute(t.Context(), func() {}))
}

func TestAComputationWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Scheduler{machine: Machine{CPUs: 2}, compute: newCompute()}
		block, ran := make(chan struct{}), atomic.Int64{}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				require.NoError(t, s.Compute(t.Context(), func() { ran.Add(1); <-block }))
			})
		}
		synctest.Wait()
		require.EqualValues(t, 2, ran.Load(), "as many as there are processors")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Compute(ctx, func() { t.Error("ran") }), context.Canceled)
		close(block)
		wg.Wait()
		require.EqualValues(t, 3, ran.Load())
		s.compute.close()
	})
	synctest.Test(t, func(t *testing.T) {
		s := &Scheduler{machine: Machine{CPUs: 1}, compute: newCompute()}
		block := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { require.NoError(t, s.Compute(t.Context(), func() { <-block })) })
		synctest.Wait()
		wg.Go(func() { require.ErrorIs(t, s.Compute(t.Context(), func() { t.Error("ran") }), errClosed) })
		wg.Go(s.compute.close)
		synctest.Wait()
		close(block)
		wg.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		s := &Scheduler{machine: Machine{CPUs: 1}, compute: newCompute()}
		s.compute.close()
		require.ErrorIs(t, s.Compute(t.Context(), func() { t.Error("ran") }), errClosed)
	})
}
