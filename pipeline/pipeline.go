package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"aggnode/wire"
)

// clock tells the time of the network. chain.Clock is one.
type clock interface {
	Now() time.Time
	SlotStart(wire.Slot) time.Time
}

// verifier checks signatures and proofs. Its calls may take long; they run on
// workers alone. Safe for concurrent use.
type verifier interface {
	// Attestations answers for each vote of the batch in out, which is as long.
	Attestations(ctx context.Context, batch []*wire.SignedAttestation, out []wire.Reason)
	// Aggregates does the same for aggregates.
	Aggregates(ctx context.Context, batch []*wire.SignedAggregate, out []wire.Reason)
	Block(ctx context.Context, b *wire.SignedBlock) wire.Reason
}

// headView knows the blocks. Its calls take microseconds and wait for nothing,
// and it may call HeadImported from within InsertBlock.
type headView interface {
	// CheckData answers ReasonUnknownHead with the root of a missing block.
	CheckData(d *wire.AttestationData) (r wire.Reason, missing wire.Root)
	// AdmitBlock is asked before the signature is checked.
	AdmitBlock(b *wire.SignedBlock, root wire.Root) wire.Reason
	// InsertBlock gets the block and the length of its encoding after that.
	InsertBlock(b *wire.SignedBlock, root wire.Root, size int) wire.Reason
}

// sink takes verified material. Its calls wait a few milliseconds at most and
// answer false when there was no room.
type sink interface {
	AddAttestation(ctx context.Context, a *wire.SignedAttestation, root wire.DataRoot) bool
	AddAggregate(ctx context.Context, a *wire.SignedAggregate, root wire.DataRoot) bool
}

// Config configures a Pipeline. The zero value of a field means the default named
// at it; the other fields are required.
type Config struct {
	// Profile decodes what comes in.
	Profile *wire.Profile
	// Validators is the size of the registry, 1 to Profile.RegistryLimit.
	Validators int
	// Network is the name of the network: part of trace ids.
	Network string
	// Committees is the number of attestation subnets; 0 means 1.
	Committees uint64
	// Subnets are the subscribed ones. They size the queues.
	Subnets []wire.SubnetID
	// Workers is the number of verify workers; 0 means GOMAXPROCS.
	Workers int
	// SlotDuration is the length of a slot, that of the clock.
	SlotDuration time.Duration
	// AggregateBatch says how many aggregates the verifier may get at once, when
	// many wait: more than one where it shares work between proofs. It is asked with
	// the lock held. Nil: one.
	AggregateBatch func() int
	// Republish is called with an item whose block came after its verdict had to
	// be given (ignore unknown_head) and that proved valid: publishing its payload
	// again closes the hole that the ignore made in the mesh. It is called on a
	// worker and must not wait. May be nil.
	Republish func(*Item)
	// EarlyBlock is called with the slot of each block that is refused as early,
	// on the goroutine of Screen: many of them say that our clock is behind. It
	// must return within microseconds. May be nil.
	EarlyBlock func(wire.Slot)
	// OnWork is called by a worker after each piece of work, and must return within
	// microseconds. ThreadCPU is the processor time of the calling thread, which
	// tells work that was slow from work that had to wait for the processor. Both
	// or none may be nil.
	OnWork    func(Work)
	ThreadCPU func() time.Duration
	// Logger, Registerer and Tracer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Tracer     trace.Tracer

	journal func(event) // test hook, called with the lock held
}

// withDefaults returns the configuration with its defaults filled in.
func (c Config) withDefaults() Config {
	if c.Committees == 0 {
		c.Committees = 1
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider().Tracer("pipeline")
	}

	return c
}

func (c *Config) validate() error {
	switch {
	case c.Profile == nil:
		return errors.New("no profile")
	case c.Validators < 1 || c.Validators > c.Profile.RegistryLimit:
		return fmt.Errorf("%d validators, must be 1 to %d", c.Validators, c.Profile.RegistryLimit)
	case c.Workers < 1:
		return fmt.Errorf("%d workers, must be positive", c.Workers)
	case (c.OnWork == nil) != (c.ThreadCPU == nil):
		return errors.New("OnWork and ThreadCPU go together")
	case c.SlotDuration < wire.IntervalsPerSlot:
		return fmt.Errorf("slot of %v, must be positive", c.SlotDuration)
	}
	for _, s := range c.Subnets {
		if uint64(s) >= c.Committees {
			return fmt.Errorf("subnet %d, must be below the %d committees", s, c.Committees)
		}
	}

	return nil
}

// Pipeline is the bounded, classed verification queue and its workers. Safe for
// concurrent use.
type Pipeline struct {
	// immutable
	cfg      Config
	limits   Limits
	interval time.Duration
	genesis  time.Time // start of slot 0
	clock    clock
	verifier verifier
	head     headView
	sink     sink
	log      *slog.Logger
	metrics  *metrics
	alarm    chan struct{} // one place: a second alarm adds nothing to the first

	// atomic
	running atomic.Bool
	imports atomic.Uint64 // written under mu; read without it before a look at the head view
	sampled atomic.Uint64 // votes counted for trace sampling
	roots   rootMemo
	watch   atomic.Pointer[watch] // of the context under which callers wait; see watchOf

	mu        sync.Mutex
	work      sync.Cond // signalled when a worker could take something
	stopping  bool      // guarded by mu, as all below
	idle      int       // workers that wait
	waking    bool      // one was woken and has not looked yet
	seq       uint64
	slot      wire.Slot
	queue     queue
	park      parking
	dedupe    dedupe
	peers     peerBook
	deadlines deadlines
	sleeps    bool // the timekeeper sleeps until wakeAt
	wakeAt    time.Time
	inFlight  [classEnd]int // submitted, no outcome yet
	tally     tally
	lastStack time.Time // when a panic's stack was logged
}

