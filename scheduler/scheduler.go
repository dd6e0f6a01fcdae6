package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Class is the kind of a backend child.
type Class uint8

// Classes.
const (
	ClassUnknown  Class = iota
	ClassProver         // background: lowest priority, first to go when memory is short
	ClassVerifier       // foreground: normal priority
)

// String returns the name used in logs and metrics.
func (c Class) String() string {
	switch c {
	case ClassProver:
		return "prover"
	case ClassVerifier:
		return "verifier"
	case ClassUnknown:
	}
	return "unknown"
}

// Config of a Scheduler. The zero value is the default.
type Config struct {
	// SchedIdle puts the prover under SCHED_IDLE besides nice 19. Equal on a quiet machine; on a busy one the prover
	// gets next to nothing, so the default is off.
	SchedIdle bool
	// DataMax is RLIMIT_DATA of the prover in bytes; 0 sets none. For backends that bear it: an allocation beyond it
	// fails inside the backend instead of being noticed by Watch.
	DataMax uint64
	// RealTime has the threads of the node precede every ordinary one, at real-time priority, while Run runs, where the
	// system allows it, and for at most half of the CPU time.
	RealTime bool
	// Executable is the program that runs ChildExec under the name ChildExecCommand; default "/proc/self/exe", which
	// stays valid when the file of the running program is replaced.
	Executable string

	// Budget is what the operator allows at start; see SetBudget.
	Budget Budget
	// MemoryMax is memory.max of the prover's leaf in bytes at T2, for all provers together, spares included; 0 sets none.
	MemoryMax int64

	// Signals is read by Run twice a second. Default: none, and only the operator's limits apply.
	Signals signals

	CgroupRoot string // where control groups are mounted; default "/sys/fs/cgroup"
	ProcRoot   string // default "/proc"

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
	Tracer     trace.Tracer          // of budget changes; default: none
}

// seams are what tests replace.
type seams struct {
	kernel  kernel
	cpus    func() ([]int, error) // that this process may use
	threads threads               // of this process
}

// Scheduler grants proofs and places children. Safe for concurrent use.
type Scheduler struct {
	cfg        Config      // immutable
	seams      seams       // immutable
	machine    Machine     // immutable
	cpus       []int       // immutable; threads of one core side by side
	metrics    *metrics    // immutable
	precedence *precedence // immutable
	compute    *compute    // immutable
	closing    sync.Once

	grant   chan struct{} // one slot: a token in it is the running proof. Waiters queue in the order of their coming
	waiters atomic.Int64  // for the grant
	proved  atomic.Bool   // the grant was given since Run looked last
	provers provers
	changes chan change // unbuffered: whoever changes the budget waits until Run has put it in force

	mu        sync.Mutex
	budget    Budget    // guarded by mu; always valid
	placement Placement // guarded by mu; ProverCPUs without the operator's maximum
	groups    *cgroups  // guarded by mu, nil before T2 was first in force; its files are written by Run, then by Close
	decision  Decision  // guarded by mu; the last of Run, cores as enforced
}

// New makes a scheduler, finds the highest tier that the machine allows up to Budget.Tier and sets it up. Whoever asks
// for T2, then or later, or calls Compute, has to call Close.
func New(cfg Config) (*Scheduler, error) {
	return newScheduler(cfg, seams{kernel: osKernel{}, cpus: allowedCPUs, threads: newOSThreads()}, runtime.GOMAXPROCS(0))
}

