package aggregate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/pubkeycache"
	"aggnode/wire"
)

const (
	// inboxSize bounds verified material on its way to the owner goroutine, in items. ARCHITECTURE.md section 3 point 4.
	inboxSize = 1024
	// inboxWait is how long a verification worker waits for a place in the inbox. The owner files a vote in about 1 us,
	// so a full inbox means that it does not run at all. ARCHITECTURE.md section 3 point 4.
	inboxWait = 5 * time.Millisecond
	// drainMax is how many items the owner files between two looks at everything else.
	drainMax = 256

	// defaultAggregates bounds the pooled aggregates: 64 committees in each of 3 slots, and some merges.
	defaultAggregates = 256
	// defaultRawBytes bounds the signatures of raw votes: 4096 validators in 3 slots are 30 MiB of the larger scheme.
	defaultRawBytes = 64 << 20
	// defaultAggregateBytes bounds pooled proofs: 256 of the 240 KB that a lean-pq proof has at most.
	defaultAggregateBytes = 64 << 20
	// minRawVotes keeps the default bound of raw votes useful on tiny networks.
	minRawVotes = 64
)

// errStopped says that the pool's owner goroutine has ended.
var errStopped = errors.New("aggregation pool stopped")

// clock is what this package needs of the slot clock.
type clock interface {
	Now() time.Time
	Slot() wire.Slot // 0 before genesis
	BeforeGenesis() bool
	SlotStart(s wire.Slot) time.Time
	IntervalStart(s wire.Slot, i wire.Interval) time.Time
}

// PoolConfig says what a pool holds. The zero value of a field means its default.
type PoolConfig struct {
	Committees uint64          // number of attestation subnets; default 1
	Subnets    []wire.SubnetID // the subscribed ones, whose votes are expected

	MaxRaw            int // raw votes; default 4 for each validator, at least 64
	MaxRawBytes       int // bytes of their signatures; default 64 MiB
	MaxAggregates     int // aggregates; default 256
	MaxAggregateBytes int // bytes of their proofs; default 64 MiB

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
}

func (c *PoolConfig) validate() error {
	if c.MaxRaw < 0 || c.MaxRawBytes < 0 || c.MaxAggregates < 0 || c.MaxAggregateBytes < 0 {
		return errors.New("pool config: negative bound")
	}
	for i, s := range c.Subnets {
		if uint64(s) >= max(c.Committees, 1) {
			return fmt.Errorf("pool config: subnet %d, but there are only %d committees", s, max(c.Committees, 1))
		}
		if slices.Contains(c.Subnets[:i], s) {
			return fmt.Errorf("pool config: subnet %d twice", s)
		}
	}
	return nil
}

// item is one thing in the inbox: exactly one of vote and merge is set.
type item struct {
	vote  *wire.SignedAttestation
	root  wire.DataRoot
	at    time.Time // when the vote was handed in
	merge *Pooled
}

// Pool holds the verified votes and aggregates of the live slots. Nothing enters it unverified (invariant 5); that is
// the caller's duty. The goroutine of Run is its only writer (invariant 7). Methods are safe for concurrent use.
type Pool struct {
	// immutable
	clock     clock
	registry  *pubkeycache.Registry
	ours      set // validators of our subnets
	expected  int // how many they are
	log       *slog.Logger
	metrics   *poolMetrics
	inbox     chan item           // bounded by inboxSize; full: the sender waits inboxWait and then drops, counted
	snapshots chan chan *Snapshot // unbuffered: a request is a meeting with the owner
	changed   chan struct{}       // a 1-slot mailbox: something was added since the last receive
	done      chan struct{}       // closed when Run has ended
	started   atomic.Bool
	lost      atomic.Uint64 // items that found the inbox full

	live atomic.Pointer[[]*Pooled] // all aggregates; the slice is replaced, never written

	book     *book  // owned by Run
	lostSaid uint64 // owned by Run: what the log knows of lost

	mu       sync.Mutex
	progress [rawWindow + 2]slotProgress // guarded by mu: of the slots that the book holds
	version  uint64                      // guarded by mu
}

type slotProgress struct {
	slot wire.Slot
	Progress
}

// NewPool makes an empty pool. It starts nothing; Run does.
func NewPool(cfg PoolConfig, registry *pubkeycache.Registry, clock clock) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Committees = max(cfg.Committees, 1)
	n := registry.Len()
	p := &Pool{
		clock:     clock,
		registry:  registry,
		log:       cfg.Logger,
		metrics:   newPoolMetrics(cfg.Registerer),
		inbox:     make(chan item, inboxSize),
		snapshots: make(chan chan *Snapshot),
		changed:   make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for v := range wire.ValidatorIndex(n) {
		if slices.Contains(cfg.Subnets, wire.SubnetOf(v, cfg.Committees)) {
			p.ours.add(v)
		}
	}
	p.expected = p.ours.count()
	p.book = newBook(bookLimits{
		rawVotes:       cmp.Or(cfg.MaxRaw, max(4*n, minRawVotes)),
		rawBytes:       cmp.Or(cfg.MaxRawBytes, defaultRawBytes),
		aggregates:     cmp.Or(cfg.MaxAggregates, defaultAggregates),
		aggregateBytes: cmp.Or(cfg.MaxAggregateBytes, defaultAggregateBytes),
	}, n, &p.ours)
	p.live.Store(new([]*Pooled))
	return p, nil
}

