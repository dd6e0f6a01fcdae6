package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"aggnode/chain"
	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/scheduler"
	"aggnode/verify"
)

const (
	defaultRounds = 6 // architecture 3.7: pooled over at least six interleaved rounds
	maxRounds     = 1000

	defaultPhase = 15 * time.Second
	minPhase     = time.Second // some 15 single checks
	maxPhase     = time.Hour

	// Of each 15 parts of a phase 11 are single checks and 4 are bursts.
	phaseParts  = 15
	singleParts = 11

	// settle is the pause between phases, in which what the last one left behind runs out.
	settle = 250 * time.Millisecond
)

// The ways of checking a proof.
const (
	checkNative = "native" // in this process, on the worker
	checkChild  = "child"  // in a verifier child
)

// IsolationConfig says how the isolation of checks from proving is measured. Command is required.
type IsolationConfig struct {
	Command []string      // a child that speaks the prover protocol, for scheme keccak and proofs of lean-pq
	Env     []string      // its complete environment
	Threads int           // of one proof; 0 lets the children take what they may use
	Rounds  int           // of all kinds; default 6
	Phase   time.Duration // length of one phase; default 15 s
	Workers int           // of the pipeline; default GOMAXPROCS
	Tier    string        // placement of the prover under the budget, as scheduler.ParseTier reads it; default auto

	// Verifier is who checks: "native" (default) or "child". The other one checks in a phase of its own each round, so that
	// both ways stand side by side.
	Verifier string

	// OrdinaryPriority keeps this process at ordinary priority also where the system allows more.
	OrdinaryPriority bool

	CPUProfiles string       // folder for a CPU profile of this process for each phase; empty writes none
	Progress    io.Writer    // lines for a person; nil prints none
	Logger      *slog.Logger // default: discard
}

func (c *IsolationConfig) validate() error {
	switch {
	case len(c.Command) == 0:
		return errors.New("isolation: no prover command")
	case c.Rounds < 0 || c.Rounds > maxRounds:
		return fmt.Errorf("isolation: %d rounds, must be 1 to %d", c.Rounds, maxRounds)
	case c.Phase != 0 && (c.Phase < minPhase || c.Phase > maxPhase):
		return fmt.Errorf("isolation: phases of %s, must be %s to %s", c.Phase, minPhase, maxPhase)
	case c.Verifier != "" && c.Verifier != checkNative && c.Verifier != checkChild:
		return fmt.Errorf("isolation: verifier %q, must be %s or %s", c.Verifier, checkNative, checkChild)
	case c.Threads < 0 || c.Workers < 0:
		return errors.New("isolation: negative threads or workers")
	}
	return nil
}

