package aggregate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"aggnode/prover"
	"aggnode/wire"
)

const (
	// defaultMinInputs is the fewest raw votes and children of a job: a proof over one of either has no value.
	defaultMinInputs = 2
	// defaultMaxChildren is 2: each child costs 1.5 s and 0.5 GiB with lean-pq 0.7.
	defaultMaxChildren = 2
	// readyPoll is how often a prover that is not ready is asked again while there is work for it.
	readyPoll = 100 * time.Millisecond
	// probeAfter is how many sessions in a row may end with no_time before one job runs all the same, so that an estimate
	// spoilt by a busy hour can not starve the prover for ever. ARCHITECTURE.md section 5 point 3.
	probeAfter = 3
	// unreadyAfter is how many sessions in a row may have material and make no proof. ARCHITECTURE.md section 5 point 8.
	unreadyAfter = 2
)

// aggregator makes proofs. One call at a time is made.
type aggregator interface {
	// Prove proves a job. The deadline of ctx is hard: the prover is killed then.
	Prove(ctx context.Context, j prover.Job) (prover.Result, error)
	// Capabilities returns what the loaded prover can do; false before one was loaded.
	Capabilities() (prover.Capabilities, bool)
	Ready() bool
}

// budget grants processor time for one job.
type budget interface {
	Acquire(ctx context.Context) (release func(), err error)
}

// selfChecker verifies our own proofs like anybody's.
type selfChecker interface {
	CheckAggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason
}

// publisher hands an aggregate to the network. peers is how many it went to; none is no error.
type publisher interface {
	PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (peers int, err error)
}

// Config says how an aggregator works. The zero value of a field means its default.
type Config struct {
	Enabled bool          // start in the aggregator role
	Profile *wire.Profile // required
	Network string        // name of the network: part of trace ids
	Subnets []wire.SubnetID
	// Committees is the number of attestation subnets; default 1.
	Committees uint64

	MinInputs   int // raw votes plus children of a job; default 2
	MaxChildren int // children of a job, at most; default 2, negative for none

	// WhyUnavailable explains a prover that is not ready; nil and a nil error say nothing.
	WhyUnavailable func() error

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
	Tracer     trace.Tracer          // default: none
}

func (c *Config) validate() error {
	switch {
	case c.Profile == nil:
		return errors.New("aggregator config: no profile")
	case c.MinInputs < 0:
		return fmt.Errorf("aggregator config: at least %d inputs", c.MinInputs)
	}
	return nil
}

// Aggregator runs one session a slot: see the package documentation. Methods are safe for concurrent use.
type Aggregator struct {
	// immutable
	cfg       Config
	pool      *Pool
	clock     clock
	prover    aggregator
	budget    budget
	checker   selfChecker
	publisher publisher
	log       *slog.Logger
	metrics   *metrics
	tracer    trace.Tracer
	started   atomic.Bool
	outbox    *outbox

	grants   chan grant       // 1: the one job that waits for the budget
	results  chan *job        // 1: the one job that runs
	sent     chan publication // outboxSize: one for each parcel; the publishing goroutine waits when it is full
	roleSet  chan struct{}    // a 1-slot mailbox: isEnabled changed
	workers  sync.WaitGroup   // job and publishing goroutines
	isActive atomic.Bool      // the node has the aggregator role
	isBusy   atomic.Bool      // running is set

	unsent []publication // owned by the publishing goroutine, after it by Run: what sent had no room for while stopping

	// owned by Run
	session   *session
	lastJob   uint64
	running   *job // the one job, waiting for the budget or proving
	cost      costModel
	bars      *bars
	noTime    int       // sessions in a row that ended with no_time
	barren    int       // sessions in a row that had material and made no proof
	notReady  time.Time // do not look at the prover before
	shownRole bool      // the role was logged

	mu  sync.Mutex
	why string // guarded by mu: why the node is not ready to aggregate, empty if it is
}