func newScheduler(cfg Config, seams seams, procs int) (*Scheduler, error) {
	setDefaults(&cfg)
	if _, err := os.Stat(cfg.Executable); err != nil {
		return nil, fmt.Errorf("find the program that starts children: %w", err)
	}
	if err := cfg.Budget.validate(procs); err != nil {
		return nil, fmt.Errorf("scheduler config: %w", err)
	}
	if cfg.MemoryMax < 0 {
		return nil, fmt.Errorf("scheduler config: memory max %d, must be 0 for none or bytes", cfg.MemoryMax)
	}
	cpus, err := seams.cpus()
	if err != nil {
		return nil, err
	}
	s := &Scheduler{
		cfg:     cfg,
		seams:   seams,
		machine: Machine{CPUs: procs, Cgroup: detect(cfg.CgroupRoot)},
		cpus:    coreOrder(cfg.ProcRoot, cpus),
		metrics: newMetrics(cfg.Registerer),
		grant:   make(chan struct{}, 1),
		compute: newCompute(),
		changes: make(chan change),
		budget:  cfg.Budget,
	}
	s.placement, s.groups = s.climb(cfg.Budget.Tier, nil)
	if s.groups != nil {
		// Before the first prover, whether Run runs by then or not.
		if err := s.groups.setCores(cfg.Budget.top(procs), procs); err != nil {
			return nil, errors.Join(err, s.groups.close())
		}
	}
	s.metrics.tier.Set(float64(s.placement.Tier - Tier0))
	s.metrics.cgroup.WithLabelValues(s.machine.Cgroup.String()).Set(1)
	s.metrics.showLimits(cfg.Budget)
	s.metrics.cores.Set(s.enforced(cfg.Budget.top(procs), &s.placement, cfg.Budget))
	cfg.Logger.Info("prover placement", "tier", s.placement.Tier.String(), "why", s.placement.Reason, "cpus", procs,
		"prover_cpus", formatCPUs(s.Placement().ProverCPUs), "cgroup", s.machine.Cgroup.String(), "sched_idle", cfg.SchedIdle)
	s.precedence = newPrecedence(seams.threads, cfg.RealTime, procs, s.metrics, cfg.Logger)
	return s, nil
}

func setDefaults(cfg *Config) {
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	if cfg.CgroupRoot == "" {
		cfg.CgroupRoot = "/sys/fs/cgroup"
	}
	if cfg.ProcRoot == "" {
		cfg.ProcRoot = "/proc"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Tracer == nil {
		cfg.Tracer = noop.NewTracerProvider().Tracer("scheduler")
	}
	if cfg.Budget.Tier == TierUnknown {
		cfg.Budget.Tier = Tier0
	}
}

// Tier returns the placement tier in force.
func (s *Scheduler) Tier() Tier {
	p, _ := s.place()
	return p.Tier
}

// Placement returns where provers run, under the present budget.
func (s *Scheduler) Placement() Placement {
	p, _ := s.place()
	p.NodeCPUs = slices.Clone(p.NodeCPUs)
	p.ProverCPUs = slices.Clone(s.proverCPUs(&p, s.Budget()))
	return p
}

// place returns the placement in force and, at T2 only, the groups. What the placement points to is not written.
func (s *Scheduler) place() (Placement, *cgroups) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.placement.Tier != Tier2 {
		return s.placement, nil
	}
	return s.placement, s.groups
}

// Machine returns what was detected at start.
func (s *Scheduler) Machine() Machine { return s.machine }

// Close ends the threads of Compute and removes the control groups of T2, killing what is left in the prover's; this process
// goes back to where it was. For the end, after Run has returned and the children are reaped. A second call does nothing.
func (s *Scheduler) Close() (err error) {
	s.closing.Do(func() {
		s.compute.close()
		s.mu.Lock()
		groups := s.groups
		s.mu.Unlock()
		if groups != nil {
			err = groups.close()
		}
	})
	return err
}

// Acquire waits for the grant to prove: one at a time, in the order of asking. release gives it back and may be called
// more than once. The error is ctx.Err().
func (s *Scheduler) Acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := time.Now()
	select {
	case s.grant <- struct{}{}:
	default:
		s.waiters.Add(1)
		defer s.waiters.Add(-1)
		select {
		case s.grant <- struct{}{}:
		case <-ctx.Done():
			s.metrics.acquires.WithLabelValues("cancelled").Inc()
			return nil, ctx.Err()
		}
	}
	s.metrics.acquires.WithLabelValues("granted").Inc()
	s.proved.Store(true)
	start := time.Now()
	s.metrics.wait.Observe(start.Sub(began).Seconds())
	s.metrics.granted.Set(1)
	return releaseOnce(func() {
		s.metrics.granted.Set(0)
		s.metrics.held.Add(time.Since(start).Seconds())
		<-s.grant
	}), nil
}
