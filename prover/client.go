package prover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Role is what a child is started for. One process has one role for life: a proof in progress must never delay a check.
type Role uint8

// Roles; the values are those of the hello frame.
const (
	RoleUnknown Role = iota
	RoleProve
	RoleVerify
)

// String returns the name used in logs and metrics.
func (r Role) String() string {
	switch r {
	case RoleProve:
		return "prove"
	case RoleVerify:
		return "verify"
	case RoleUnknown:
	}
	return "unknown"
}

// Stats is a snapshot of a client for status pages and readiness.
type Stats struct {
	Role       Role
	Ready      bool
	PID        int       // of the serving child, 0 if none
	SparePID   int       // of the warm spare, 0 if none
	NoSpare    string    // why a spare that is configured is not kept, empty if it is
	Restarts   uint64    // children started beyond the first of each kind
	LastError  error     // why the last child ended or could not start, nil if none did
	Running    int       // calls in progress
	Oldest     time.Time // when the oldest of them began; zero if none runs
	ReadySince time.Time // of the serving child
	NeedMemory int64     // bytes of one child: of a prover with a job of two children, of a verifier set up; 0 until ready
	MemoryMax  int64     // bytes: the limit, 0 if none
}

// Client supervises the children of one role and talks to them. Safe for concurrent use. Calls need Run to be running.
type Client struct {
	cfg     Config   // immutable
	metrics *metrics // immutable
	forker  *forker  // immutable

	gate     *semaphore.Weighted // immutable; every check in flight holds one, one that must be alone holds gateSize
	proving  chan struct{}       // semaphore of one: a prover takes one job at a time
	isActive atomic.Bool         // Run was called

	mu       sync.Mutex
	ready    []*process    // guarded by mu: children that passed hello, the serving one first
	changed  chan struct{} // guarded by mu: closed and replaced when ready or ended changes
	caps     Capabilities  // guarded by mu: of the last hello
	known    bool          // guarded by mu: caps is set
	restarts uint64        // guarded by mu
	lastErr  error         // guarded by mu
	readyAt  time.Time     // guarded by mu
	lostAt   time.Time     // guarded by mu: when a ready child was last lost
	noSpare  string        // guarded by mu: why there is no spare
	ended    error         // guarded by mu: Run is over

	recycledAt time.Time // guarded by mu: when a prover was last replaced for its memory
}

// New makes a client. It starts nothing; Run does.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Client{
		cfg:     cfg,
		metrics: newMetrics(cfg.Registerer, cfg.Role),
		forker:  newForker(),
		proving: make(chan struct{}, 1),
		gate:    semaphore.NewWeighted(gateSize),
		changed: make(chan struct{}),
	}, nil
}