// NewAggregator makes an aggregator over a pool. It starts nothing; Run does.
func NewAggregator(cfg Config, pool *Pool, clock clock, prover aggregator, budget budget, checker selfChecker, publisher publisher) (*Aggregator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.MinInputs = cmp.Or(cfg.MinInputs, defaultMinInputs)
	cfg.MaxChildren = max(cmp.Or(cfg.MaxChildren, defaultMaxChildren), 0)
	cfg.Committees = max(cfg.Committees, 1)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Tracer == nil {
		cfg.Tracer = noop.NewTracerProvider().Tracer("aggregate")
	}
	a := &Aggregator{
		cfg: cfg, pool: pool, clock: clock, prover: prover, budget: budget, checker: checker, publisher: publisher,
		log: cfg.Logger, metrics: newMetrics(cfg.Registerer, cfg.Subnets), tracer: cfg.Tracer,
		outbox:  newOutbox(),
		grants:  make(chan grant, 1),
		results: make(chan *job, 1),
		sent:    make(chan publication, outboxSize),
		roleSet: make(chan struct{}, 1),
		cost:    newCostModel(),
		bars:    newBars(),
	}
	a.isActive.Store(cfg.Enabled)
	a.metrics.setRole(cfg.Enabled)
	return a, nil
}

// SetEnabled takes or gives up the aggregator role and returns whether the node had it. A running job is cancelled.
func (a *Aggregator) SetEnabled(enabled bool) (previous bool) {
	previous = a.isActive.Swap(enabled)
	a.metrics.setRole(enabled)
	select {
	case a.roleSet <- struct{}{}:
	default: // the mailbox has a note already
	}
	return previous
}

// Enabled tells whether the node has the aggregator role.
func (a *Aggregator) Enabled() bool { return a.isActive.Load() }

// Busy tells whether a proof is being made or waits for the budget.
func (a *Aggregator) Busy() bool { return a.isBusy.Load() }

