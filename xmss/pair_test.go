package xmss

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestPairKeepsTheTwoUsedLast(t *testing.T) {
	t.Parallel()
	var p pair[uint32]
	made := map[uint32]int{}
	get := func(key uint32) {
		v, err := p.get(context.Background(), key, func(context.Context) (uint32, error) { made[key]++; return key + 100, nil })
		require.NoError(t, err)
		require.Equal(t, key+100, v)
	}
	for _, key := range []uint32{1, 1, 2, 1, 3, 1, 3} { // 3 takes the place of 2, which was used longer ago than 1
		get(key)
	}
	require.Equal(t, map[uint32]int{1: 1, 2: 1, 3: 1}, made)
	get(2) // takes the place of 1
	get(3)
	get(1)
	require.Equal(t, map[uint32]int{1: 2, 2: 2, 3: 1}, made)
}

func TestPairMakesAValueOnceForAllWhoNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pair[int]
		release := make(chan struct{}) // unbuffered: closed by the test
		made, got := 0, make(chan int, 8)
		for range 8 {
			go func() {
				v, err := p.get(t.Context(), 5, func(context.Context) (int, error) {
					<-release
					made++
					return 42, nil
				})
				if err == nil {
					got <- v
				}
			}()
		}
		synctest.Wait()
		require.Empty(t, got)
		close(release)
		synctest.Wait()
		require.Len(t, got, 8)
		require.Equal(t, 1, made)
	})
}

func TestPairLetsAWaiterGoWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pair[int]
		release := make(chan struct{}) // unbuffered: closed by the test
		defer close(release)
		go func() {
			_, _ = p.get(context.Background(), 1, func(context.Context) (int, error) { <-release; return 1, nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := p.get(ctx, 1, func(context.Context) (int, error) { panic("made twice") })
			done <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

func TestPairWaitersTakeOverFromAMakerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pair[int]
		release := make(chan struct{}) // unbuffered: closed by the test
		gone := errors.New("gone")
		first := make(chan error, 1)
		go func() {
			_, err := p.get(context.Background(), 1, func(context.Context) (int, error) { <-release; return 0, gone })
			first <- err
		}()
		synctest.Wait()
		second := make(chan int, 1)
		go func() {
			v, err := p.get(context.Background(), 1, func(context.Context) (int, error) { return 7, nil })
			if err == nil {
				second <- v
			}
		}()
		synctest.Wait()
		close(release)
		require.ErrorIs(t, <-first, gone)
		require.Equal(t, 7, <-second)
		v, err := p.get(context.Background(), 1, func(context.Context) (int, error) { panic("made twice") })
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

func TestPairWaitersOutliveABuilderThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pair[int]
		release := make(chan struct{}) // unbuffered: closed by the test
		recovered := make(chan any, 1)
		go func() {
			defer func() { recovered <- recover() }()
			_, _ = p.get(context.Background(), 1, func(context.Context) (int, error) { <-release; panic("broken") })
		}()
		synctest.Wait()
		got := make(chan int, 1)
		go func() {
			v, err := p.get(context.Background(), 1, func(context.Context) (int, error) { return 7, nil })
			if err == nil {
				got <- v
			}
		}()
		synctest.Wait()
		close(release)
		require.Equal(t, "broken", <-recovered)
		require.Equal(t, 7, <-got)
	})
}
