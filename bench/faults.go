package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"aggnode/prover"
	"aggnode/scheduler"
	"aggnode/verify"
)

const (
	defaultFaultRounds = 3
	defaultFaultPhase  = 12 * time.Second // a prover that stops is killed after 3 s and sets up for 2.5 s: twice in a phase

	// servesAgain bounds the wait for a prover after a phase whose fault ended it.
	servesAgain = time.Minute
)

// FaultsConfig says how a failing prover's effect on checks is measured. Command is required; its first word must be a
// Python interpreter, which the fault of memory is written for.
type FaultsConfig struct {
	Command []string      // a child that speaks the prover protocol, for scheme keccak and proofs of lean-pq
	Env     []string      // its complete environment
	Rounds  int           // of all faults; default 3
	Phase   time.Duration // length of one phase; default 12 s
	Workers int           // of the pipeline; default GOMAXPROCS

	Verifier string // who checks: "native", the default, or "child"

	OrdinaryPriority bool // this process at ordinary priority also where the system allows more

	Progress io.Writer    // lines for a person; nil prints none
	Logger   *slog.Logger // default: discard
}

func (c *FaultsConfig) validate() error {
	switch {
	case len(c.Command) == 0:
		return errors.New("faults: no prover command")
	case c.Rounds < 0 || c.Rounds > maxRounds:
		return fmt.Errorf("faults: %d rounds, must be 1 to %d", c.Rounds, maxRounds)
	case c.Phase != 0 && (c.Phase < minPhase || c.Phase > maxPhase):
		return fmt.Errorf("faults: phases of %s, must be %s to %s", c.Phase, minPhase, maxPhase)
	case c.Workers < 0:
		return errors.New("faults: negative workers")
	case c.Verifier != "" && c.Verifier != checkNative && c.Verifier != checkChild:
		return fmt.Errorf("faults: verifier %s, must be %s or %s", c.Verifier, checkNative, checkChild)
	}
	return nil
}

func (c FaultsConfig) withDefaults() FaultsConfig {
	if c.Rounds == 0 {
		c.Rounds = defaultFaultRounds
	}
	if c.Phase == 0 {
		c.Phase = defaultFaultPhase
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// faultPhase is one fault in one round.
type faultPhase struct {
	fault Fault
	traffic
	jobs   map[string]int // by outcome of the call
	served bool           // a proof was made after the last fault
	again  time.Duration  // from the end of the phase until that proof was there
}

// Faults measures what a failing prover does to the checks of aggregates: the real child is stopped, killed, slowed down
// three times, or joined by a process that eats memory, over and over, while recorded aggregates are checked one at a
// time. It blocks for about Rounds times six phases; every process that it starts has ended when it returns.
func Faults(ctx context.Context, cfg FaultsConfig) (report *FaultsReport, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t, err := loadTrace()
	if err != nil {
		return nil, err
	}
	m := new(meters)
	sched, stop, err := startScheduler(ctx, scheduler.TierAuto, !cfg.OrdinaryPriority, m, cfg.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var children children
	defer children.stop()
	checker, err := faultChecker(ctx, &cfg, t, sched, &children)
	if err != nil {
		return nil, err
	}
	r, err := newRig(t, checker, cfg.Workers, m)
	if err != nil {
		return nil, err
	}
	var all []*faultPhase
	for round := range cfg.Rounds {
		for i := range FaultKinds() {
			f := FaultKinds()[(i+round)%len(FaultKinds())] // each fault has each place in turn
			p, err := r.faultPhase(ctx, &cfg, f, sched, t)
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", round+1, f.Long(), err)
			}
			all = append(all, p)
			latency := latencyOf(pool(p.accepted()), len(p.aggregates))
			say(cfg.Progress, "round %d of %d  %-28s p50 %6.2f ms  p99 %6.2f ms  jobs %v", round+1, cfg.Rounds, f.Long(), latency.P50MS, latency.P99MS, p.jobs)
		}
	}
	return newFaultsReport(all, machine{tier: sched.Tier().String(), realTime: sched.RealTime(), cpuModel: cpuModel(), cores: runtime.GOMAXPROCS(0)}), nil
}

// faultChecker is who checks the aggregates.
func faultChecker(ctx context.Context, cfg *FaultsConfig, t *trace, sched *scheduler.Scheduler, children *children) (proofChecker, error) {
	if cfg.Verifier != checkChild {
		return verify.NewNative(ctx, sched.Compute, scheduler.ThreadCPU)
	}
	base := prover.Config{Command: cfg.Command, Env: cfg.Env, Scheme: t.profile.Scheme, Logger: cfg.Logger}
	return children.startVerifier(ctx, cfg.Progress, base, cfg.Workers, sched)
}

// faultPhase starts a prover of its own, lets the fault at it while aggregates are checked, and ends it.
func (r *rig) faultPhase(ctx context.Context, cfg *FaultsConfig, f Fault, sched *scheduler.Scheduler, t *trace) (*faultPhase, error) {
	p := &faultPhase{fault: f, jobs: map[string]int{}}
	if f == FaultNone {
		return p, r.checkDuring(ctx, p, cfg.Phase)
	}
	var children children
	defer children.stop()
	maker, err := children.start(ctx, nil, f.Long(), prover.Config{
		Command: f.command(cfg.Command), Env: cfg.Env, Scheme: t.profile.Scheme, Logger: cfg.Logger, Role: prover.RoleProve,
		Place: sched.Place(scheduler.ClassProver), MemoryMax: f.memoryMax(), Watch: sched.Watch(scheduler.ClassProver),
	})
	if err != nil {
		return nil, err
	}
	job := t.job(jobVotes, 0)
	loadCtx, stopLoad := context.WithCancel(ctx)
	var load sync.WaitGroup
	load.Go(func() { p.prove(loadCtx, maker, job) })
	load.Go(func() { f.inflict(loadCtx, maker) })
	err = r.checkDuring(ctx, p, cfg.Phase)
	stopLoad()
	load.Wait()
	if err != nil {
		return nil, err
	}
	return p, p.proveAgain(ctx, maker, job)
}

// checkDuring sends votes and single aggregates for a time.
func (r *rig) checkDuring(ctx context.Context, p *faultPhase, length time.Duration) error {
	runtime.GC() // what the last phase left is not this one's to collect
	t, err := r.send(ctx, oneAtATime, length)
	if err != nil {
		return err
	}
	p.traffic = *t
	return nil
}

// prove keeps the child at jobs until ctx ends and counts how each ended. A prover that is not there is waited for.
func (p *faultPhase) prove(ctx context.Context, maker *prover.Client, job prover.Job) {
	for ctx.Err() == nil {
		if maker.WaitReady(ctx) != nil {
			return
		}
		call, cancel := context.WithTimeout(ctx, jobTimeout)
		_, err := maker.Prove(call, job)
		cancel()
		if ctx.Err() == nil {
			p.jobs[prover.OutcomeOf(err).String()]++
		}
	}
}

// proveAgain waits for the prover after its faults, and for one proof.
func (p *faultPhase) proveAgain(ctx context.Context, maker *prover.Client, job prover.Job) error {
	began := time.Now()
	wait, cancel := context.WithTimeout(ctx, servesAgain)
	defer cancel()
	for wait.Err() == nil {
		if maker.WaitReady(wait) != nil {
			break
		}
		if _, err := maker.Prove(wait, job); err == nil {
			p.served, p.again = true, time.Since(began)
			break
		}
	}
	return ctx.Err()
}
