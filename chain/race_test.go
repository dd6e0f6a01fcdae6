package chain

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// Blocks come from many goroutines in any order while others ask: every block is
// imported once, parents before children, and every question has an answer.
func TestConcurrentInsertsAndQuestions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	order := map[wire.Root]int{}
	w := newWorld(t, func(cfg *Config) {
		cfg.OnImport = func(root wire.Root, _ wire.Slot) {
			mu.Lock()
			defer mu.Unlock()
			order[root]++
		}
	})
	const slots = 200
	w.time.slot(slots)
	type made struct {
		b    *wire.SignedBlock
		root wire.Root
	}
	blocks := make([]made, 0, slots)
	parent := w.genesis
	for s := wire.Slot(1); s <= slots; s++ {
		b, root := w.block(s, parent, 1)
		blocks = append(blocks, made{b, root})
		parent = root
	}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(g, 1))
			for at := 0; at < len(blocks); at++ {
				b := blocks[min(len(blocks)-1, at+rnd.IntN(6))]
				w.tree.AdmitBlock(b.b, b.root)
				w.tree.InsertBlock(b.b, b.root, len(b.root))
				w.tree.InsertBlock(blocks[at].b, blocks[at].root, 0)
			}
		})
		wg.Go(func() {
			for s := range wire.Slot(slots) {
				d := w.tree.AttestationData(s)
				r, _ := w.tree.CheckData(&d)
				require.Contains(t, []wire.Reason{wire.ReasonNone, wire.ReasonBadCheckpoints}, r)
				w.tree.Included(d.Head.Root, wire.DataRoot{})
				w.tree.SyncStatus()
				w.tree.BlockBySlot(s)
			}
		})
	}
	wg.Wait()
	for _, b := range blocks {
		require.Equal(t, 1, order[b.root])
	}
	require.Equal(t, checkpoint(parent, slots), w.tree.Head())
}
