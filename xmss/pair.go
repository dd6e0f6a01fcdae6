package xmss

import (
	"context"
	"errors"
	"sync"
)

// errBuildPanic is seen by those who wait for a builder that panics; they try themselves.
var errBuildPanic = errors.New("builder panicked")

// pair keeps the two values of a kind that a key used last (the current one and the next one, prepared ahead). A value is built
// once: whoever comes while it is being built waits for it. Safe for concurrent use.
type pair[V any] struct {
	mu    sync.Mutex
	slots [2]*pairEntry[V] // guarded by mu; the one used last comes first
}

// pairEntry belongs to the goroutine that put it there until it closes ready, and is immutable from then on.
type pairEntry[V any] struct {
	key   uint32
	ready chan struct{} // closed, never sent to
	value V
	err   error
}

// get is the value of key, built in this goroutine when it is not there. A builder that fails (its ctx ended) leaves no entry; those
// who waited for it try themselves.
func (p *pair[V]) get(ctx context.Context, key uint32, build func(context.Context) (V, error)) (V, error) {
	for {
		e, mine := p.entry(key)
		if mine {
			p.fill(ctx, e, build)
			return e.value, e.err
		}
		select {
		case <-e.ready: // first alone: a value at hand is given whatever ctx says
		default:
			select {
			case <-e.ready:
			case <-ctx.Done():
				var none V
				return none, ctx.Err()
			}
		}
		if e.err == nil {
			return e.value, nil
		}
	}
}

// fill builds the value of an entry and wakes those who wait for it, also when build panics.
func (p *pair[V]) fill(ctx context.Context, e *pairEntry[V], build func(context.Context) (V, error)) {
	e.err = errBuildPanic
	defer func() {
		if e.err != nil {
			p.drop(e)
		}
		close(e.ready)
	}()
	e.value, e.err = build(ctx)
}

// entry finds the entry of key or puts a new one in the place of the one used longest ago; mine tells the caller to fill it.
func (p *pair[V]) entry(key uint32) (e *pairEntry[V], mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range p.slots {
		if e != nil && e.key == key {
			if i == 1 {
				p.slots[0], p.slots[1] = p.slots[1], p.slots[0]
			}
			return e, false
		}
	}
	e = &pairEntry[V]{key: key, ready: make(chan struct{})}
	p.slots[0], p.slots[1] = e, p.slots[0]
	return e, true
}

func (p *pair[V]) drop(e *pairEntry[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if p.slots[i] == e {
			p.slots[i] = nil
		}
	}
}
