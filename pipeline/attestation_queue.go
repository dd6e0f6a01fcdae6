package pipeline

import (
	"cmp"
	"slices"

	"aggnode/wire"
)

// attestationQueue holds inbound votes. Order out: newest slot first, and FIFO inside a
// slot. Not LIFO: an aggregator wants all votes of a slot before it plans, they
// are worth the same, and LIFO would push the first arrivals past their verdict.
// A slot that has not begun ranks as the current one, for nobody honest votes in
// it and its votes must not go before, or displace, real ones. Guarded by
// Pipeline.mu.
type attestationQueue struct {
	bound      int
	n          int
	current    wire.Slot
	validators int
	slots      []*slotAttestations // newest first, none empty
	late       list                // votes past their verdict; of use to the pool alone, so served last and first to go
	spare      spares
}

// spares are empty containers for the next use: most of the time the queue is
// empty when a vote comes, which should not cost five allocations.
type spares struct {
	slots []*slotAttestations
	peers []*peerAttestations
	roots []*list
}

// maxSpares is the number of containers of a kind that are kept: more than the
// peers of a mesh, few enough to be no memory to speak of.
const maxSpares = 16

// slotAttestations are the waiting votes of one slot.
type slotAttestations struct {
	slot  wire.Slot
	order list                    // all of them
	roots map[wire.DataRoot]*list // the same by data root
	peers []*peerAttestations     // the same by peer, in order of appearance
}

// peerAttestations are the waiting votes of one slot from one peer. A peer holds a place
// of its own for one candidate per validator. Further ones are surplus: neighbours
// forward before they check, so the real vote may well come second and through
// the same peer as a forgery, but a surplus vote is what its peer loses first.
type peerAttestations struct {
	peer       *peerRecord
	firsts     list
	surplus    list
	candidates []uint64 // bit per validator: has a vote in firsts
}

func newAttestationQueue(bound, validators int) attestationQueue {
	return attestationQueue{bound: bound, validators: validators, late: list{by: byOrder}}
}

// rank returns the slot that counts for order.
func (q *attestationQueue) rank(s wire.Slot) wire.Slot { return min(s, q.current) }

// push queues a vote. When there is no room, the returned item goes: an item of
// the queue that is out of it already, or it itself, which then was not queued.
func (q *attestationQueue) push(it *Item) (victim *Item) {
	if q.n >= q.bound {
		victim = q.victim(it)
		if victim == it {
			return it
		}
		q.remove(victim)
	}
	it.state = stateQueued
	q.n++
	it.peer.queuedAttestations++
	s := q.slot(it.Slot)
	s.order.push(it)
	q.root(s, it.DataRoot).push(it)
	q.from(s, it.peer).push(it)

	return victim
}

// remove takes a waiting vote out.
func (q *attestationQueue) remove(it *Item) {
	q.n--
	it.peer.queuedAttestations--
	if it.state == stateLate {
		q.late.remove(it)

		return
	}
	i := slices.IndexFunc(q.slots, func(s *slotAttestations) bool { return s.slot == it.Slot })
	s := q.slots[i]
	s.order.remove(it)
	l := s.roots[it.DataRoot]
	l.remove(it)
	if l.n == 0 {
		delete(s.roots, it.DataRoot)
		q.spare.roots = keep(q.spare.roots, l)
	}
	q.leave(s, it)
	if s.order.n == 0 {
		q.slots = slices.Delete(q.slots, i, i+1)
		q.spare.slots = keep(q.spare.slots, s)
	}
}

// keep adds an empty container to the spare ones, unless there are enough.
func keep[T any](spare []*T, c *T) []*T {
	if len(spare) == maxSpares {
		return spare
	}

	return append(spare, c)
}

// reuse takes a spare container out, nil when there is none.
func reuse[T any](spare *[]*T) *T {
	n := len(*spare)
	if n == 0 {
		return nil
	}
	c := (*spare)[n-1]
	*spare = (*spare)[:n-1]

	return c
}

// lapse moves a waiting vote, whose verdict was given, behind all others.
func (q *attestationQueue) lapse(it *Item) {
	q.remove(it)
	q.n++
	it.peer.queuedAttestations++
	it.state = stateLate
	q.late.push(it)
}

// take removes the next vote and, up to maxBatch, those over the same data that
// wait in its slot, and appends them to dst.
func (q *attestationQueue) take(dst []*Item) []*Item {
	head := q.first()
	if head == nil {
		if it := q.late.head; it != nil {
			q.remove(it)

			return append(dst, it)
		}

		return dst
	}
	i := slices.IndexFunc(q.slots, func(s *slotAttestations) bool { return s.slot == head.Slot })
	same := q.slots[i].roots[head.DataRoot]
	for n := min(same.n, maxBatch); n > 0; n-- {
		it := same.head
		q.remove(it)
		dst = append(dst, it)
	}

	return dst
}

// first returns the vote that is next, late ones aside.
func (q *attestationQueue) first() *Item {
	var first *Item
	for _, s := range q.slots {
		if first != nil && q.rank(s.slot) < q.rank(first.Slot) {
			break
		}
		if first == nil || s.order.head.seq < first.seq {
			first = s.order.head
		}
	}

	return first
}

