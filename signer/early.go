package signer

import (
	"context"
	"sync"
	"sync/atomic"

	"aggnode/wire"
)

// early is searches that were begun before the duty, for the data that its votes will most likely carry. A search uses nothing
// of the one-time position: of two for different data at one position only the one for the data of the duty is ever revealed,
// after the journal has taken it. So a wrong guess costs time that was free and nothing else.
type early struct {
	slot     wire.Slot
	root     wire.DataRoot
	searches map[wire.ValidatorIndex]*earlySearch // immutable
	asked    atomic.Bool                          // the duty goes on from here
	cancel   context.CancelFunc                   // ends searches that nobody needs
}

// earlySearch is one key's, made by whoever comes first and waited for by others.
type earlySearch struct {
	begun atomic.Bool
	done  chan struct{} // closed when found is there
	found search
}

// earlyState is what is begun, for one slot at a time.
type earlyState struct {
	mu    sync.Mutex
	begun *early    // guarded by mu; nil when nothing is
	next  wire.Slot // guarded by mu; the first whose duty has not asked
}

// searchEarly begins the searches for a slot's votes when its block is known, or when the time for the votes has come without
// one, and returns when all are done, the duty has come for them, or ctx has ended.
func (s *Signer) searchEarly(ctx context.Context, slot wire.Slot) {
	epoch, ok := slot.Epoch()
	if !ok || s.clock.WaitUntil(ctx, s.clock.SlotStart(slot)) != nil {
		return
	}
	timer := s.clock.IntervalStart(slot, 1)
	waiting, stop := s.withDeadline(ctx, timer)
	_ = s.data.WaitBlock(waiting, slot) // without one the votes will most likely be for what is known now
	stop()
	if ctx.Err() != nil || s.cfg.Pace != nil && s.cfg.Pace(ctx, timer) != nil {
		return
	}
	ctx, cancel := s.withDeadline(ctx, s.clock.SlotStart(slot+1))
	defer cancel()
	data := s.data.AttestationData(slot)
	e := &early{slot: slot, root: data.HashTreeRoot(), searches: map[wire.ValidatorIndex]*earlySearch{}, cancel: cancel}
	voters := s.voters()
	for _, v := range voters {
		e.searches[v] = &earlySearch{done: make(chan struct{})}
	}
	if !s.offerEarly(e) {
		return
	}
	share(len(voters), s.cfg.Parallel, 1, func(i int) {
		if !e.asked.Load() && ctx.Err() == nil {
			e.search(ctx, s, voters[i], epoch)
		}
	})
}

// offerEarly has e ready for the duty, unless that has come already.
func (s *Signer) offerEarly(e *early) bool {
	s.early.mu.Lock()
	defer s.early.mu.Unlock()
	if e.slot < s.early.next {
		return false
	}
	s.early.begun = e
	return true
}

// takeEarly returns what was begun for the data of a duty, nil where nothing was, and ends what was begun for others.
func (s *Signer) takeEarly(slot wire.Slot, root wire.DataRoot) *early {
	s.early.mu.Lock()
	e := s.early.begun
	s.early.begun, s.early.next = nil, max(s.early.next, slot+1)
	s.early.mu.Unlock()
	switch {
	case e == nil:
		return nil
	case e.slot != slot || e.root != root:
		e.cancel()
		s.metrics.early.WithLabelValues(earlyOther).Inc()
		return nil
	}
	e.asked.Store(true)
	s.metrics.early.WithLabelValues(earlySame).Inc()
	return e
}

// search is a key's search: as whoever came first made it or is making it, or made now.
func (e *early) search(ctx context.Context, s *Signer, v wire.ValidatorIndex, epoch wire.Epoch) search {
	one := e.searches[v]
	if one.begun.CompareAndSwap(false, true) {
		defer close(one.done)
		one.found = s.searchTimed(ctx, s.byIndex[v].attestation, epoch, e.root)
		return one.found
	}
	select {
	case <-one.done:
		return one.found
	case <-ctx.Done():
		return search{err: ctx.Err()}
	}
}

// searchTimed is searchSafely with the time that it took.
func (s *Signer) searchTimed(ctx context.Context, key secretKey, epoch wire.Epoch, root wire.DataRoot) (found search) {
	start := s.clock.Now()
	found.reveal, found.err = s.searchSafely(ctx, key, epoch, root)
	found.took = s.clock.Now().Sub(start)
	return found
}
