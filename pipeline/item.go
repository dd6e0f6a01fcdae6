package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"aggnode/wire"
)

// Item is one message on its way through the pipeline. Screen makes the inbound
// ones; for SubmitLocal the caller fills in one of Attestation, Aggregate and
// Block and nothing else. An item is submitted once. Its exported fields, and
// what they point to, are immutable once it is enqueued.
type Item struct {
	Class Class
	Slot  wire.Slot
	// Peer is the peer that delivered it, opaque bytes; "" is ourselves.
	Peer string
	// Subnet is that of the topic, for votes.
	Subnet wire.SubnetID
	// Arrival is when the bytes were screened.
	Arrival time.Time
	// One of these is set.
	Attestation *wire.SignedAttestation
	Aggregate   *wire.SignedAggregate
	Block       *wire.SignedBlock
	// DataRoot is the signed message of votes and aggregates.
	DataRoot wire.DataRoot
	// Payload is the SSZ encoding as received. It may be nil for local votes and
	// aggregates.
	Payload []byte
	// Size is the length of the payload in bytes.
	Size int

	kind      kind
	checkOnly bool       // self-check of a proof: no sink
	enqueued  bool       // by the goroutine of Screen
	submitted bool       // by its one caller
	span      trace.Span // nil: not traced

	answered sync.WaitGroup        // holds its caller until the outcome is there
	watch    atomic.Pointer[watch] // what ends the caller's wait with its context; nil: the caller does

	// immutable once submitted
	seq      uint64
	screened time.Duration // from arrival until it was enqueued: the time of stage 1
	answer   time.Time     // when the verdict is due
	useful   time.Time     // when the content is of no use any more
	peer     *peerRecord
	surplus  bool // not the peer's first queued candidate for its (validator, slot)

	// guarded by Pipeline.mu
	state    state
	owner    *worker // of a running item
	ended    bool
	outcome  Outcome
	heapAt   int // position in the deadline heap plus one, 0 = not in it
	links    [3]link
	gain     int       // participants that no verified aggregate of the data root has
	missing  wire.Root // the block that a parked item waits for
	verified bool      // vote: signature checked and marked
	unplaced bool      // aggregate: checkpoints to be checked again before the proof
}

// state is where an item is.
type state uint8

const (
	stateNew      state = iota // not submitted
	stateQueued                // in the queue of its class
	stateLate                  // vote: in the queue, its verdict was given, still of use to the pool
	stateRunning               // on a worker
	stateParked                // waits for a block
	stateReleased              // vote: verified, its block came
	stateGone                  // left the pipeline
)

// String returns the name of the state for tests and panics.
func (s state) String() string {
	switch s {
	case stateNew:
		return "new"
	case stateQueued:
		return "queued"
	case stateLate:
		return "late"
	case stateRunning:
		return "running"
	case stateParked:
		return "parked"
	case stateReleased:
		return "released"
	case stateGone:
		return "gone"
	}

	return "invalid"
}

// content returns what the item carries, kindUnknown unless it is exactly one
// thing.
func (it *Item) content() kind {
	k, n := kindUnknown, 0
	if it.Block != nil {
		k, n = kindBlock, n+1
	}
	if it.Attestation != nil {
		k, n = kindAttestation, n+1
	}
	if it.Aggregate != nil {
		k, n = kindAggregate, n+1
	}
	if n != 1 {
		return kindUnknown
	}

	return k
}

// data returns the attestation data of a vote or an aggregate.
func (it *Item) data() *wire.AttestationData {
	if it.Aggregate != nil {
		return &it.Aggregate.Data
	}

	return &it.Attestation.Data
}

// isNested tells whether one of two aggregates over the same data covers the
// other.
func (it *Item) isNested(o *Item) bool {
	a, b := it.Aggregate.Participants, o.Aggregate.Participants

	return it.DataRoot == o.DataRoot && (a.IsSubsetOf(b) || b.IsSubsetOf(a))
}

// link is the place of an item in one list.
type link struct{ prev, next *Item }

// The lists that a queued item can be in at once.
const (
	byOrder = iota // FIFO of its class, slot or park
	byRoot         // votes of one slot with the same data root
	byPeer         // votes of one slot from the same peer
)

// list is an intrusive FIFO of items: no allocation, removal from the middle.
type list struct {
	by         uint8 // which link of the items
	head, tail *Item
	n          int
}

// push appends an item.
func (l *list) push(it *Item) {
	it.links[l.by] = link{prev: l.tail}
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.links[l.by].next = it
	}
	l.tail = it
	l.n++
}

// remove takes an item that is in the list out of it.
func (l *list) remove(it *Item) {
	at := it.links[l.by]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	it.links[l.by] = link{}
	l.n--
}

// pop removes and returns the first item, nil when there is none.
func (l *list) pop() *Item {
	it := l.head
	if it != nil {
		l.remove(it)
	}

	return it
}

// next returns the item behind it.
func (l *list) next(it *Item) *Item { return it.links[l.by].next }
