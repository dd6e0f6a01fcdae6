package prover

import "sync"

// pooledMax is the longest buffer that is kept for reuse, in bytes: a proof of 240 KB with its claims, or a job of some
// hundred signatures. Rare larger ones are left to the garbage collector, so that one of them pins nothing.
const pooledMax = 1 << 20

// buffers keeps the frames of one child for reuse. Checks alone would otherwise make 4 MB of garbage a second, at 20
// proofs of 200 KB. Safe for concurrent use; a nil one allocates. What it hands out is not cleared.
type buffers struct{ pool sync.Pool }

// take returns an empty buffer with room for size bytes at least.
func (b *buffers) take(size int) []byte {
	if b != nil {
		if kept, ok := b.pool.Get().(*[]byte); ok && cap(*kept) >= size {
			return (*kept)[:0]
		}
	}
	return make([]byte, 0, size)
}

// give takes a buffer back. Nobody may look at it any more.
func (b *buffers) give(buf []byte) {
	if b == nil || cap(buf) == 0 || cap(buf) > pooledMax {
		return
	}
	buf = buf[:0]
	b.pool.Put(&buf)
}
