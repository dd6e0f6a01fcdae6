package pipeline

import (
	"context"
	"sync/atomic"
)

// watch is a look-out for the end of a context under which many items wait.
// Gossip hands every message the same one. A select on it by each of hundreds of
// goroutines makes them meet at the lock of its channel: with two cores that was
// half a microsecond a vote. So they wait for their items alone, and one watch
// ends them all.
type watch struct {
	done  <-chan struct{} // of the context; immutable
	armed bool            // whether it looks out; if not, it was seen once; immutable
	over  atomic.Bool     // the context has ended
}

// await returns when an item has its outcome. The end of ctx gives it one.
func (p *Pipeline) await(ctx context.Context, it *Item) {
	if w := p.watchOf(ctx, it); w != nil {
		it.watch.Store(w)
		if w.over.Load() {
			p.giveUp(it) // the watch may have passed by before it could see the item
		}
	} else if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { p.giveUp(it) })
		defer stop()
	}
	it.answered.Wait()
}

// watchOf returns what watches the context of an item, nil when the caller has to
// watch it himself: once for a context that was not seen before, and always for
// our own items, and beside a context that is watched and has not ended. There is
// one watch at a time, so that callers who come with ever new contexts leave
// nothing behind.
func (p *Pipeline) watchOf(ctx context.Context, it *Item) *watch {
	done := ctx.Done()
	if done == nil || it.Class == ClassLocal {
		return nil
	}
	w := p.watch.Load()
	switch {
	case w != nil && w.done == done && w.armed:
		return w
	case w != nil && w.done == done:
		armed := &watch{done: done, armed: true}
		if !p.watch.CompareAndSwap(w, armed) {
			return nil // another caller was faster
		}
		context.AfterFunc(ctx, func() { p.giveUpAll(armed) })

		return armed
	case w == nil || !w.armed || w.over.Load():
		p.watch.CompareAndSwap(w, &watch{done: done})
	}

	return nil
}

// giveUp answers an item whose caller does not wait any longer.
func (p *Pipeline) giveUp(it *Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !it.ended {
		p.lapseLocked(it, p.clock.Now())
	}
}

// giveUpAll answers all items whose callers wait under a context that has ended.
// Each of them has a deadline, for it was queued and has no outcome yet.
func (p *Pipeline) giveUpAll(w *watch) {
	w.over.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	var waiting []*Item
	p.deadlines.each(func(it *Item) {
		if !it.ended && it.watch.Load() == w {
			waiting = append(waiting, it)
		}
	})
	for _, it := range waiting {
		p.lapseLocked(it, now)
	}
}
