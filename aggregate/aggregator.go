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

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"aggnode/wire"
)

const (
	// readyPoll is how often a prover that is not ready is asked again while there is work for it.
	readyPoll = 100 * time.Millisecond
	// probeAfter is how many sessions in a row may end with no_time before one job runs all the same, so that an estimate
	// spoilt by a busy hour can not starve the prover for ever. ARCHITECTURE.md section 5 point 3.
	probeAfter = 3
	// unreadyAfter is how many sessions in a row may have material and make no proof. ARCHITECTURE.md section 5 point 8.
	unreadyAfter = 2
)

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
	reports  chan func()      // what job goroutines tell the loop, in order; room for two of each job, so none waits
	sent     chan publication // outboxSize: one for each parcel; the publishing goroutine waits when it is full
	roleSet  chan struct{}    // a 1-slot mailbox: isEnabled changed
	workers  sync.WaitGroup   // job and publishing goroutines
	isActive atomic.Bool      // the node has the aggregator role
	isBusy   atomic.Bool      // running is set

	unsent []publication // owned by the publishing goroutine, after it by Run: what sent had no room for while stopping

	// owned by Run
	session   *session
	lastJob   uint64
	running   *job     // the one job, waiting for the budget or proving
	planned   *finding // what follows it, nil if nothing does or nobody has looked
	checking  []*job   // whose proofs are made and not checked yet, at most checkingMax
	supply    supply
	cost      costModel
	costKey   CostKey // circumstances that cost belongs to
	isSlow    bool    // the log says so
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
		reports: make(chan func(), 2*(1+checkingMax)),
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
		case report := <-a.reports:
			report()
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
	default:
	}
	for len(a.reports) > 0 {
		(<-a.reports)()
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
	a.keepCost()
}

func (a *Aggregator) changeRole() {
	if !a.isActive.Load() {
		if a.running != nil {
			a.running.cancel()
		}
		for _, j := range a.checking {
			j.cancel()
		}
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
	a.metrics.usefulSeconds.Add(a.supply.idle(a.clock.Now()).Seconds())
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
		a.supply.done(a.clock.Now())
		return s.watch.times.end
	}
	if s.reason == SessionNotAggregator {
		s.reason = SessionUnknown
	}
	now := a.clock.Now()
	v := a.view(slot)
	if a.running != nil || len(a.checking) == checkingMax || now.Before(a.notReady) {
		t, due, wake := s.watch.hold(now, v)
		if t != triggerNone {
			a.metrics.coalesced.Inc()
			s.quorum(t, due)
			s.isHeld = s.isHeld || a.running != nil && a.running.session != s
			if a.running != nil {
				a.planAhead(ctx)
			}
		}
		if a.running == nil && a.notReady.Before(wake) {
			wake = a.notReady
		}
		return wake
	}
	t, at := s.watch.next(now, v)
	if t == triggerNone {
		return at
	}
	a.metrics.triggers[t].Inc()
	s.quorum(t, at)
	s.watch.consume(now, v)
	a.plan(ctx, t, at)
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
	w := watch{times: timesOf(a.clock, slot), expected: a.pool.Expected()}
	if a.session != nil {
		w.since = a.session.watch.since
	}
	a.session = &session{slot: slot, watch: w}
	a.cost.decay()
	a.recall()
	a.saySlow()
	a.bars.prune(slot)
	if ratio, ok := a.supply.next(); ok {
		a.metrics.busyRatio.Set(ratio)
	}
	a.metrics.fixedScale.Set(a.cost.fixed)
	a.metrics.rawScale.Set(a.cost.raw)
	a.metrics.childScale.Set(a.cost.child)
}

// closeSession writes the slot line and judges the session.
func (a *Aggregator) closeSession() {
	s := a.session
	isOf := func(j *job) bool { return j.session == s && j.slot() == s.slot }
	inFlight := a.running != nil && isOf(a.running) || slices.ContainsFunc(a.checking, isOf)
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
