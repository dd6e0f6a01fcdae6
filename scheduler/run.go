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
	QueueWaitP99 time.Duration // votes; see Meters
	CheckP99     time.Duration // aggregates
	Slowdown     float64       // wall time over CPU time of checks; see Meters
	Interval     int           // within the slot, 0 to 4
	Waiting      bool          // a job waits that could run now; waiting for the grant counts without it
}

type signals interface {
	// Signals is called twice a second from Run and must not block.
	Signals() Signals
}

// Budget returns what is in force.
func (s *Scheduler) Budget() Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.budget
}

// Decision returns the last decision of Run, with the cores that the tier really leaves to the prover and without a weight
// where the tier has none; the zero value before the first.
func (s *Scheduler) Decision() Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decision
}

// Run steps the controller each 500 ms and with each SetBudget until ctx ends, and then returns nil. One call at a time.
// What cannot be put in force is logged, counted and tried again. While it runs the node has real-time priority, where
// Config.RealTime and the system allow that.
func (s *Scheduler) Run(ctx context.Context) error {
	l := newLoop(s)
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	defer s.precedence.stop()
	s.precedence.step(time.Now())
	l.step(time.Now(), false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.precedence.step(time.Now())
			l.step(time.Now(), false)
		case c := <-s.changes:
			c.done <- l.change(c)
		}
	}
}

// loop is the state of Run. Owned by it.
type loop struct {
	s     *Scheduler
	state State
	delay runDelay
	stat  cpuStat // at the last step

	force   force
	settled map[int]string // where provers were moved to, by process id
	failing bool           // the last step could not put everything in force

	logged       Decision
	loggedAt     time.Time
	loggedBudget Budget
}

// force is what the prover's leaf has, as far as written; zero before the first time.
type force struct {
	weight int
	quota  string
}

func newLoop(s *Scheduler) *loop {
	return &loop{s: s, delay: runDelay{proc: s.cfg.ProcRoot}}
}

// step decides and puts that in force. What an operator's change led to is that change's to tell of.
func (l *loop) step(now time.Time, isOperators bool) {
	b := l.s.Budget()
	p, groups := l.s.place()
	d := l.decide(now, groups, b)
	shown := d
	shown.Cores = l.s.enforced(d.Cores, &p, b)
	if groups == nil {
		shown.Weight = 0
	}
	l.s.mu.Lock()
	last := l.s.decision
	l.s.decision = shown
	l.s.mu.Unlock()
	l.s.metrics.decisions.WithLabelValues(d.Reason.String()).Inc()
	before := l.force
	err := l.apply(d, &p, groups, b)
	if l.force != before && before != (force{}) && !isOperators {
		l.noteMove(before, last.Cores, d)
	}
	if err != nil {
		l.s.metrics.applyErrors.Inc()
		if !l.failing {
			l.s.cfg.Logger.Warn("budget not in force", "cores", d.Cores, "weight", d.Weight, "error", err)
		}
	} else {
		l.s.metrics.cores.Set(shown.Cores)
		l.s.metrics.weight.Set(float64(l.force.weight))
	}
	l.failing = err != nil
	l.log(now, d, &p, b)
}

// decide reads the signals and steps the controller.
func (l *loop) decide(now time.Time, groups *cgroups, b Budget) Decision {
	s := l.s
	throttled := l.readStat(groups)
	if s.cfg.Signals == nil {
		return Decision{Cores: b.top(s.machine.CPUs), Weight: weightNormal, Reason: ReasonNoSignals}
	}
	sig := s.cfg.Signals.Signals()
	in := Inputs{
		Now: now, Interval: sig.Interval, QueueWaitP99: sig.QueueWaitP99, CheckP99: sig.CheckP99, Slowdown: sig.Slowdown,
		RunDelay: l.delay.look(),
		// Short jobs may all end between two looks.
		Proving: s.proved.Swap(false) || len(s.grant) > 0, Waiting: sig.Waiting || s.waiters.Load() > 0,
		Throttled: throttled, CanLimit: groups != nil,
	}
	if groups != nil {
		in.PressureSome = groups.pressure()
	}
	s.metrics.slowdown.Set(sig.Slowdown)
	s.metrics.delay.Set(in.RunDelay)
	s.metrics.pressure.Set(in.PressureSome)
	var d Decision
	l.state, d = l.state.Step(in, b, s.machine.CPUs)
	return d
}

// readStat counts what the prover's leaf used since the last step and tells whether its quota ran out.
func (l *loop) readStat(groups *cgroups) (throttled bool) {
	if groups == nil {
		return false
	}
	now, err := groups.stat()
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
func (l *loop) apply(d Decision, p *Placement, groups *cgroups, b Budget) error {
	settleErr := l.settle(p, b)
	if groups == nil {
		return settleErr
	}
	var weightErr, quotaErr error
	if d.Weight != l.force.weight {
		if weightErr = groups.setWeight(d.Weight); weightErr == nil {
			l.force.weight = d.Weight
		}
	}
	cpus := l.s.machine.CPUs
	if q := quota(d.Cores, cpus); q != l.force.quota {
		if quotaErr = groups.setCores(d.Cores, cpus); quotaErr == nil {
			l.force.quota = q
		}
	}
	return errors.Join(settleErr, weightErr, quotaErr)
}

// log writes a line when the reason changes, but for the calendar's, or the cores do by much.
func (l *loop) log(now time.Time, d Decision, p *Placement, b Budget) {
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
	l.s.cfg.Logger.Info("prover budget", "cores", d.Cores, "enforced_cores", l.s.enforced(d.Cores, p, b), "weight", l.force.weight,
		"reason", d.Reason.String(), "why", d.Reason.Short(), "tier", p.Tier.String())
	l.logged, l.loggedAt, l.loggedBudget = d, now, b
}
