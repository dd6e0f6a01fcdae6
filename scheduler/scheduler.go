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
	// Executable is the program that runs ChildExec under the name ChildExecCommand; default "/proc/self/exe", which
	// stays valid when the file of the running program is replaced.
	Executable string

	// Tier is the highest placement tier to try: "T0", "T1", "T2" or "auto", which is the same as "T2". Default "T0",
	// which changes nothing about the own process. What the machine does not allow is given up with a reason.
	Tier string
	// Budget is what the operator allows at start; see SetBudget.
	Budget Budget
	// MemoryMax is memory.max of the prover's leaf in bytes at T2, for all provers together, spares included; 0 sets none.
	MemoryMax int64

	// Signals is read by Run twice a second. Default: none, and only the operator's limits apply.
	Signals signals
	// Threads returns the ids of the locked threads that check votes; Run reads their run-queue delay. Default: none.
	Threads func() []int

	CgroupRoot string // where control groups are mounted; default "/sys/fs/cgroup"
	ProcRoot   string // default "/proc"

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
}

// seams are what tests replace.
type seams struct {
	kernel kernel
	cpus   func() ([]int, error) // that this process may use
}

// Scheduler grants proofs and places children. Safe for concurrent use.
type Scheduler struct {
	cfg       Config    // immutable
	seams     seams     // immutable
	machine   Machine   // immutable
	cpus      []int     // immutable; threads of one core side by side
	placement Placement // immutable but for ProverCPUs, which Placement adds
	metrics   *metrics  // immutable
	groups    *cgroups  // immutable pointer, nil below T2; its files are written by Run, then by Close
	closing   sync.Once

	grant   chan struct{} // one slot: a token in it is the running proof. Waiters queue in the order of their coming
	waiters atomic.Int64  // for the grant
	proved  atomic.Bool   // the grant was given since Run looked last
	provers provers
	changed chan struct{} // one slot, a token while Run has not seen the latest budget

	mu       sync.Mutex
	budget   Budget   // guarded by mu; always valid
	decision Decision // guarded by mu; the last of Run, cores as enforced
}

// New makes a scheduler, finds the highest tier that the machine allows up to Config.Tier and sets it up. Whoever asks
// for T2 has to call Close.
func New(cfg Config) (*Scheduler, error) {
	return newScheduler(cfg, seams{kernel: osKernel{}, cpus: allowedCPUs}, runtime.GOMAXPROCS(0))
}

func newScheduler(cfg Config, seams seams, procs int) (*Scheduler, error) {
	setDefaults(&cfg)
	if _, err := os.Stat(cfg.Executable); err != nil {
		return nil, fmt.Errorf("find the program that starts children: %w", err)
	}
	highest, err := parseTier(cfg.Tier)
	if err != nil {
		return nil, fmt.Errorf("scheduler config: %w", err)
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
		changed: make(chan struct{}, 1),
		budget:  cfg.Budget,
	}
	s.climb(highest)
	if s.groups != nil {
		// Before the first prover, whether Run runs by then or not.
		if err := s.groups.setCores(cfg.Budget.top(procs), procs); err != nil {
			return nil, errors.Join(err, s.groups.close())
		}
	}
	s.metrics.tier.Set(float64(s.placement.Tier - Tier0))
	s.metrics.cgroup.WithLabelValues(s.machine.Cgroup.String()).Set(1)
	s.metrics.showLimits(cfg.Budget)
	s.metrics.cores.Set(s.enforced(cfg.Budget.top(procs), cfg.Budget))
	cfg.Logger.Info("prover placement", "tier", s.placement.Tier.String(), "why", s.placement.Reason, "cpus", procs,
		"prover_cpus", formatCPUs(s.Placement().ProverCPUs), "cgroup", s.machine.Cgroup.String(), "sched_idle", cfg.SchedIdle)
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
	if cfg.Threads == nil {
		cfg.Threads = func() []int { return nil }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

// Tier returns the placement tier in force.
func (s *Scheduler) Tier() Tier { return s.placement.Tier }

// Placement returns where provers run, under the present budget.
func (s *Scheduler) Placement() Placement {
	p := s.placement
	p.NodeCPUs = slices.Clone(p.NodeCPUs)
	p.ProverCPUs = slices.Clone(s.proverCPUs(s.Budget()))
	return p
}

// Machine returns what was detected at start.
func (s *Scheduler) Machine() Machine { return s.machine }

// Close removes the control groups of T2, killing what is left in the prover's; this process goes back to where it was.
// For the end, after Run has returned and the children are reaped. A second call does nothing.
func (s *Scheduler) Close() (err error) {
	s.closing.Do(func() {
		if s.groups != nil {
			err = s.groups.close()
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