// victim returns the vote that goes when newcomer comes: a late one, else one of
// the oldest slot, of the peer with the most rejects, of those with the most
// queued beyond what it verified. Of that peer goes the oldest surplus vote, which
// is the likeliest forgery, and without one the newest.
func (q *attestationQueue) victim(newcomer *Item) *Item {
	if q.late.head != nil {
		return q.late.head
	}
	oldest := q.rank(newcomer.Slot)
	for _, s := range q.slots {
		oldest = min(oldest, q.rank(s.slot))
	}
	w := weakest{newcomer: newcomer.peer}
	if q.rank(newcomer.Slot) == oldest {
		w.offer(newcomer.peer, newcomer.seq)
	}
	for _, s := range q.slots {
		if q.rank(s.slot) == oldest {
			for _, p := range s.peers {
				w.offer(p.peer, p.newest())
			}
		}
	}
	var surplus, newest *Item
	for _, s := range q.slots {
		if q.rank(s.slot) != oldest {
			continue
		}
		p := s.find(w.peer)
		if p == nil {
			continue
		}
		if it := p.surplus.head; it != nil && (surplus == nil || it.seq < surplus.seq) {
			surplus = it
		}
		if it := p.firsts.tail; it != nil && (newest == nil || it.seq > newest.seq) {
			newest = it
		}
	}
	switch {
	case surplus != nil:
		return surplus
	case w.peer == newcomer.peer && q.rank(newcomer.Slot) == oldest:
		return newcomer
	default:
		return newest
	}
}

// weakest finds the peer that loses a vote. The newcomer counts as queued.
type weakest struct {
	newcomer         *peerRecord
	peer             *peerRecord
	rejected, excess int
	newest           uint64
}

// offer puts a peer up, with the number of its newest vote: among equals the one
// that came last loses.
func (w *weakest) offer(p *peerRecord, newest uint64) {
	rejected, excess := p.rejected(), p.queuedAttestations-p.verified()
	if p == w.newcomer {
		excess++
	}
	order := cmp.Or(cmp.Compare(rejected, w.rejected), cmp.Compare(excess, w.excess), cmp.Compare(newest, w.newest))
	if w.peer == nil || order > 0 {
		w.peer, w.rejected, w.excess, w.newest = p, rejected, excess, newest
	}
}

// newest returns the number of the newest vote; there is one.
func (p *peerAttestations) newest() (seq uint64) {
	for _, it := range [2]*Item{p.firsts.tail, p.surplus.tail} {
		if it != nil {
			seq = max(seq, it.seq)
		}
	}

	return seq
}

// slot returns the votes of a slot, made in its place when there are none.
func (q *attestationQueue) slot(slot wire.Slot) *slotAttestations {
	i := 0
	for ; i < len(q.slots) && q.slots[i].slot >= slot; i++ {
		if q.slots[i].slot == slot {
			return q.slots[i]
		}
	}
	s := reuse(&q.spare.slots)
	if s == nil {
		s = &slotAttestations{order: list{by: byOrder}, roots: make(map[wire.DataRoot]*list)}
	}
	s.slot = slot
	q.slots = slices.Insert(q.slots, i, s)

	return s
}

// root returns the list of a data root in a slot.
func (q *attestationQueue) root(s *slotAttestations, root wire.DataRoot) *list {
	l := s.roots[root]
	if l == nil {
		if l = reuse(&q.spare.roots); l == nil {
			l = &list{by: byRoot}
		}
		s.roots[root] = l
	}

	return l
}

// find returns the votes of a peer, nil when there are none.
func (s *slotAttestations) find(peer *peerRecord) *peerAttestations {
	for _, p := range s.peers {
		if p.peer == peer {
			return p
		}
	}

	return nil
}

// from returns the votes of a peer in a slot.
func (q *attestationQueue) from(s *slotAttestations, peer *peerRecord) *peerAttestations {
	p := s.find(peer)
	if p == nil {
		if p = reuse(&q.spare.peers); p == nil {
			p = &peerAttestations{
				firsts: list{by: byPeer}, surplus: list{by: byPeer},
				candidates: make([]uint64, (q.validators+63)/64),
			}
		}
		p.peer = peer
		s.peers = append(s.peers, p)
	}

	return p
}

// push adds a vote of the peer.
func (p *peerAttestations) push(it *Item) {
	v := it.Attestation.ValidatorIndex
	word, bit := &p.candidates[v/64], uint64(1)<<(v%64)
	if *word&bit != 0 {
		it.surplus = true
		p.surplus.push(it)

		return
	}
	it.surplus = false
	*word |= bit
	p.firsts.push(it)
}

// leave takes a vote out of the lists of its peer.
func (q *attestationQueue) leave(s *slotAttestations, it *Item) {
	i := slices.IndexFunc(s.peers, func(p *peerAttestations) bool { return p.peer == it.peer })
	p := s.peers[i]
	if it.surplus {
		p.surplus.remove(it)
	} else {
		p.firsts.remove(it)
		v := it.Attestation.ValidatorIndex
		p.candidates[v/64] &^= 1 << (v % 64)
	}
	if p.firsts.n+p.surplus.n == 0 {
		s.peers = slices.Delete(s.peers, i, i+1)
		p.peer = nil
		q.spare.peers = keep(q.spare.peers, p)
	}
}