// Run keeps the children running until ctx ends, then stops and reaps them; nil in that case. It returns early, with
// the reason, only where the very first hello failed in a way that no restart heals: another scheme, a processor that
// the backend can not use, a command that does not exist. It may be called once.
func (c *Client) Run(ctx context.Context) error {
	if c.isActive.Swap(true) {
		return errors.New("prover: Run called twice")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quit := make(chan struct{})
	var forking, slots sync.WaitGroup
	forking.Go(func() { c.forker.run(quit) })

	var once sync.Once
	var permanent error
	slot := func(isSpare bool) {
		if err := c.keep(ctx, isSpare); err != nil {
			once.Do(func() { permanent = err; cancel() })
		}
	}
	slots.Go(func() { slot(false) })
	if c.cfg.Spare {
		slots.Go(func() { slot(true) })
	}
	slots.Wait()
	close(quit)
	forking.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = errStopped
	if permanent != nil {
		c.ended = permanent
	}
	c.changeLocked()
	return permanent
}

// keep runs one child after the other. While children end without having answered a call the pauses between them double:
// the circuit breaker of a backend that starts and then dies of whatever it is asked.
func (c *Client) keep(ctx context.Context, isSpare bool) error {
	delay := restartMin
	var last error
	for c.mayStart(ctx, isSpare) {
		p, err := c.launch(ctx, last)
		lost := 0
		if err == nil {
			c.offer(p)
			c.attend(ctx, p)
			c.withdraw(p)
			err, lost = p.cause(), p.callsLost()
			if p.served.Load() {
				delay = restartMin
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		last = err
		isFirst := c.note(err)
		if isFirst && !isSpare && isPermanent(err) {
			return err
		}
		c.logEnd(err, lost, delay)
		c.metrics.backoff.Set(delay.Seconds())
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		delay = min(2*delay, restartMax)
	}
	return nil
}

// logEnd says that a child ended. Where a job ended with it the job's caller has the cause and says it.
func (c *Client) logEnd(err error, lost int, delay time.Duration) {
	args := []any{"role", c.cfg.Role.String(), "reason", startReason(err), "restart_ms", delay.Milliseconds()}
	if c.cfg.Role == RoleProve && lost > 0 {
		c.cfg.Logger.Info("prover child ended with its job", args...)
		return
	}
	c.cfg.Logger.Warn("prover child ended", append(args, "error", err)...)
}

// note records the end of a child and says whether none has ever been ready.
func (c *Client) note(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastErr = err
	return !c.known
}

// launch starts a child and takes it through hello.
func (c *Client) launch(ctx context.Context, last error) (*process, error) {
	began := time.Now()
	c.metrics.starts.WithLabelValues(startReason(last)).Inc()
	if last != nil {
		c.mu.Lock()
		c.restarts++
		c.mu.Unlock()
	}
	p, err := startProcess(ctx, c.forker, &c.cfg)
	if err != nil {
		return nil, err
	}
	helloCtx, cancel := context.WithTimeout(ctx, c.cfg.HelloTimeout)
	defer cancel()
	caps, err := p.greet(helloCtx)
	if err != nil {
		if ctx.Err() == nil && helloCtx.Err() != nil {
			err = fmt.Errorf("hello: %w: not ready within %s", ErrTimeout, c.cfg.HelloTimeout)
		}
		p.kill(err)
		<-p.done
		return nil, err
	}
	p.caps = caps
	c.metrics.setup.Set(time.Since(began).Seconds())
	need := c.cfg.need(&caps)
	log := p.log.With("backend", caps.Backend, "revision", caps.Revision, "scheme", caps.Scheme)
	log.Info("prover child is ready", "duration_ms", time.Since(began).Milliseconds(),
		"hello_prove_ms", caps.HelloProve.Milliseconds(), "memory_mib", need/mebibyte)
	if c.cfg.MemoryMax > 0 && c.cfg.Role == RoleProve && need > c.cfg.MemoryMax {
		log.Warn("a proof of two children needs more memory than the limit allows",
			"memory_mib", need/mebibyte, "limit_mib", c.cfg.MemoryMax/mebibyte)
	}
	return p, nil
}

func (c *Client) offer(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ready) == 0 {
		c.readyAt = time.Now()
	}
	hello := p.caps.HelloProve
	if len(c.ready) > 0 && c.caps.HelloProve > 0 {
		hello = c.caps.HelloProve // a spare measures itself beside the jobs of the other
	}
	c.ready = append(c.ready, p)
	c.caps, c.known = p.caps, true
	c.caps.HelloProve = hello
	c.metrics.hello.Set(hello.Seconds())
	c.metrics.backoff.Set(0)
	c.metrics.ready.Set(float64(len(c.ready)))
	c.changeLocked()
}

func (c *Client) withdraw(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.ready, p); i >= 0 {
		if i == 0 {
			c.readyAt = time.Now()
		}
		c.ready = slices.Delete(c.ready, i, i+1)
		c.lostAt = time.Now()
	}
	c.metrics.ready.Set(float64(len(c.ready)))
	c.changeLocked()
}

func (c *Client) changeLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// serving returns the first child that is of use.
func (c *Client) serving() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.servingLocked(); p != nil {
		return p, nil
	}
	switch {
	case c.ended != nil:
		return nil, unavailable(c.ended)
	case len(c.ready) > 0:
		return nil, unavailable(c.ready[0].cause())
	}
	return nil, unavailable(c.lastErr)
}

// awaitServing is serving for checks. A culprit that is repeated alone may end the spare too, so for CallTimeout after
// the last child was lost a check waits for the next one; in a longer outage it fails at once.
func (c *Client) awaitServing(ctx context.Context) (*process, error) {
	p, err := c.serving()
	if err == nil {
		return p, nil
	}
	c.mu.Lock()
	isRecent := c.ended == nil && c.known && (len(c.ready) > 0 || time.Since(c.lostAt) < c.cfg.CallTimeout)
	c.mu.Unlock()
	if !isRecent {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	if err := c.WaitReady(wait); err != nil {
		return nil, unavailable(err)
	}
	return c.serving()
}

// servingLocked is the first child that is not ending, and for a check the first of those with a free place: where the
// first has its hands full the spare helps out.
func (c *Client) servingLocked() *process {
	var first *process
	for _, p := range c.ready {
		switch {
		case p.isDying():
		case c.cfg.Role == RoleVerify && len(p.slots) < cap(p.slots):
			return p
		case first == nil:
			first = p
		}
	}
	return first
}

// Ready says whether a call would find a child.
func (c *Client) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servingLocked() != nil
}

// Capabilities returns what the last child said at hello; false before the first hello.
func (c *Client) Capabilities() (Capabilities, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps, c.known
}

// WaitReady waits until a child serves. It returns an error wrapping ErrUnavailable once Run has ended, and ctx.Err()
// when ctx ends first, with the reason of the last failed start.
func (c *Client) WaitReady(ctx context.Context) error {
	for {
		c.mu.Lock()
		changed, ended, last := c.changed, c.ended, c.lastErr
		isReady := c.servingLocked() != nil
		c.mu.Unlock()
		switch {
		case isReady:
			return nil
		case ended != nil:
			return unavailable(ended)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), last)
			}
			return ctx.Err()
		}
	}
}

// Stats returns a snapshot.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{Role: c.cfg.Role, LastError: c.lastErr, MemoryMax: c.cfg.MemoryMax, NoSpare: c.noSpare, Restarts: c.restarts}
	if c.known {
		s.NeedMemory = c.cfg.need(&c.caps)
	}
	for _, p := range c.ready {
		if n, oldest := p.running(); n > 0 {
			s.Running += n
			if s.Oldest.IsZero() || oldest.Before(s.Oldest) {
				s.Oldest = oldest
			}
		}
		switch {
		case p.isDying():
		case s.PID == 0:
			s.PID, s.Ready, s.ReadySince = p.pid, true, c.readyAt
		default:
			s.SparePID = p.pid
		}
	}
	return s
}
