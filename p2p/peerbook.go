package p2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// fault is a breach of a protocol by the peer itself, not by what it relays.
type fault uint8

const (
	faultUnknown fault = iota
	faultFraming       // a request or response that is not what the protocol says
	faultLimit         // more requests than allowed
	faultStalled       // a stream that stood still until its deadline
	faultGossip        // a gossip frame that is broken, or carries what StrictNoSign forbids
	faultEnd
)

// String returns the label value.
func (f fault) String() string {
	switch f {
	case faultUnknown:
		return "unknown"
	case faultFraming:
		return "framing"
	case faultLimit:
		return "limit"
	case faultStalled:
		return "stalled"
	case faultGossip:
		return "gossip"
	case faultEnd:
	}

	return "invalid"
}

// faults returns all faults.
func faults() []fault {
	var all []fault
	for f := faultUnknown + 1; f < faultEnd; f++ {
		all = append(all, f)
	}

	return all
}

// cause is why this node disconnected a peer.
type cause uint8

const (
	causeUnknown cause = iota
	causeRejects       // rejected content and nothing verified, in two slots
	causeFaults        // too many faults in two slots
	causeSlow          // its send queue stayed full
	causeDeaf          // refuses identify and accepts no further stream
	causeEnd
)

// String returns the label value.
func (c cause) String() string {
	switch c {
	case causeUnknown:
		return "unknown"
	case causeRejects:
		return "rejects"
	case causeFaults:
		return "faults"
	case causeSlow:
		return "slow"
	case causeDeaf:
		return "no_streams"
	case causeEnd:
	}

	return "invalid"
}

// causes returns all causes.
func causes() []cause {
	var all []cause
	for c := causeUnknown + 1; c < causeEnd; c++ {
		all = append(all, c)
	}

	return all
}

// Rules of the peer record. None of the numbers is measured; each says what it
// has to be above or below.
const (
	// maxFaults in faultWindow slots end a connection. One broken frame may be
	// a bug or a cut connection; four are a habit.
	maxFaults   = 4
	faultWindow = 2 // slots, as for rejects

	// slowRounds is the number of judgements in a row, each half a slot, that
	// saw lost frames before the peer counts as slow: 10 s with slots of 4 s,
	// so that it leaves the mesh well within a minute, and longer than any
	// burst that a queue of outboundQueueSize smooths.
	slowRounds = 5

	// backoffBase doubles with each strike up to backoffMax. The base is the
	// shortest redial period of the clients (12 s), so that a peer judged
	// wrongly once misses three slots.
	backoffBase = 12 * time.Second
	backoffMax  = 10 * time.Minute

	// strikeDecay is the time without a new strike that forgives one.
	strikeDecay = 10 * time.Minute

	// maxRecords bounds the book. A peer costs about 200 bytes.
	maxRecords = 4096

	// statusBurst requests may come at once, one more each statusPeriod. ream
	// asks a quiet peer every 4 s.
	statusBurst  = 8
	statusPeriod = 2 * time.Second
)

// peerRecord is what is remembered about a peer, connected or not.
type peerRecord struct {
	connected  bool
	since      time.Time // of the first connection now open
	lastUsed   time.Time
	faultTimes [maxFaults]time.Time // ring of the last faults
	faultNext  int
	slow       int // judgements in a row with lost frames
	strikes    int
	lastStrike time.Time
	until      time.Time // end of the back-off

	statusTokens int
	statusTime   time.Time
}

// peerBook keeps the records of peers. Time is a parameter of every call.
type peerBook struct {
	slot time.Duration

	mu sync.Mutex
	// guarded by mu; at most maxRecords
	records map[peer.ID]*peerRecord
}

func newPeerBook(slot time.Duration) *peerBook {
	return &peerBook{slot: slot, records: make(map[peer.ID]*peerRecord)}
}

// recordLocked returns the record of a peer and makes room for a new one.
func (b *peerBook) recordLocked(p peer.ID, now time.Time) *peerRecord {
	r := b.records[p]
	if r == nil {
		if len(b.records) >= maxRecords {
			b.evictLocked(now)
		}
		r = &peerRecord{statusTokens: statusBurst, statusTime: now}
		b.records[p] = r
	}
	r.lastUsed = now

	return r
}

