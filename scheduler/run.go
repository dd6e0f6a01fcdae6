package scheduler

import (
	"context"
	"errors"
	"math"
	"time"
)

const (
	// stepEvery is the distance of controller steps: a fifth of a window of the signals, eight in a slot.
	stepEvery = 500 * time.Millisecond
	// logEvery bounds the lines about a budget that moves to one in a slot of 4 s.
	logEvery = 4 * time.Second
	// logStep is the change of cores, as a share of P, that is worth a line by itself.
	logStep = 0.25
)

// Signals is what the node measures about itself.
type Signals struct {
	QueueWaitP99 time.Duration // votes; see Window
	CheckP99     time.Duration // aggregates
	Slowdown     float64       // see SlowdownMeter
	Interval     int           // within the slot, 0 to 4
	Waiting      bool          // a job waits that could run now; waiting for the grant counts without it
}

type signals interface {
	// Signals is called twice a second from Run and must not block.
	Signals() Signals
}

// SetBudget puts a budget in force: in running provers within a step of Run, in those that start from now on at once.
// It returns the one before. The error names the value that is out of its range and the range; nothing has changed then.
func (s *Scheduler) SetBudget(b Budget) (old Budget, err error) {
	if err := b.validate(s.machine.CPUs); err != nil {
		return s.Budget(), err
	}
	s.mu.Lock()
	old, s.budget = s.budget, b
	s.mu.Unlock()
	if old == b {
		return old, nil
	}
	s.metrics.showLimits(b)
	s.cfg.Logger.Info("budget set", "cores_min", b.CoresMin, "cores_max", b.CoresMax, "target_ms", b.target().Milliseconds(), "calendar", b.Calendar,
		"cores_min_before", old.CoresMin, "cores_max_before", old.CoresMax, "target_ms_before", old.target().Milliseconds(), "calendar_before", old.Calendar)
	select {
	case s.changed <- struct{}{}:
	default: // Run has the earlier change still to see, and will read this one with it
	}
	return old, nil
}

// Budget returns what is in force.
func (s *Scheduler) Budget() Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.budget
}

// Decision returns the last decision of Run, with the cores that the tier really leaves to the prover; the zero value
// before the first.
func (s *Scheduler) Decision() Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decision
}

// Run steps the controller each 500 ms and after each SetBudget until ctx ends, and then returns nil. One call at a time.
// What cannot be put in force is logged, counted and tried again.
func (s *Scheduler) Run(ctx context.Context) error {
	l := newLoop(s)
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for {
		l.step(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.changed:
		}
	}
}

// loop is the state of Run. Owned by it.
type loop struct {
	s     *Scheduler
	state State
	delay runDelay
	stat  cpuStat // at the last step

	// In force, as far as written; zero or empty before the first time.
	weight  int
	quota   string
	cpus    map[int]string // by process id of a prover, below T2
	failing bool           // the last step could not put everything in force

	logged       Decision
	loggedAt     time.Time
	loggedBudget Budget
}

func newLoop(s *Scheduler) *loop {
	return &loop{s: s, delay: runDelay{proc: s.cfg.ProcRoot}}
}

func (l *loop) step(now time.Time) {
	b := l.s.Budget()
	d := l.decide(now, b)
	shown := d
	shown.Cores = l.s.enforced(d.Cores, b)
	l.s.mu.Lock()
	l.s.decision = shown
	l.s.mu.Unlock()
	l.s.metrics.decisions.WithLabelValues(d.Reason.String()).Inc()
	err := l.apply(d, b)
	if err != nil {
		l.s.metrics.applyErrors.Inc()
		if !l.failing {
			l.s.cfg.Logger.Warn("budget not in force", "cores", d.Cores, "weight", d.Weight, "error", err)
		}
	} else {
		l.s.metrics.cores.Set(shown.Cores)
		l.s.metrics.weight.Set(float64(l.weight))
	}
	l.failing = err != nil
	l.log(now, d, b)
}

