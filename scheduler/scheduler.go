package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"os"
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

// Tier is how well a prover can be kept apart from the node, by what the machine allows.
type Tier uint8

// Tiers. Only T0 is put in force so far.
const (
	TierUnknown Tier = iota
	Tier0            // own process at the lowest priority
)

// String returns "T0".
func (t Tier) String() string {
	switch t {
	case Tier0:
		return "T0"
	case TierUnknown:
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

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
}

// Scheduler grants proofs and places children. Safe for concurrent use.
type Scheduler struct {
	cfg     Config   // immutable
	machine Machine  // immutable
	metrics *metrics // immutable

	grant chan struct{} // one slot: a token in it is the running proof. Waiters queue in the order of their coming
}

// New makes a scheduler and looks at what the machine offers.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	if _, err := os.Stat(cfg.Executable); err != nil {
		return nil, fmt.Errorf("find the program that starts children: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{
		cfg:     cfg,
		machine: detect("/"),
		metrics: newMetrics(cfg.Registerer),
		grant:   make(chan struct{}, 1),
	}
	s.metrics.tier.Set(0) // T0
	s.metrics.cgroup.WithLabelValues(s.machine.Cgroup.String()).Set(1)
	cfg.Logger.Info("prover placement", "tier", Tier0.String(), "cpus", s.machine.CPUs,
		"cgroup", s.machine.Cgroup.String(), "sched_idle", cfg.SchedIdle)
	return s, nil
}

// Tier returns the placement tier in force.
func (s *Scheduler) Tier() Tier { return Tier0 }

// Machine returns what was detected at start.
func (s *Scheduler) Machine() Machine { return s.machine }

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
		select {
		case s.grant <- struct{}{}:
		case <-ctx.Done():
			s.metrics.acquires.WithLabelValues("cancelled").Inc()
			return nil, ctx.Err()
		}
	}
	s.metrics.acquires.WithLabelValues("granted").Inc()
	s.metrics.wait.Observe(time.Since(began).Seconds())
	s.metrics.granted.Set(1)
	return releaseOnce(func() {
		s.metrics.granted.Set(0)
		<-s.grant
	}), nil
}