// Expected returns how many votes a slot should bring: the validators of the subscribed subnets.
func (p *Pool) Expected() int { return p.expected }

// AddAttestation takes a verified vote. False means that the inbox stayed full for 5 ms, or that the pool has stopped:
// the vote is lost and the caller says pool_full. A vote that is of no use any more is taken and dropped, counted.
func (p *Pool) AddAttestation(ctx context.Context, a *wire.SignedAttestation, root wire.DataRoot) bool {
	return p.add(ctx, item{vote: a, root: root, at: p.clock.Now()})
}

// AddAggregate takes a verified aggregate from the network, on the same terms.
func (p *Pool) AddAggregate(ctx context.Context, a *wire.SignedAggregate, root wire.DataRoot) bool {
	return p.add(ctx, item{merge: p.pooled(a, root, SourceGossip)})
}

func (p *Pool) pooled(a *wire.SignedAggregate, root wire.DataRoot, source Source) *Pooled {
	return &Pooled{Aggregate: a, Root: root, Source: source, Added: p.clock.Now(), members: setOf(a.Participants)}
}

func (p *Pool) add(ctx context.Context, it item) bool {
	select {
	case <-p.done: // a send into the buffer would succeed and be lost
		return false
	default:
	}
	select {
	case p.inbox <- it:
		return true
	default:
	}
	timer := time.NewTimer(inboxWait)
	defer timer.Stop()
	select {
	case p.inbox <- it:
		return true
	case <-timer.C:
		p.metrics.full.Inc()
		p.lost.Add(1)
	case <-p.done:
	case <-ctx.Done():
	}
	return false
}

// addOwn takes an aggregate that we proved and checked. It waits as long as it has to: paid-for work is not dropped.
func (p *Pool) addOwn(ctx context.Context, a *Pooled) bool {
	select {
	case p.inbox <- item{merge: a}:
		return true
	case <-p.done:
	case <-ctx.Done():
	}
	return false
}

// Run files what arrives until ctx ends. It may be called once.
func (p *Pool) Run(ctx context.Context) error {
	if p.started.Swap(true) {
		return errors.New("aggregation pool: Run called twice")
	}
	defer close(p.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case it := <-p.inbox:
			p.file(it)
			p.drain(drainMax - 1)
			p.publish(false)
		case reply := <-p.snapshots:
			// What was added before the request is in the snapshot.
			p.drain(len(p.inbox))
			p.publish(false)
			reply <- p.book.snapshot(p.clock.Now())
		case <-timer.C:
			p.book.prune(p.clock.Slot())
			p.publish(true)
			p.warn()
			timer.Reset(p.untilBoundary())
		}
	}
}

// warn says, twice a slot at most, that verified material was lost.
func (p *Pool) warn() {
	lost := p.lost.Load()
	if lost != p.lostSaid {
		p.log.Warn("the pool did not keep up and verified items were dropped", "dropped", lost-p.lostSaid)
		p.lostSaid = lost
	}
}

// untilBoundary is the time to the next start of interval 0 or 4, where counts and gauges change by themselves.
func (p *Pool) untilBoundary() time.Duration {
	now, slot := p.clock.Now(), p.clock.Slot()
	next := p.clock.SlotStart(slot + 1)
	for _, t := range []time.Time{p.clock.IntervalStart(slot, 4), p.clock.SlotStart(slot)} {
		if t.After(now) {
			next = t
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

func (p *Pool) drain(n int) {
	for range n {
		select {
		case it := <-p.inbox:
			p.file(it)
		default:
			return
		}
	}
}

// file puts one item into the book.
func (p *Pool) file(it item) {
	now := p.clock.Slot()
	var r refusal
	if it.vote != nil {
		r = p.book.addRaw(it.vote, it.root, now, it.at)
		p.metrics.votes[r].Inc()
		return
	}
	r = p.book.addAggregate(it.merge, now)
	p.metrics.merges[r].Inc()
}

// publish makes what changed in the book visible and wakes the aggregator.
func (p *Pool) publish(isBoundary bool) {
	if p.book.version == p.version && !isBoundary { // p.version is read by its only writer
		return
	}
	live := p.book.live()
	p.live.Store(&live)
	p.mu.Lock()
	hasNew := p.book.version != p.version
	p.version = p.book.version
	p.progress = [len(p.progress)]slotProgress{}
	for i, h := range p.book.slots {
		if i < len(p.progress) {
			p.progress[i] = slotProgress{slot: h.slot, Progress: h.progress}
		}
	}
	p.mu.Unlock()
	p.metrics.observe(p.book, p.clock, len(p.inbox))
	if hasNew {
		select {
		case p.changed <- struct{}{}:
		default: // the mailbox has a note already
		}
	}
}