// decide reads the signals and steps the controller.
func (l *loop) decide(now time.Time, b Budget) Decision {
	s := l.s
	throttled := l.readStat()
	if s.cfg.Signals == nil {
		return Decision{Cores: b.top(s.machine.CPUs), Weight: weightNormal, Reason: ReasonNoSignals}
	}
	sig := s.cfg.Signals.Signals()
	in := Inputs{
		Now: now, Interval: sig.Interval, QueueWaitP99: sig.QueueWaitP99, CheckP99: sig.CheckP99, Slowdown: sig.Slowdown,
		RunDelay: l.delay.look(s.cfg.Threads()),
		// Short jobs may all end between two looks.
		Proving: s.proved.Swap(false) || len(s.grant) > 0, Waiting: sig.Waiting || s.waiters.Load() > 0,
		Throttled: throttled, CanLimit: s.groups != nil,
	}
	if s.groups != nil {
		in.PressureSome = s.groups.pressure()
	}
	s.metrics.slowdown.Set(sig.Slowdown)
	s.metrics.delay.Set(in.RunDelay)
	s.metrics.pressure.Set(in.PressureSome)
	var d Decision
	l.state, d = l.state.Step(in, b, s.machine.CPUs)
	return d
}

// readStat counts what the prover's leaf used since the last step and tells whether its quota ran out.
func (l *loop) readStat() (throttled bool) {
	if l.s.groups == nil {
		return false
	}
	now, err := l.s.groups.stat()
	if err != nil {
		return false // the leaf is there until Close; apply will say what is wrong with it
	}
	last := l.stat
	l.stat = now
	l.s.metrics.used.Add(max(0, now.usage-last.usage).Seconds())
	l.s.metrics.throttled.Add(max(0, now.throttled-last.throttled).Seconds())
	return now.throttles > last.throttles
}

// apply puts a decision in force, writing only what changed: weight and quota at T2; below, the operator's maximum as a
// number of CPUs, since there is nothing else.
func (l *loop) apply(d Decision, b Budget) error {
	s := l.s
	if s.groups == nil {
		return l.applyCPUs(s.cpusOf(b))
	}
	var weightErr, quotaErr error
	if d.Weight != l.weight {
		if weightErr = s.groups.setWeight(d.Weight); weightErr == nil {
			l.weight = d.Weight
		}
	}
	if q := quota(d.Cores, s.machine.CPUs); q != l.quota {
		if quotaErr = s.groups.setCores(d.Cores, s.machine.CPUs); quotaErr == nil {
			l.quota = q
		}
	}
	return errors.Join(weightErr, quotaErr)
}

// applyCPUs moves the running provers that have not been moved yet; a new one may have been placed before the last change.
func (l *loop) applyCPUs(cpus []int) error {
	want, known := formatCPUs(cpus), l.cpus
	l.cpus = make(map[int]string)
	var errs []error
	for _, pid := range l.s.provers.list() {
		if known[pid] != want {
			if err := setTreeAffinity(l.s.cfg.ProcRoot, pid, cpus); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		l.cpus[pid] = want
	}
	return errors.Join(errs...)
}

// log writes a line when the reason changes, but for the calendar's, or the cores do by much.
func (l *loop) log(now time.Time, d Decision, b Budget) {
	if d.Reason == ReasonCalendar {
		d.Reason = ReasonSteady
	}
	first := l.loggedAt.IsZero()
	moved := math.Abs(d.Cores-l.logged.Cores) >= logStep*float64(l.s.machine.CPUs) || b != l.loggedBudget
	early := now.Sub(l.loggedAt) < logEvery
	if d.Reason == ReasonShrinkSlowdown && l.logged.Reason != ReasonShrinkSlowdown {
		early = false // the first cut is what an operator looks for
	}
	if !first && (early || d.Reason == l.logged.Reason && !moved) {
		return
	}
	l.s.cfg.Logger.Info("prover budget", "cores", d.Cores, "enforced_cores", l.s.enforced(d.Cores, b), "weight", l.weight,
		"reason", d.Reason.String(), "why", d.Reason.Short(), "tier", l.s.placement.Tier.String())
	l.logged, l.loggedAt, l.loggedBudget = d, now, b
}

// enforced is how many cores the tier really leaves to the prover when the controller came to some.
func (s *Scheduler) enforced(cores float64, b Budget) float64 {
	if s.placement.Tier == Tier2 {
		return cores
	}
	return float64(min(len(s.cpusOf(b)), s.machine.CPUs))
}

// cpusOf is proverCPUs with all CPUs spelled out.
func (s *Scheduler) cpusOf(b Budget) []int {
	if cpus := s.proverCPUs(b); cpus != nil {
		return cpus
	}
	return sorted(s.cpus)
}