// New returns a pipeline. It takes items at once, but nothing is checked before
// Run.
func New(cfg Config, clock clock, verifier verifier, head headView, sink sink) (*Pipeline, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	limits := limitsFor(cfg.Validators, cfg.Committees, len(cfg.Subnets), cfg.Workers)
	p := &Pipeline{
		cfg:       cfg,
		limits:    limits,
		interval:  cfg.SlotDuration / wire.IntervalsPerSlot,
		genesis:   clock.SlotStart(0),
		clock:     clock,
		verifier:  verifier,
		head:      head,
		sink:      sink,
		log:       cfg.Logger,
		alarm:     make(chan struct{}, 1),
		queue:     newQueue(limits, cfg.Validators),
		park:      newParking(limits),
		dedupe:    newDedupe(cfg.Validators),
		peers:     newPeerBook(),
		deadlines: deadlines{genesis: clock.SlotStart(0)},
	}
	p.queue.sharing = cfg.AggregateBatch
	p.work.L = &p.mu
	p.advanceLocked(clock.Now())
	p.tally.slot = p.slot
	var err error
	if p.metrics, err = newMetrics(cfg.Registerer, p); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}

	return p, nil
}

// VotesWait reports whether a vote waits for a worker, for background work that
// stands back then.
func (p *Pipeline) VotesWait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.queue.attestations.first() != nil
}

// Limits returns the bounds.
func (p *Pipeline) Limits() Limits { return p.limits }

// Notes returns what an operator should know about these settings, for the start
// log and the status page.
func (p *Pipeline) Notes() []string {
	if p.limits.Workers > 1 {
		return nil
	}

	return []string{"one verify worker (GOMAXPROCS=1): a long aggregate check delays votes, and many aggregates can starve them"}
}

// Run runs the workers until ctx ends, then answers everything that waits with
// ReasonStopping and returns when the workers have put down what they hold.
func (p *Pipeline) Run(ctx context.Context) error {
	if !p.running.CompareAndSwap(false, true) {
		return errors.New("pipeline: run twice")
	}
	p.log.Info("pipeline starts", "workers", p.limits.Workers, "blocks", p.limits.Blocks, "attestations", p.limits.Attestations,
		"aggregates", p.limits.Aggregates, "parked_attestations", p.limits.ParkedAttestations, "parked_aggregates", p.limits.ParkedAggregates)
	for _, n := range p.Notes() {
		p.log.Warn("pipeline setting", "note", n)
	}
	var wg sync.WaitGroup
	for range p.limits.Workers {
		wg.Go(func() { p.runWorker(ctx) })
	}
	wg.Go(func() { p.keepTime(ctx) })
	<-ctx.Done()
	p.stop()
	wg.Wait()
	p.log.Info("pipeline stopped")

	return nil
}

// stop ends all that waits.
func (p *Pipeline) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	var waiting []*Item
	collect := func(it *Item) { waiting = append(waiting, it) }
	p.queue.waiting(collect)
	for _, it := range waiting {
		p.queue.remove(it)
	}
	parked := len(waiting)
	p.park.each(collect)
	for _, it := range waiting[parked:] {
		p.park.remove(it)
	}
	now := p.clock.Now()
	for _, it := range waiting {
		p.endLocked(it, wire.ReasonStopping, now)
		p.goneLocked(it)
	}
	p.work.Broadcast()
}

// HeadImported tells that a block is in the head view now: what waited for it
// goes on. It may be called from within InsertBlock, and waits for nothing.
func (p *Pipeline) HeadImported(root wire.Root) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.imports.Add(1)
	if p.stopping {
		return
	}
	now := p.clock.Now()
	p.advanceLocked(now)
	p.expireLocked(now)
	for _, it := range p.park.release(root) {
		p.note("release", it)
		if !it.ended {
			p.setDueLocked(it, it.answer) // no shorter than it was
		}
		if it.kind == kindAttestation {
			it.state = stateReleased
			p.queue.released.push(it)

			continue
		}
		it.unplaced = true
		if it.ended {
			p.setDueLocked(it, it.useful)
		}
		p.pushLocked(it)
	}
	p.wakeLocked()
}

// PeerScore returns what a peer delivered in the current and the previous slot.
func (p *Pipeline) PeerScore(peer string) PeerScore {
	slot, _ := p.at(p.clock.Now())
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.peers.score(peer, slot)
}

// at returns the slot and the interval of a time, both 0 before genesis. The clock
// is read once for all that is asked about one moment.
func (p *Pipeline) at(now time.Time) (wire.Slot, wire.Interval) {
	since := now.Sub(p.genesis)
	if since < 0 {
		return 0, 0
	}

	return wire.Slot(since / p.cfg.SlotDuration), wire.Interval(since % p.cfg.SlotDuration / p.interval)
}

// advanceLocked moves everything that is kept by slot to the current one.
func (p *Pipeline) advanceLocked(now time.Time) {
	slot, _ := p.at(now)
	if slot <= p.slot {
		return
	}
	p.slot = slot
	p.queue.advance(slot)
	p.peers.advance(slot)
}

// wakeLocked wakes one worker if there is work that it could take, unless one is
// on its way to look. A worker does the same after each take, so the wakes go on
// as far as the work does.
func (p *Pipeline) wakeLocked() {
	if p.idle > 0 && !p.waking && p.queue.ready() {
		p.waking = true
		p.work.Signal()
	}
}

// event is one line of the journal.
type event struct {
	what string
	item *Item
}

// note writes to the journal of a test.
func (p *Pipeline) note(what string, it *Item) {
	if p.cfg.journal != nil {
		p.cfg.journal(event{what: what, item: it})
	}
}
