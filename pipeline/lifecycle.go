package pipeline

import (
	"time"

	"aggnode/wire"
)

// pushLocked puts an item into the queue of its class and ends those that have to
// make room.
func (p *Pipeline) pushLocked(it *Item) {
	var one [1]*Item
	victims := one[:0]
	add := func(v *Item) {
		if v != nil {
			victims = append(victims, v)
		}
	}
	switch {
	case it.Class == ClassLocal:
		add(p.queue.local.push(it))
	case it.kind == kindBlock:
		add(p.queue.blocks.push(it))
	case it.kind == kindAttestation:
		add(p.queue.attestations.push(it))
	case it.kind == kindAggregate:
		it.gain = p.dedupe.gain(it.Slot, it.DataRoot, it.Aggregate.Participants)
		victims = p.queue.aggregates.push(it, p.queue.busy >= p.limits.Workers, victims)
	}
	p.displaceLocked(it, victims)
	if it.state == stateQueued {
		p.note("queue", it)
	}
}

// displaceLocked ends the items that made room for another, or that other itself.
func (p *Pipeline) displaceLocked(newcomer *Item, victims []*Item) {
	for _, v := range victims {
		if v.kind == kindAttestation && v.verified {
			// The park forgets it, so it must not be in the way of another copy.
			p.dedupe.forgetAttestation(v.Attestation.ValidatorIndex, v.Slot)
		}
		if v == newcomer {
			p.finishLocked(v, wire.ReasonQueueFull)
		} else {
			p.finishLocked(v, wire.ReasonEvicted)
		}
	}
}

// parkLocked parks an item until a block comes.
func (p *Pipeline) parkLocked(it *Item, missing wire.Root, now time.Time) {
	forward := earliest(now.Add(p.interval), it.answer)
	if it.ended {
		forward = p.poolUntil(it)
	}
	if !now.Before(forward) {
		p.finishLocked(it, wire.ReasonUnknownHead)

		return
	}
	var victims []*Item
	if it.kind == kindAttestation {
		victims = p.park.parkAttestation(it, missing)
	} else {
		victims = p.park.parkAggregate(it, missing, nil)
	}
	if it.state == stateParked {
		p.setDueLocked(it, forward)
		p.note("park", it)
	}
	p.displaceLocked(it, victims)
}

// poolUntil returns how long a parked item is kept for the pool.
func (p *Pipeline) poolUntil(it *Item) time.Time {
	return earliest(p.clock.SlotStart(it.Slot+attestationSlots), it.useful)
}

// lapseLocked does what follows when the deadline of an item has come: it gets
// its verdict, and stays where it is as long as the pool can still use it.
func (p *Pipeline) lapseLocked(it *Item, now time.Time) {
	r := wire.ReasonExpired
	if p.stopping {
		r = wire.ReasonStopping
	}
	switch it.state {
	case stateQueued:
		if it.Class == ClassAttestation && now.Before(it.useful) {
			p.queue.attestations.lapse(it)
			p.endLocked(it, r, now)
			p.setDueLocked(it, it.useful)

			return
		}
		p.queue.remove(it)
	case stateReleased:
		if !it.ended && now.Before(it.useful) {
			p.endLocked(it, r, now)
			p.setDueLocked(it, it.useful)

			return
		}
		p.queue.remove(it)
	case stateParked:
		r = wire.ReasonUnknownHead
		if until := p.poolUntil(it); !it.ended && now.Before(until) {
			p.endLocked(it, r, now)
			p.setDueLocked(it, until)

			return
		}
		p.park.remove(it)
	case stateLate:
		p.queue.remove(it)
	case stateRunning:
		p.endLocked(it, r, now) // what the worker finds still feeds the pool

		return
	case stateNew, stateGone:
		p.endLocked(it, r, now)

		return
	}
	p.finishLocked(it, r)
}

// endLocked gives an item its outcome, once.
func (p *Pipeline) endLocked(it *Item, r wire.Reason, now time.Time) {
	if it.ended {
		return
	}
	if p.stopping && (r == wire.ReasonVerifierUnavailable || r == wire.ReasonPoolFull) {
		r = wire.ReasonStopping // the context of the call ended, nothing else is wrong
	}
	it.ended, it.outcome = true, outcomeOf(r)
	p.inFlight[it.Class]--
	p.tally.add(it.Class, r)
	p.metrics.end(it.Class, r)
	p.metrics.verdictTime[it.Class].observeLocked(now.Sub(it.Arrival))
	p.note("end", it)
	it.answered.Done()
}

// goneLocked forgets an item that is in no queue and on no worker any more.
func (p *Pipeline) goneLocked(it *Item) {
	p.deadlines.drop(it)
	if it.state != stateGone {
		it.state = stateGone
		it.peer.refs--
	}
}

// finishLocked ends an item that goes nowhere from here.
func (p *Pipeline) finishLocked(it *Item, r wire.Reason) { p.finishAtLocked(it, r, p.clock.Now()) }

// finishAtLocked is finishLocked where the time is known.
func (p *Pipeline) finishAtLocked(it *Item, r wire.Reason, now time.Time) {
	if VerdictOf(r) == Reject {
		p.blameLocked(it)
	}
	p.endLocked(it, r, now)
	p.goneLocked(it)
}

// blameLocked counts a provable fault for the peer that delivered it.
func (p *Pipeline) blameLocked(it *Item) {
	it.peer.rotate(p.slot)
	it.peer.reject(it.kind)
}
