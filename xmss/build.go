package xmss

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// trialsPerCheck is the number of trials of a search between two looks at ctx: 0.2 to 2 ms.
const trialsPerCheck = 4096

// leavesPerCheck is the number of leaves made between two looks at ctx: a multiple of what the lanes take, 0.1 to 2 ms.
const leavesPerCheck = 32

// buildSubtree computes subtree q (the leaves below node q of level 9) of a tree whose real leaves are lo..hi. It looks at ctx
// every leavesPerCheck leaves.
func buildSubtree(ctx context.Context, hash treeHasher, q, lo, hi uint32) (*section, error) {
	first, last := q<<subtreeHeight, q<<subtreeHeight|(1<<subtreeHeight-1)
	first, last = max(first, lo), min(last, hi)
	leaves := make([]node, last-first+1)
	for done := 0; done < len(leaves); done += leavesPerCheck {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hash.leaves(first+uint32(done), leaves[done:min(done+leavesPerCheck, len(leaves))])
	}
	return newSection(hash, 0, subtreeHeight, first, leaves), nil
}

// rowBuilder computes level-9 rows on several workers and counts subtrees for the caller's progress.
type rowBuilder struct {
	workers  int
	progress func(done, total int)
	total    int

	mu   sync.Mutex
	done int // guarded by mu
}

func newRowBuilder(opts GenerateOptions, total int) *rowBuilder {
	b := &rowBuilder{workers: opts.Workers, progress: opts.Progress, total: total}
	if b.workers <= 0 {
		b.workers = runtime.GOMAXPROCS(0)
	}
	return b
}

// row computes the real nodes of level 9 of a tree whose real leaves are lo..hi.
func (b *rowBuilder) row(ctx context.Context, hash treeHasher, lo, hi uint32) ([]node, error) {
	first := lo >> subtreeHeight
	row := make([]node, hi>>subtreeHeight-first+1)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(b.workers)
	for i := range row {
		g.Go(func() error { // after ctx has ended, each returns before its first leaf
			s, err := buildSubtree(ctx, hash, first+uint32(i), lo, hi)
			if err != nil {
				return err
			}
			row[i] = s.top()
			b.count()
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return row, nil
}

// count reports one more subtree. The calls to progress follow one another, so a slow one holds up the workers.
func (b *rowBuilder) count() {
	if b.progress == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.progress(b.done, b.total)
}
