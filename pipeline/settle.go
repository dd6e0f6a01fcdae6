package pipeline

import "aggnode/wire"

// settleAttestations records what the signatures proved.
func (p *Pipeline) settleAttestations(asked []*Item, out []wire.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, it := range asked {
		r := out[i]
		if r == wire.ReasonNone {
			r = p.dedupe.markAttestation(it.Attestation.ValidatorIndex, it.Slot, it.DataRoot)
		}
		if r != wire.ReasonNone {
			p.finishLocked(it, r)

			continue
		}
		it.verified = true
		p.creditLocked(it)
	}
}

// parkAttestations parks the verified votes of a batch; false as in enter.
func (p *Pipeline) parkAttestations(batch []*Item, missing wire.Root, imports uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if imports != p.imports.Load() {
		return false
	}
	now := p.clock.Now()
	for _, it := range batch {
		if !it.verified {
			continue // ended already
		}
		if p.stopping {
			p.finishLocked(it, wire.ReasonStopping)
		} else {
			p.parkLocked(it, missing, now)
		}
	}

	return true
}

// parkAgain parks an aggregate of which one block came but not all; false as in
// enter.
func (p *Pipeline) parkAgain(it *Item, missing wire.Root, imports uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case imports != p.imports.Load():
		return false
	case p.stopping:
		p.finishLocked(it, wire.ReasonStopping)
	default:
		p.parkLocked(it, missing, p.clock.Now())
	}

	return true
}

// stillNew tells whether no verified aggregate covers it meanwhile, and ends it
// otherwise.
func (p *Pipeline) stillNew(it *Item) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.dedupe.checkAggregate(it.Slot, it.DataRoot, it.Aggregate.Participants)
	if r != wire.ReasonNone {
		p.finishLocked(it, r)
	}

	return r == wire.ReasonNone
}

// settleAggregate records what the proof showed and returns the reason that the
// aggregate ends with. Waiting aggregates that a good one covers end here.
func (p *Pipeline) settleAggregate(it *Item, r wire.Reason) wire.Reason {
	if r != wire.ReasonNone {
		return r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r = p.dedupe.markAggregate(it.Slot, it.DataRoot, it.Aggregate.Participants); {
	case it.checkOnly:
		r = wire.ReasonNone
	case r != wire.ReasonNone:
		return r
	}
	p.creditLocked(it)
	for i := len(p.queue.aggregates.items) - 1; i >= 0; i-- {
		o := p.queue.aggregates.items[i]
		if o.DataRoot != it.DataRoot {
			continue
		}
		if covered := p.dedupe.checkAggregate(o.Slot, o.DataRoot, o.Aggregate.Participants); covered != wire.ReasonNone {
			p.queue.aggregates.remove(o)
			p.finishLocked(o, covered)
		} else {
			o.gain = p.dedupe.gain(o.Slot, o.DataRoot, o.Aggregate.Participants)
		}
	}

	return r
}

// creditLocked counts a first-seen verified item for the peer that delivered it.
func (p *Pipeline) creditLocked(it *Item) {
	it.peer.rotate(p.slot)
	it.peer.current.verified++
}

// deliver ends items that the pool took. One whose verdict had been given is late:
// the pool has it all the same, and if it was ignored for want of a block, it is
// published again.
func (p *Pipeline) deliver(items ...*Item) {
	var missed []*Item
	p.mu.Lock()
	now := p.clock.Now()
	for _, it := range items {
		if it.ended {
			p.metrics.late[it.Class].Inc()
			p.note("late", it)
			if it.outcome.Reason == wire.ReasonUnknownHead && it.Class != ClassLocal && now.Before(it.useful) {
				missed = append(missed, it)
			}
		}
		p.finishAtLocked(it, wire.ReasonNone, now)
	}
	p.mu.Unlock()
	if p.cfg.Republish == nil {
		return
	}
	for _, it := range missed {
		p.metrics.republished.Inc()
		p.cfg.Republish(it)
	}
}

// withdraw ends a verified vote that goes nowhere, and takes its mark back.
func (p *Pipeline) withdraw(it *Item, r wire.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dedupe.forgetAttestation(it.Attestation.ValidatorIndex, it.Slot)
	p.finishLocked(it, r)
}
