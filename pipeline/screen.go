package pipeline

import (
	"errors"
	"sync/atomic"
	"time"

	"aggnode/wire"
)

// Screen is stage 1: it decodes a payload and asks what can be answered from its
// bytes and from what is known, in a few tens of microseconds and without
// waiting. It returns an item for Submit and no outcome, or the outcome and no
// item. payload is the decompressed message; the item keeps parts of it, so it
// must not be written again.
func (p *Pipeline) Screen(topic wire.Topic, peer string, payload []byte) (it *Item, out Outcome) {
	class := classOf(topic.Kind)
	k := kindOf(class)
	defer func() {
		if v := recover(); v != nil {
			p.logPanic(v)
			it, out = nil, outcomeOf(wire.ReasonInternalError)
			p.screenedOut(class, k, peer, out.Reason)
		}
	}()
	if class == ClassUnknown {
		return nil, outcomeOf(wire.ReasonMalformed) // no topic of ours; in no class, so in no count
	}
	p.metrics.size[class].Observe(float64(len(payload)))
	it = &Item{
		Class: class, Peer: peer, Subnet: topic.Subnet, Arrival: p.clock.Now(),
		Payload: payload, Size: len(payload), kind: k,
	}
	if r := p.screen(it); r != wire.ReasonNone {
		p.screenedOut(class, k, peer, r)

		return nil, outcomeOf(r)
	}

	return it, Outcome{}
}

func kindOf(c Class) kind {
	switch c {
	case ClassUnknown, ClassLocal:
		return kindUnknown
	case ClassBlock:
		return kindBlock
	case ClassAttestation:
		return kindAttestation
	case ClassAggregate:
		return kindAggregate
	}

	return kindUnknown
}

func (p *Pipeline) screen(it *Item) wire.Reason {
	switch it.kind {
	case kindUnknown:
		return wire.ReasonInternalError
	case kindBlock:
		return p.screenBlock(it)
	case kindAttestation:
		return p.screenAttestation(it)
	case kindAggregate:
		return p.screenAggregate(it)
	}

	return wire.ReasonInternalError
}

// screenAttestation, in order: encoding, registry, slot window, subnet, verified vote.
func (p *Pipeline) screenAttestation(it *Item) wire.Reason {
	a, err := p.cfg.Profile.DecodeAttestation(it.Payload)
	if err != nil {
		return decodeReason(err)
	}
	it.Attestation, it.Slot = a, a.Data.Slot
	if uint64(a.ValidatorIndex) >= uint64(p.cfg.Validators) {
		return wire.ReasonUnknownValidator
	}
	if r := p.inWindow(it, attestationSlots); r != wire.ReasonNone {
		return r
	}
	if wire.SubnetOf(a.ValidatorIndex, p.cfg.Committees) != it.Subnet {
		return wire.ReasonWrongSubnet
	}
	it.DataRoot = p.roots.of(&a.Data)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metrics.attestationArrival.observeLocked(it.Arrival.Sub(p.clock.SlotStart(it.Slot).Add(p.interval)), p.interval)

	return p.dedupe.checkAttestation(a.ValidatorIndex, it.Slot, it.DataRoot)
}

// screenAggregate, in order: encoding with at least one participant, registry,
// slot window, verified superset.
func (p *Pipeline) screenAggregate(it *Item) wire.Reason {
	a, err := p.cfg.Profile.DecodeAggregate(it.Payload)
	if err != nil {
		return decodeReason(err)
	}
	it.Aggregate, it.Slot = a, a.Data.Slot
	highest, ok := a.Participants.Highest()
	switch {
	case !ok:
		return wire.ReasonEmptyParticipants
	case uint64(highest) >= uint64(p.cfg.Validators):
		return wire.ReasonUnknownValidator
	}
	if r := p.inWindow(it, aggregateSlots); r != wire.ReasonNone {
		return r
	}
	it.DataRoot = a.Data.HashTreeRoot()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metrics.aggregateArrival.observeLocked(it.Arrival.Sub(p.clock.SlotStart(it.Slot).Add(2*p.interval)), p.interval)

	return p.dedupe.checkAggregate(it.Slot, it.DataRoot, a.Participants)
}

// screenBlock, in order: encoding, not too early. The rest of the admission is
// the head view's.
func (p *Pipeline) screenBlock(it *Item) wire.Reason {
	b, err := p.cfg.Profile.DecodeBlock(it.Payload)
	if err != nil {
		return decodeReason(err)
	}
	it.Block, it.Slot = b, b.Block.Slot
	if it.Slot > p.latestSlot(it.Arrival) {
		if p.cfg.EarlyBlock != nil {
			p.cfg.EarlyBlock(it.Slot)
		}

		return wire.ReasonEarly
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metrics.blockArrival.observeLocked(it.Arrival.Sub(p.clock.SlotStart(it.Slot)), p.interval)

	return wire.ReasonNone
}

// decodeReason returns the reason of a decoding error.
func decodeReason(err error) wire.Reason {
	var d *wire.DecodeError
	if errors.As(err, &d) {
		return d.Reason
	}

	return wire.ReasonMalformed
}

// latestSlot returns the newest slot that may be voted for: from one interval
// before its start. That is data.slot <= (store_time+1)/5 of leanSpec
// fork_choice.py, in slot units, so that no slot number on the wire overflows.
func (p *Pipeline) latestSlot(now time.Time) wire.Slot {
	slot, interval := p.at(now)
	if interval == wire.IntervalsPerSlot-1 {
		slot++
	}

	return slot
}

// inWindow says whether the slot of an item that arrives is within the window of
// its class: not more than one interval ahead, and less than behind slots old.
func (p *Pipeline) inWindow(it *Item, behind wire.Slot) wire.Reason {
	if early := p.genesis.Sub(it.Arrival); early > 0 && (it.Slot > 0 || early > p.interval) {
		return wire.ReasonEarly
	}
	now, _ := p.at(it.Arrival)
	switch {
	case it.Slot > p.latestSlot(it.Arrival):
		return wire.ReasonEarly
	case now >= behind && it.Slot <= now-behind:
		return wire.ReasonStale
	}

	return wire.ReasonNone
}

// screenedOut counts a message that ended before it got into a queue.
func (p *Pipeline) screenedOut(c Class, k kind, peer string, r wire.Reason) {
	p.metrics.received[c].Inc()
	p.metrics.end(c, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.add(c, r)
	if VerdictOf(r) == Reject && c != ClassLocal {
		slot, _ := p.at(p.clock.Now())
		p.peers.record(peer, slot).reject(k)
	}
}

// rootMemo remembers the data root of the vote before: in a slot nearly all agree,
// and a root takes six SHA-256. Safe for concurrent use.
type rootMemo struct {
	last atomic.Pointer[knownRoot]
}

// knownRoot is attestation data and its root. Immutable.
type knownRoot struct {
	data wire.AttestationData
	root wire.DataRoot
}

// of returns the data root.
func (m *rootMemo) of(d *wire.AttestationData) wire.DataRoot {
	if k := m.last.Load(); k != nil && k.data == *d {
		return k.root
	}
	k := &knownRoot{data: *d, root: d.HashTreeRoot()}
	m.last.Store(k)

	return k.root
}
