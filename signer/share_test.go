package signer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachItemIsSharedOutOnce(t *testing.T) {
	t.Parallel()
	for n := range 41 {
		for limit := range 65 {
			for _, least := range []int{0, 1, 4} {
				calls := make([]atomic.Int32, n)
				share(n, limit, least, func(i int) { calls[i].Add(1) })
				for i := range calls {
					if calls[i].Load() != 1 {
						t.Fatalf("%d items, limit %d, least %d: item %d was worked at %d times", n, limit, least, i, calls[i].Load())
					}
				}
			}
		}
	}
}

func TestAsManyGoroutinesShareAsPay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, limit, least, want int }{
		{0, 8, 1, 0},
		{1, 8, 1, 1},
		{8, 8, 1, 8},
		{9, 8, 1, 8},
		{8, 0, 1, 1},
		{8, -1, 1, 1},
		{8, 64, 0, 8},
		{3, 8, 4, 1},
		{7, 8, 4, 1},
		{8, 8, 4, 2},
		{32, 8, 4, 8},
		{40, 8, 4, 8},
		{40, 64, 4, 10},
	} {
		t.Run(fmt.Sprintf("%d items, limit %d, least %d", c.n, c.limit, c.least), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				running, most := 0, 0
				change := func(by int) {
					mu.Lock()
					defer mu.Unlock()
					running += by
					most = max(most, running)
				}
				start := time.Now()
				share(c.n, c.limit, c.least, func(int) {
					change(1)
					_ = pass(t.Context(), time.Second)
					change(-1)
				})
				require.Equal(t, c.want, most)
				if c.want > 0 {
					waves := (c.n + c.want - 1) / c.want
					require.Equal(t, time.Duration(waves)*time.Second, time.Since(start), "nobody waits while there is work")
				}
			})
		})
	}
}

func TestTheCallerWorksToo(t *testing.T) {
	t.Parallel()
	mine := 0 // written without a lock: the race detector sees another goroutine
	share(7, 8, 4, func(int) { mine++ })
	require.Equal(t, 7, mine)
}