func (c IsolationConfig) withDefaults() IsolationConfig {
	if c.Rounds == 0 {
		c.Rounds = defaultRounds
	}
	if c.Phase == 0 {
		c.Phase = defaultPhase
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Tier == "" {
		c.Tier = "auto"
	}
	if c.Verifier == "" {
		c.Verifier = checkNative
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// rig is everything that stays from phase to phase.
type rig struct {
	trace  *trace
	tree   *chain.Tree
	probe  *probe
	checks *probedChecker

	otherWay proofChecker // of KindOtherWay

	workers int
	meters  *meters
	loads   map[Kind]load
	usage   func() usage // what was used until now
	report  func(Phase)  // called at the end of each phase
	profile string       // folder, empty for none
}

// usage is CPU time until some moment.
type usage struct {
	node, verifier, prover time.Duration
	collector              time.Duration // of node: collecting garbage
}

// Isolation measures how much proving slows checking. It blocks for about Rounds times four and a third phases and ten seconds
// of set-up; every child that it starts has ended when it returns. ctx ends it early, with the error of ctx.
func Isolation(ctx context.Context, cfg IsolationConfig) (report *IsolationReport, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t, err := loadTrace()
	if err != nil {
		return nil, err
	}
	if cfg.CPUProfiles != "" {
		if err := os.MkdirAll(cfg.CPUProfiles, 0o755); err != nil {
			return nil, fmt.Errorf("make folder for CPU profiles: %w", err)
		}
	}
	m := new(meters)
	tier, err := scheduler.ParseTier(cfg.Tier)
	if err != nil {
		return nil, fmt.Errorf("isolation: %w", err)
	}
	sched, stop, err := startScheduler(ctx, tier, !cfg.OrdinaryPriority, m, cfg.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var children children
	defer children.stop()
	r, err := startRig(ctx, &cfg, t, sched, &children, m)
	if err != nil {
		return nil, err
	}
	realTime := sched.RealTime()
	say(cfg.Progress, "%d rounds of %d phases of %s", cfg.Rounds, len(Kinds()), cfg.Phase)
	all, err := r.run(ctx, cfg.Rounds, cfg.Phase)
	if err != nil {
		return nil, err
	}
	return newIsolationReport(all, machine{
		tier: sched.Tier().String(), realTime: realTime, cpuModel: cpuModel(), cores: runtime.GOMAXPROCS(0), verifier: cfg.Verifier,
	}), nil
}

// startScheduler makes a scheduler and runs its controller as the node does. stop ends both.
func startScheduler(
	ctx context.Context, tier scheduler.Tier, realTime bool, m *meters, log *slog.Logger,
) (s *scheduler.Scheduler, stop func() error, err error) {
	s, err = scheduler.New(scheduler.Config{Budget: scheduler.Budget{Tier: tier}, RealTime: realTime, Signals: m, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var controller sync.WaitGroup
	controller.Go(func() { _ = s.Run(ctx) }) // it ends with its context and has no other error
	return s, func() error {
		cancel()
		controller.Wait()
		return s.Close()
	}, nil
}

// startRig starts the children, and puts the rig together around them.
func startRig(ctx context.Context, cfg *IsolationConfig, t *trace, sched *scheduler.Scheduler, children *children, m *meters) (*rig, error) {
	base := prover.Config{Command: cfg.Command, Env: cfg.Env, Scheme: t.profile.Scheme, Logger: cfg.Logger}
	plain := base
	plain.Role, plain.Threads = prover.RoleProve, cfg.Threads
	budget := plain
	budget.Place = sched.Place(scheduler.ClassProver)

	verifier, err := children.startVerifier(ctx, cfg.Progress, base, cfg.Workers, sched)
	if err != nil {
		return nil, err
	}
	budgeted, err := children.start(ctx, cfg.Progress, "prover under the budget", budget)
	if err != nil {
		return nil, err
	}
	unplaced, err := children.start(ctx, cfg.Progress, "prover as a plain child", plain)
	if err != nil {
		return nil, err
	}
	native, err := verify.NewNative(ctx, sched.Compute, scheduler.ThreadCPU)
	if err != nil {
		return nil, err
	}
	ways := []proofChecker{native, verifier}
	if cfg.Verifier == checkChild {
		slices.Reverse(ways)
	}
	r, err := newRig(t, ways[0], cfg.Workers, m)
	if err != nil {
		return nil, err
	}
	r.otherWay = ways[1]
	job := t.job(jobVotes, 0)
	r.loads = map[Kind]load{
		KindAbsent:    noLoad,
		KindBudget:    proveJobs(ctx, budgeted, job, sched.Acquire),
		KindPlain:     unisolated(sched, proveJobs(ctx, unplaced, job, nil)),
		KindInProcess: unisolated(sched, hashInProcess),
		KindOtherWay:  noLoad,
	}
	r.usage = func() usage {
		return usage{
			node: ownCPU(), collector: collectorCPU(), verifier: processCPU(verifier.Stats().PID),
			prover: processCPU(budgeted.Stats().PID) + processCPU(unplaced.Stats().PID),
		}
	}
	r.profile = cfg.CPUProfiles
	r.report = func(p Phase) {
		say(cfg.Progress, "round %d of %d  %-24s p50 %6.2f ms  p99 %6.2f ms  votes p50 %.2f ms  proofs %.1f",
			p.Round, cfg.Rounds, p.Kind.Long(), p.Single.P50MS, p.Single.P99MS, p.Single.Votes.P50MS, p.Single.Proofs+p.Burst.Proofs)
	}
	return r, nil
}

// newRig puts the parts of a node together around a proof checker.
func newRig(t *trace, checker proofChecker, workers int, m *meters) (*rig, error) {
	cache, err := pubkeycache.New(pubkeycache.Config{}, t.registry, nil)
	if err != nil {
		return nil, err
	}
	checks := &probedChecker{checker, m}
	v, err := verify.New(verify.Config{Profile: t.profile}, t.registry, cache, checks)
	if err != nil {
		return nil, err
	}
	// The tree holds genesis, for which the trace votes; no block comes, so its clock is never asked.
	tree, err := chain.NewTree(chain.Config{Profile: t.profile, Validators: t.registry.Len(), GenesisRoot: t.genesisRoot}, slotClock())
	if err != nil {
		return nil, err
	}
	return &rig{trace: t, tree: tree, probe: &probe{Verifier: v}, checks: checks, workers: workers, meters: m}, nil
}

// run measures all phases.
func (r *rig) run(ctx context.Context, rounds int, length time.Duration) ([]*phase, error) {
	var all []*phase
	for round := range rounds {
		for _, kind := range order(round) {
			p, err := r.phase(ctx, round+1, kind, length)
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", round+1, kind.Long(), err)
			}
			all = append(all, p)
			r.report(p.summary())
		}
	}
	return all, nil
}
