package chain

import "aggnode/wire"

// Bounds of the raw blocks that are kept to be served to peers. A block with
// real proofs has about 250 KB: 32 MiB are some 130 of them, eight minutes at 4 s.
const (
	maxRecentBlocks = 512
	maxRecentBytes  = 32 << 20
)

// recentBlocks is a ring of encodings of imported blocks. Full: the one that was
// imported first goes. Guarded by Tree.mu.
type recentBlocks struct {
	raw   map[wire.Root][]byte
	order []wire.Root
	bytes int
}

func newRecentBlocks() recentBlocks { return recentBlocks{raw: make(map[wire.Root][]byte)} }

// add keeps the encoding of a block that is not kept yet; empty ones are not.
func (r *recentBlocks) add(root wire.Root, raw []byte) {
	if len(raw) == 0 || len(raw) > maxRecentBytes {
		return
	}
	r.raw[root] = raw
	r.order = append(r.order, root)
	r.bytes += len(raw)
	for len(r.order) > maxRecentBlocks || r.bytes > maxRecentBytes {
		first := r.order[0]
		r.bytes -= len(r.raw[first])
		delete(r.raw, first)
		r.order = r.order[1:]
	}
}

// RawBlock returns the encoding of a recently imported block, shared and not to
// be written.
func (t *Tree) RawBlock(root wire.Root) (raw []byte, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	raw, ok = t.recent.raw[root]

	return raw, ok
}
