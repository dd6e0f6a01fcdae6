package pipeline

import (
	"aggnode/wire"
)

// maxPeerRecords bounds the memory of peers. Hosts hold some hundred connections;
// only a sender that changes its identity all the time comes near the bound, and
// all peers beyond it share one record and thereby one fair share.
const maxPeerRecords = 1024

// PeerScore is what a peer delivered in the current and the previous slot.
type PeerScore struct {
	Rejected int // items that were provably wrong, whoever made them
	Verified int // items that verified and that nobody delivered before
}

// counts are the facts of one slot.
type counts struct{ rejected, verified, rejectedAggregates int }

// peerRecord is the memory of one peer. Guarded by Pipeline.mu.
type peerRecord struct {
	id string

	// The window: the slot of the last event and the one before it.
	slot          wire.Slot
	current, last counts

	// What is in the pipeline from this peer. refs counts items that point here.
	refs               int
	queuedBlocks       int
	queuedAttestations int
	queuedAggs         int
	queuedAggBytes     int
	parkedAggs         int
	parkedAggBytes     int
}

// rotate moves the window to a slot. Time does not go backward.
func (r *peerRecord) rotate(slot wire.Slot) {
	switch {
	case slot <= r.slot:
		return
	case slot == r.slot+1:
		r.last = r.current
	default:
		r.last = counts{}
	}
	r.current, r.slot = counts{}, slot
}

// rejected returns the rejects of the window, as of its last rotation.
func (r *peerRecord) rejected() int { return r.current.rejected + r.last.rejected }

// verified returns the first-seen verified items of the window.
func (r *peerRecord) verified() int { return r.current.verified + r.last.verified }

// forgedAggregates tells whether an aggregate of the peer was rejected in the
// window.
func (r *peerRecord) forgedAggregates() bool {
	return r.current.rejectedAggregates+r.last.rejectedAggregates > 0
}

// idle tells whether the record holds nothing.
func (r *peerRecord) idle() bool {
	return r.refs == 0 && r.current == counts{} && r.last == counts{}
}

// peerBook holds the records. Guarded by Pipeline.mu.
type peerBook struct {
	slot    wire.Slot
	records map[string]*peerRecord
	others  *peerRecord // shared by the peers beyond the bound
}

func newPeerBook() peerBook {
	return peerBook{records: make(map[string]*peerRecord), others: &peerRecord{}}
}

// record returns the record of a peer in a slot, made on first sight.
func (b *peerBook) record(id string, slot wire.Slot) *peerRecord {
	b.advance(slot)
	r := b.records[id]
	if r == nil {
		if len(b.records) >= maxPeerRecords {
			r = b.others
		} else {
			r = &peerRecord{id: id, slot: b.slot}
			b.records[id] = r
		}
	}
	r.rotate(b.slot)

	return r
}

// advance moves all windows to a slot and forgets peers of which nothing is
// left. It does work once a slot.
func (b *peerBook) advance(slot wire.Slot) {
	if slot <= b.slot {
		return
	}
	b.slot = slot
	for id, r := range b.records {
		r.rotate(slot)
		if r.idle() {
			delete(b.records, id)
		}
	}
	b.others.rotate(slot)
}

// reject counts a provably wrong item of the record's peer.
func (r *peerRecord) reject(k kind) {
	r.current.rejected++
	if k == kindAggregate {
		r.current.rejectedAggregates++
	}
}

// score returns what is known of a peer, nothing for a stranger.
func (b *peerBook) score(id string, slot wire.Slot) PeerScore {
	b.advance(slot)
	r := b.records[id]
	if r == nil {
		return PeerScore{}
	}

	return PeerScore{Rejected: r.rejected(), Verified: r.verified()}
}
