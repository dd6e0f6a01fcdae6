package signer

import (
	"sync"
	"sync/atomic"
)

// share calls work once for each of 0..n-1, in that order as far as several goroutines have one, and returns when all calls
// have returned. The calling goroutine works too; others join it as long as each has least items on average, up to limit in
// all. Below 1, limit and least count as 1. work must not panic; it is called concurrently where others have joined.
func share(n, limit, least int, work func(i int)) {
	var next atomic.Int64
	loop := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			work(i)
		}
	}
	var others sync.WaitGroup
	for range min(limit, n/max(least, 1)) - 1 {
		others.Go(loop)
	}
	loop()
	others.Wait()
}
