//go:build !race

// The race detector makes a sync.Pool forget at random, so nothing can be said of allocations under it.

package leanproof

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Not parallel: it counts allocations.
func TestChecksDoNotAllocate(t *testing.T) {
	v := newVerifier(t)
	for _, name := range []string{"eight", "kids2"} {
		proof := readProof(t, name)
		want := claimsOf(t, proof)
		refused := readProof(t, name)
		refused[len(refused)/2] ^= 1
		verify := func() {
			require.NoError(t, v.Verify(t.Context(), proof, want))
			require.Error(t, v.Verify(t.Context(), refused, want))
		}
		verify()
		// A pool may lose its scratch memory to a collection, so the least of some runs counts.
		least := ^uint64(0)
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			verify()
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		require.Less(t, least, uint64(4<<10), name)
	}
}

// Not parallel: it counts allocations.
func TestGarbageIsRefusedWithoutAllocation(t *testing.T) {
	v := newVerifier(t)
	for name, garbage := range garbageProofs(t) {
		require.Zero(t, testing.AllocsPerRun(20, func() {
			var c Claims
			if v.Verify(t.Context(), garbage, c) == nil {
				t.Error("accepted")
			}
		}), name)
	}
}
