package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"aggnode/chain"
	"aggnode/pipeline"
	"aggnode/scheduler"
	"aggnode/wire"
)

// pass is one run of the trace: a pipeline that has seen nothing, over a clock that stands in the middle of the trace's
// slot when the pass begins. Owned by a loop.
type pass struct {
	pipe     *pipeline.Pipeline
	inFlight sync.WaitGroup
	cancel   context.CancelFunc
	done     chan error // one value: how Run ended
}

// sink takes what was verified. Its owner has no use for it: what a pool does with material is no part of a check.
type sink struct{}

func (sink) AddAttestation(context.Context, *wire.SignedAttestation, wire.DataRoot) bool { return true }

func (sink) AddAggregate(context.Context, *wire.SignedAggregate, wire.DataRoot) bool { return true }

// newPass starts a pipeline.
func (r *rig) newPass(ctx context.Context) (*pass, error) {
	pipe, err := pipeline.New(pipeline.Config{
		Profile: r.trace.profile, Validators: r.trace.registry.Len(), Network: wire.DefaultNetwork,
		Committees: 1, Subnets: []wire.SubnetID{0}, Workers: r.workers, SlotDuration: traceSlotDuration,
		OnWork: func(w pipeline.Work) { w.Report(r.meters) }, ThreadCPU: scheduler.ThreadCPU,
	}, slotClock(), r.probe, r.tree, sink{})
	if err != nil {
		return nil, err
	}
	p := &pass{pipe: pipe, done: make(chan error, 1)}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() { p.done <- pipe.Run(ctx) }()
	return p, nil
}

// slotClock returns a clock that begins at interval 2 of the trace's slot and goes at normal speed.
func slotClock() *chain.Clock {
	genesis := time.Unix(traceGenesis, 0)
	begin := genesis.Add(time.Duration(traceSlot)*traceSlotDuration + 2*traceSlotDuration/wire.IntervalsPerSlot)
	since := time.Now()
	return chain.NewClock(genesis, traceSlotDuration, func() time.Time { return begin.Add(time.Since(since)) })
}

// retire waits until everything in the pass has its verdict, and ends it.
func (p *pass) retire() error {
	p.inFlight.Wait()
	p.cancel()
	return <-p.done
}

// loop hands out the pass in force and replaces it. Safe for concurrent use.
type loop struct {
	rig *rig

	mu      sync.Mutex
	current *pass // guarded by mu
	next    *pass // guarded by mu: made ahead, so that the exchange takes no time
	err     error // guarded by mu: the first fault of a pass

	retiring sync.WaitGroup
}

func (r *rig) newLoop(ctx context.Context) (*loop, error) {
	first, err := r.newPass(ctx)
	if err != nil {
		return nil, fmt.Errorf("start pipeline: %w", err)
	}
	return &loop{rig: r, current: first}, nil
}

// enter returns the pass in force with one more message in flight; the caller calls inFlight.Done.
func (l *loop) enter() *pass {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current.inFlight.Add(1)
	return l.current
}

// prepare makes the next pass.
func (l *loop) prepare(ctx context.Context) {
	p, err := l.rig.newPass(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failLocked(err)
		return
	}
	l.next = p
}

// turn puts the next pass in force and retires the one before.
func (l *loop) turn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return // prepare failed; the phase ends with that error
	}
	old := l.current
	l.current, l.next = l.next, nil
	l.retire(old)
}

func (l *loop) retire(p *pass) {
	l.retiring.Go(func() {
		if err := p.retire(); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.failLocked(err)
		}
	})
}

func (l *loop) failLocked(err error) {
	if l.err == nil {
		l.err = err
	}
}

// close ends all passes once their messages have their verdicts. Nobody enters any more.
func (l *loop) close() error {
	l.mu.Lock()
	l.retire(l.current)
	if l.next != nil {
		l.retire(l.next)
	}
	l.mu.Unlock()
	l.retiring.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
