package api

import (
	"strconv"
	"sync"
	"time"

	"aggnode/wire"
)

const (
	// aggregateLogSize is the number of aggregates that AggregateLog remembers: at some ten aggregates a slot, minutes. An
	// entry without its proof is at most about 1 KiB.
	aggregateLogSize = 1024
	// maxKeptProofBytes bounds the proofs that are kept for download, newest first: some 40 of lean-pq.
	maxKeptProofBytes = 8 << 20
)

// Source tells where an aggregate came from.
type Source uint8

// The sources.
const (
	SourceUnknown Source = iota
	SourceOwn            // proved and published by this node
	SourceGossip         // verified on arrival
)

// String returns the JSON value.
func (s Source) String() string {
	switch s {
	case SourceOwn:
		return "own"
	case SourceGossip:
		return "gossip"
	case SourceUnknown:
	}
	return "unknown"
}

// Aggregate is one aggregate that this node published or verified. Immutable once added.
type Aggregate struct {
	Slot         wire.Slot
	DataRoot     wire.DataRoot
	Participants wire.Participants
	Proof        []byte // let go when newer ones need the room
	Source       Source
	// At is the time from the start of Slot to the publication (own) or the verdict (gossip).
	At time.Duration
	// Check is the time from arrival to verdict, queue included; zero for own ones.
	Check time.Duration
	// Peers is the number of peers that an own aggregate was sent to.
	Peers int

	proofBytes int // length of Proof, known after it is gone
}

// AggregateLog is a ring of the latest aggregates, numbered so that a reader that comes back misses none unnoticed. Safe
// for concurrent use.
type AggregateLog struct {
	mu    sync.Mutex
	ring  []Aggregate // guarded by mu; entry of number n at n % aggregateLogSize
	added uint64      // guarded by mu; the number of the next entry
	// guarded by mu: proofs of entries before firstProof are gone, the others hold keptBytes
	firstProof uint64
	keptBytes  int
}

// NewAggregateLog makes an empty log.
func NewAggregateLog() *AggregateLog {
	return &AggregateLog{ring: make([]Aggregate, aggregateLogSize)}
}

// Add appends an aggregate; the oldest one falls out when the log is full.
func (l *AggregateLog) Add(a Aggregate) {
	a.proofBytes = len(a.Proof)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keptBytes += a.proofBytes
	for l.keptBytes > maxKeptProofBytes || l.added-l.firstProof >= aggregateLogSize {
		if l.firstProof == l.added {
			a.Proof, l.keptBytes = nil, 0 // longer than the whole room: no proof of a network is
			break
		}
		oldest := &l.ring[l.firstProof%aggregateLogSize]
		l.keptBytes -= len(oldest.Proof)
		oldest.Proof = nil
		l.firstProof++
	}
	l.ring[l.added%aggregateLogSize] = a
	l.added++
}

// proof returns the bytes of the proof of entry n, nil when it is unknown or was let go.
func (l *AggregateLog) proof(n uint64) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= l.added || n < l.firstProof {
		return nil
	}
	return l.ring[n%aggregateLogSize].Proof
}

// page is a piece of the log.
type page struct {
	first   uint64 // number of entries[0]
	entries []Aggregate
	lost    uint64 // entries from the wanted number on that have fallen out
	more    bool   // there are entries after these
}

// since returns entries from number from on, oldest first: at most limit entries, and no more than until they have
// participants participants together (but at least one entry).
func (l *AggregateLog) since(from uint64, limit, participants int) page {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := min(from, l.added)
	var p page
	if oldest := l.added - min(l.added, aggregateLogSize); first < oldest {
		p.lost = oldest - first
		first = oldest
	}
	p.first = first
	for n := first; n < l.added; n++ {
		a := l.ring[n%aggregateLogSize]
		participants -= a.Participants.Count()
		if len(p.entries) >= limit || participants < 0 && len(p.entries) > 0 {
			p.more = true
			break
		}
		p.entries = append(p.entries, a)
	}
	return p
}

// latest returns the number from which the last n entries start.
func (l *AggregateLog) latest(n int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.added - min(l.added, uint64(n))
}

// appendJSON writes the page. It is written by hand because the encoder would take milliseconds for the indices.
func (p *page) appendJSON(b []byte) []byte {
	b = append(b, `{"next":`...)
	b = strconv.AppendUint(b, p.first+uint64(len(p.entries)), 10)
	b = append(b, `,"lost":`...)
	b = strconv.AppendUint(b, p.lost, 10)
	b = append(b, `,"more":`...)
	b = strconv.AppendBool(b, p.more)
	b = append(b, `,"aggregates":[`...)
	for i := range p.entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.entries[i].appendJSON(b, p.first+uint64(i))
	}
	return append(b, "]}\n"...)
}

func (a *Aggregate) appendJSON(b []byte, seq uint64) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, `,"slot":`...)
	b = strconv.AppendUint(b, uint64(a.Slot), 10)
	b = append(b, `,"data_root":"`...)
	b = append(b, a.DataRoot.String()...)
	b = append(b, `","participants":`...)
	b = strconv.AppendInt(b, int64(a.Participants.Count()), 10)
	b = append(b, `,"indices":[`...)
	first := true
	a.Participants.ForEach(func(v wire.ValidatorIndex) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = strconv.AppendUint(b, uint64(v), 10)
	})
	b = append(b, `],"proof_bytes":`...)
	b = strconv.AppendInt(b, int64(a.proofBytes), 10)
	b = append(b, `,"source":"`...)
	b = append(b, a.Source.String()...)
	b = append(b, `","at_ms":`...)
	b = appendMS(b, a.At)
	b = append(b, `,"check_ms":`...)
	b = appendMS(b, a.Check)
	b = append(b, `,"peers":`...)
	b = strconv.AppendInt(b, int64(a.Peers), 10)
	return append(b, '}')
}

// appendMS writes milliseconds with three decimals.
func appendMS(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, float64(d.Microseconds())/1e3, 'f', 3, 64)
}