// evictLocked forgets every record that means nothing any more, or, where all
// mean something, the one used longest ago among the peers that are gone.
func (b *peerBook) evictLocked(now time.Time) {
	var oldest peer.ID
	for p, r := range b.records {
		switch {
		case r.connected:
		case now.After(r.until) && now.Sub(r.lastStrike) > strikeDecay:
			delete(b.records, p)
		case oldest == "" || r.lastUsed.Before(b.records[oldest].lastUsed):
			oldest = p
		}
	}
	if len(b.records) >= maxRecords {
		delete(b.records, oldest)
	}
}

// connect notes that the peer has its first connection.
func (b *peerBook) connect(p peer.ID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordLocked(p, now)
	if !r.connected {
		r.connected, r.since, r.slow = true, now, 0
	}
}

// disconnect notes that the peer's last connection is gone.
func (b *peerBook) disconnect(p peer.ID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordLocked(p, now)
	r.connected = false
	if r.strikes == 0 && r.faultTimes == [maxFaults]time.Time{} {
		delete(b.records, p)
	}
}

// fault notes a breach and reports whether the peer has to go for it.
func (b *peerBook) fault(p peer.ID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordLocked(p, now)
	r.faultTimes[r.faultNext] = now
	r.faultNext = (r.faultNext + 1) % maxFaults
	// The slot that would be overwritten next holds the oldest of maxFaults.
	oldest := r.faultTimes[r.faultNext]

	return !oldest.IsZero() && now.Sub(oldest) <= faultWindow*b.slot
}

// allowStatus reports whether the peer may ask for our Status now.
func (b *peerBook) allowStatus(p peer.ID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordLocked(p, now)
	if n := int(now.Sub(r.statusTime) / statusPeriod); n > 0 {
		r.statusTokens = min(statusBurst, r.statusTokens+n)
		r.statusTime = r.statusTime.Add(time.Duration(n) * statusPeriod)
	}
	if r.statusTokens == 0 {
		return false
	}
	r.statusTokens--

	return true
}

// judge decides about a connected peer: the pipeline's rejects and first-seen
// verified items of the last two slots, and whether frames to it were lost since
// the last judgement. It returns causeUnknown where the peer stays. A peer
// without a strike is judged by its content only once it had two slots to bring
// something good: an honest neighbour may relay a forgery first of all.
func (b *peerBook) judge(p peer.ID, rejected, verified int, lostFrames bool, now time.Time) cause {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordLocked(p, now)
	if lostFrames {
		r.slow++
	} else {
		r.slow = 0
	}
	hadTime := r.strikes > 0 || now.Sub(r.since) >= faultWindow*b.slot
	switch {
	case rejected > 0 && verified == 0 && hadTime:
		return causeRejects
	case r.slow >= slowRounds:
		return causeSlow
	}

	return causeUnknown
}

// strike begins or lengthens the back-off of a peer and returns its length.
func (b *peerBook) strike(p peer.ID, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordLocked(p, now)
	r.forgive(now)
	r.strikes++
	r.lastStrike = now
	r.slow = 0
	r.faultTimes = [maxFaults]time.Time{}
	wait := backoffMax
	if shift := r.strikes - 1; shift < 6 { // 12 s << 6 is above ten minutes
		wait = min(wait, backoffBase<<shift)
	}
	r.until = now.Add(wait)

	return wait
}

// forgive takes one strike off for each strikeDecay without a new one.
func (r *peerRecord) forgive(now time.Time) {
	n := int(now.Sub(r.lastStrike) / strikeDecay)
	if r.strikes == 0 || n <= 0 {
		return
	}
	r.strikes = max(0, r.strikes-n)
	r.lastStrike = r.lastStrike.Add(time.Duration(n) * strikeDecay)
}

// inBackoff reports whether connections with the peer are refused now.
func (b *peerBook) inBackoff(p peer.ID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[p]

	return r != nil && now.Before(r.until)
}