// Ready tells whether the node does its duty as an aggregator, and why not. A node without the role is ready.
func (a *Aggregator) Ready() (ok bool, why string) {
	if !a.isActive.Load() {
		return true, SessionNotAggregator.String()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why == "", a.why
}

func (a *Aggregator) setWhy(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.why = why
}

// Run runs sessions until ctx ends; a job that is running then is cancelled and waited for. The pool must be running. It
// may be called once.
func (a *Aggregator) Run(ctx context.Context) error {
	if a.started.Swap(true) {
		return errors.New("aggregator: Run called twice")
	}
	defer a.stop()
	a.workers.Go(func() { a.publishAll(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.pool.changed:
		case <-a.roleSet:
			a.changeRole()
		case g := <-a.grants:
			a.granted(ctx, g)
		case j := <-a.results:
			a.finish(j)
		case p := <-a.sent:
			a.published(p)
		}
		wake := a.advance(ctx)
		timer.Reset(max(wake.Sub(a.clock.Now()), time.Millisecond))
	}
}

// stop waits for everything that was started and closes the books of the jobs. The open session is not judged: it did
// not have its time.
func (a *Aggregator) stop() {
	a.workers.Wait()
	select {
	case g := <-a.grants:
		g.job.waitSpan.End()
		if g.release != nil {
			g.release()
		}
	case j := <-a.results:
		if j.outcome != JobUnknown {
			a.end(j, j.outcome)
		}
	default:
	}
	if a.running != nil {
		a.end(a.running, JobCancelled)
	}
	for len(a.sent) > 0 {
		a.published(<-a.sent)
	}
	for _, p := range a.unsent {
		a.published(p)
	}
	for _, p := range a.outbox.empty() {
		a.published(publication{parcel: p, outcome: JobCancelled})
	}
}

func (a *Aggregator) changeRole() {
	if !a.isActive.Load() && a.running != nil {
		a.running.cancel()
	}
	if a.isActive.Load() {
		a.setWhy("")
		a.barren = 0
	}
	a.log.Info("aggregator role changed", "is_aggregator", a.isActive.Load())
}

// advance opens and closes sessions, acts on a trigger that is due and returns when to look again.
func (a *Aggregator) advance(ctx context.Context) time.Time {
	if a.clock.BeforeGenesis() {
		return a.clock.SlotStart(0)
	}
	slot := a.clock.Slot()
	if a.session == nil || a.session.slot != slot {
		if a.session != nil {
			a.closeSession()
		}
		a.openSession(slot)
	}
	s := a.session
	if !a.isActive.Load() {
		s.reason = SessionNotAggregator
		return s.watch.times.end
	}
	if s.reason == SessionNotAggregator {
		s.reason = SessionUnknown
	}
	now := a.clock.Now()
	v := a.view(slot)
	if a.running != nil || now.Before(a.notReady) {
		isTriggered, wake := s.watch.hold(now, v)
		if isTriggered {
			a.metrics.coalesced.Inc()
			s.isHeld = s.isHeld || a.running != nil && a.running.session != s
		}
		if a.running == nil && a.notReady.Before(wake) {
			wake = a.notReady
		}
		return wake
	}
	t, wake := s.watch.next(now, v)
	if t == triggerNone {
		return wake
	}
	a.metrics.triggers[t].Inc()
	s.watch.consume(now, v)
	a.plan(ctx, t)
	return a.clock.Now() // whatever happened, look again
}

func (a *Aggregator) view(slot wire.Slot) view {
	p, pool := a.pool.Progress(slot)
	v := view{slot: p, pool: pool, lastAdded: p.LastAdded}
	if slot > 0 {
		before, _ := a.pool.Progress(slot - 1)
		if before.LastAdded.After(v.lastAdded) {
			v.lastAdded = before.LastAdded
		}
	}
	a.cost.seed(a.capabilities().HelloProve)
	v.cost = a.cost.predict(p.Votes, 0)
	v.leastCost = a.cost.predict(a.cfg.MinInputs, 0)
	return v
}

func (a *Aggregator) openSession(slot wire.Slot) {
	a.session = &session{slot: slot, watch: watch{times: timesOf(a.clock, slot), expected: a.pool.Expected()}}
	a.cost.decay()
	a.bars.prune(slot)
	a.metrics.fixedScale.Set(a.cost.fixed)
	a.metrics.rawScale.Set(a.cost.raw)
	a.metrics.childScale.Set(a.cost.child)
}

// closeSession writes the slot line and judges the session.
func (a *Aggregator) closeSession() {
	s := a.session
	inFlight := a.running != nil && a.running.session == s && a.running.slot() == s.slot
	votes, _ := a.pool.Progress(s.slot)
	// A session that was held all along made no decision; what it had is told by its votes.
	if s.isHeld && s.reason == SessionUnknown && votes.Votes >= a.cfg.MinInputs {
		s.hasMaterial = true
	}
	r := s.verdict(inFlight)
	a.metrics.sessions[r].Inc()
	a.metrics.skip(r)
	a.metrics.coverage(votes, s)
	switch {
	case r == SessionNotAggregator:
	case s.jobs > 0:
		a.noTime = 0
	case s.isNoTime:
		a.noTime++
	}
	if s.hasMaterial && !inFlight && r != SessionNotAggregator {
		a.judge(s.proofs > 0, s.explain(r))
	}
	a.logLine(s, r, votes)
}

// judge counts sessions with material that made no proof. A job that outlives its session is judged when it ends.
func (a *Aggregator) judge(isProved bool, reason string) {
	if isProved {
		a.barren = 0
		a.setWhy("")
		return
	}
	if a.barren++; a.barren >= unreadyAfter {
		a.setWhy(fmt.Sprintf("%d sessions with material in a row made no proof: %s", a.barren, reason))
	}
}

// logLine writes one line a slot. A node without the role says so once and is then quiet at this level.
func (a *Aggregator) logLine(s *session, r SessionReason, votes Progress) {
	level := slog.LevelInfo
	if r == SessionNotAggregator {
		if a.shownRole {
			level = slog.LevelDebug
		}
		a.shownRole = true
	} else {
		a.shownRole = false
	}
	ctx := context.Background() // handlers of this program take nothing from it, and the line is due even while stopping
	if a.log.Enabled(ctx, level) {
		a.log.LogAttrs(ctx, level, "aggregation", s.line(r, votes)...)
	}
}
