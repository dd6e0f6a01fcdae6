package pipeline

import (
	"slices"

	"aggnode/wire"
)

// parking holds what waits for an unknown block, by the root of that block: votes
// with a good signature, hence at most one a validator and slot, and aggregates
// that nobody has checked, hence few. Nothing in it is looked at again before its
// block comes. Guarded by Pipeline.mu.
type parking struct {
	bound        int // votes
	attestations int
	heads        []*parkedHead // in order of appearance, none empty
	aggregates   []*Item       // in order of parking
	bytes        int           // of aggregates
}

// parkedHead are the votes that wait for one block.
type parkedHead struct {
	root         wire.Root
	attestations list
}

func newParking(limits Limits) parking { return parking{bound: limits.ParkedAttestations} }

// parkAttestation parks a verified vote. When there is no room, or too many heads, a
// vote for the head with the fewest goes: the returned one, which is out already,
// or the newcomer, which then was not parked. Among equals the oldest head loses,
// so that votes for a handful of dead heads can not keep the next head out.
func (p *parking) parkAttestation(it *Item, missing wire.Root) (victims []*Item) {
	i := p.find(missing)
	switch {
	case i < 0 && len(p.heads) >= maxParkedHeads:
		victims = p.evict(p.fewest(-1), 0)
	case p.attestations >= p.bound:
		least := p.fewest(i)
		own := 1
		if i >= 0 {
			own += p.heads[i].attestations.n
		}
		if least < 0 || own < p.heads[least].attestations.n {
			return []*Item{it}
		}
		victims = p.evict(least, p.heads[least].attestations.n-1)
	}
	if i = p.find(missing); i < 0 { // evict may have moved it
		p.heads = append(p.heads, &parkedHead{root: missing, attestations: list{by: byOrder}})
		i = len(p.heads) - 1
	}
	it.state, it.missing = stateParked, missing
	p.heads[i].attestations.push(it)
	p.attestations++

	return victims
}

// find returns the place of a head, -1 when nothing waits for it.
func (p *parking) find(root wire.Root) int {
	return slices.IndexFunc(p.heads, func(h *parkedHead) bool { return h.root == root })
}

// fewest returns the place of the head with the fewest votes, that at except
// aside; -1 when there is none.
func (p *parking) fewest(except int) int {
	least := -1
	for i, h := range p.heads {
		if i != except && (least < 0 || h.attestations.n < p.heads[least].attestations.n) {
			least = i
		}
	}

	return least
}

// evict removes the newest votes of a head until keep are left.
func (p *parking) evict(i, keep int) (out []*Item) {
	h := p.heads[i]
	for h.attestations.n > keep {
		it := h.attestations.tail
		p.remove(it)
		out = append(out, it)
	}

	return out
}

// parkAggregate parks an unchecked aggregate. The items that have to go are
// appended to victims, as in aggregateQueue.push: the newest of the peer with
// the most bytes, and a third one of a peer at once.
func (p *parking) parkAggregate(it *Item, missing wire.Root, victims []*Item) []*Item {
	if it.peer.parkedAggs >= parkedAggregatesPerPeer {
		return append(victims, it)
	}
	for len(p.aggregates) >= parkedAggregateBound || p.bytes+it.Size > parkedAggregateBytes {
		victim, most := it, it.peer.parkedAggBytes+it.Size
		for _, o := range p.aggregates {
			if n := o.peer.parkedAggBytes; o.peer != it.peer && (n > most || n == most && victim != it) {
				victim, most = o, n
			}
		}
		victims = append(victims, victim)
		if victim == it {
			return victims
		}
		p.remove(victim)
	}
	it.state, it.missing = stateParked, missing
	p.aggregates = append(p.aggregates, it)
	p.bytes += it.Size
	it.peer.parkedAggs++
	it.peer.parkedAggBytes += it.Size

	return victims
}

// remove takes a parked item out.
func (p *parking) remove(it *Item) {
	if it.kind == kindAggregate {
		i := slices.Index(p.aggregates, it)
		p.aggregates = slices.Delete(p.aggregates, i, i+1)
		p.bytes -= it.Size
		it.peer.parkedAggs--
		it.peer.parkedAggBytes -= it.Size

		return
	}
	i := p.find(it.missing)
	h := p.heads[i]
	h.attestations.remove(it)
	p.attestations--
	if h.attestations.n == 0 {
		p.heads = slices.Delete(p.heads, i, i+1)
	}
}

// release removes and returns all that waits for a block, votes first, each in
// order of parking.
func (p *parking) release(root wire.Root) (out []*Item) {
	if i := p.find(root); i >= 0 {
		for n := p.heads[i].attestations.n; n > 0; n-- {
			it := p.heads[i].attestations.head
			p.remove(it)
			out = append(out, it)
		}
	}
	for _, it := range slices.Clone(p.aggregates) {
		if it.missing == root {
			p.remove(it)
			out = append(out, it)
		}
	}

	return out
}

// each calls f for each parked item. f must not change the park.
func (p *parking) each(f func(*Item)) {
	for _, h := range p.heads {
		for it := h.attestations.head; it != nil; it = h.attestations.next(it) {
			f(it)
		}
	}
	for _, it := range p.aggregates {
		f(it)
	}
}
