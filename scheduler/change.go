package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// changeTimeout bounds the wait for Run, which is ready for a change twice a second at the least.
const changeTimeout = 5 * time.Second

// changeSpan is the name of the span of each change, the operator's and the controller's.
const changeSpan = "budget_change"

// Change is what SetBudget came to.
type Change struct {
	Old, New Budget // equal where nothing changed
	// Moved says in words what a change of the tier did to the provers that run; empty without one.
	Moved string
}

// change is a wish on its way to Run, which alone writes control files.
type change struct {
	budget Budget
	cause  Cause
	done   chan<- changed // room for the one answer
}

type changed struct {
	Change
	err error
}

// SetBudget puts a budget in force, for provers that run and for those that start from now on, before it returns. A
// change of the tier moves the provers that run. The error names the value that is out of its range and the range, or
// says why the tier is not to be had; nothing has changed then. It needs Run, and waits for it at most 5 s.
func (s *Scheduler) SetBudget(ctx context.Context, b Budget, cause Cause) (Change, error) {
	if err := b.validate(s.machine.CPUs); err != nil {
		return Change{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	done := make(chan changed, 1)
	select {
	case s.changes <- change{b, cause, done}:
	case <-ctx.Done():
		return Change{}, fmt.Errorf("the budget controller does not answer: %w", ctx.Err())
	}
	answer := <-done // Run answers what it took before it looks at anything else
	return answer.Change, answer.err
}

// change serves SetBudget.
func (l *loop) change(c change) changed {
	s := l.s
	old, b := s.Budget(), c.budget
	if b.Tier == TierUnknown {
		b.Tier = old.Tier
	}
	out := changed{Change: Change{Old: old, New: b}}
	if b == old {
		return out
	}
	_, span := s.cfg.Tracer.Start(context.Background(), changeSpan, trace.WithAttributes(append(
		budgetAttributes("old_", old), append(budgetAttributes("", b), attribute.String("cause", c.cause.String()))...)...))
	defer span.End()
	if b.Tier != old.Tier {
		if out.Moved, out.err = l.changeTier(b); out.err != nil {
			span.SetStatus(codes.Error, out.err.Error())
			return changed{err: out.err}
		}
		span.SetAttributes(attribute.String("moved", out.Moved))
	}
	s.mu.Lock()
	s.budget = b
	tier := s.placement.Tier
	s.mu.Unlock()
	s.metrics.showLimits(b)
	s.metrics.changes.WithLabelValues(c.cause.String()).Inc()
	args := []any{
		"cause", c.cause.String(), "cores_min", b.CoresMin, "cores_max", b.CoresMax, "target_ms", b.target().Milliseconds(), "calendar", b.Calendar,
		"cores_min_before", old.CoresMin, "cores_max_before", old.CoresMax, "target_ms_before", old.target().Milliseconds(), "calendar_before", old.Calendar,
	}
	if out.Moved != "" {
		args = append(args, "tier", tier.String(), "tier_asked", b.Tier.String(), "tier_asked_before", old.Tier.String(), "moved", out.Moved)
	}
	s.cfg.Logger.Info("budget set", args...)
	l.step(time.Now(), true)
	return out
}

func budgetAttributes(prefix string, b Budget) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Float64(prefix+"cores_min", b.CoresMin), attribute.Float64(prefix+"cores_max", b.CoresMax),
		attribute.Int64(prefix+"target_ms", b.target().Milliseconds()), attribute.Bool(prefix+"calendar", b.Calendar),
		attribute.String(prefix+"tier", b.Tier.String()),
	}
}

// changeTier finds the place that a budget asks for, takes it for provers that start and moves those that run.
func (l *loop) changeTier(b Budget) (moved string, err error) {
	s := l.s
	s.mu.Lock()
	before, groups := s.placement.Tier, s.groups
	s.mu.Unlock()
	// Some kernels let no thread at real-time priority into a group.
	resume := s.precedence.suspend()
	p, groups := s.climb(b.Tier, groups)
	resume()
	if b.Tier != TierAuto && p.Tier < b.Tier {
		return "", fmt.Errorf("tier %s is not to be had: %s", b.Tier, p.Reason)
	}
	s.mu.Lock()
	s.placement, s.groups = p, groups
	s.mu.Unlock()
	if p.Tier == before {
		return "the tier in force is the one before", nil
	}
	s.metrics.tier.Set(float64(p.Tier - Tier0))
	l.force = force{} // whatever stands in the files, it is written anew
	running := len(s.provers.list())
	err = l.settle(&p, b)
	switch {
	case err != nil:
		return fmt.Sprintf("not every running prover could be moved, the next one starts there: %v", err), nil
	case running == 0:
		return "no prover runs, the next one starts there", nil
	}
	return fmt.Sprintf("running provers were moved: %d", running), nil
}

// settle moves the provers that run to where a placement and a budget have them, each once: one that has just started
// may have been placed before the last change.
func (l *loop) settle(p *Placement, b Budget) error {
	l.s.mu.Lock()
	groups := l.s.groups // at T2 or not: below it they are the way back
	l.s.mu.Unlock()
	cpus := l.s.cpusOf(p, b)
	leaf := nodeLeaf
	if p.Tier == Tier2 {
		leaf = proverLeaf
	}
	want, known := leaf+" "+formatCPUs(cpus), l.settled
	l.settled = make(map[int]string)
	var errs []error
	for _, pid := range l.s.provers.list() {
		if known[pid] != want {
			err := setTreeAffinity(l.s.cfg.ProcRoot, pid, cpus)
			if err == nil && groups != nil {
				err = groups.enter(leaf, l.s.cfg.ProcRoot, pid)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
		}
		l.settled[pid] = want
	}
	return errors.Join(errs...)
}

// noteMove counts and traces what the controller put in force by itself.
func (l *loop) noteMove(before force, cores float64, d Decision) {
	cause := CauseController
	isCalendars := func(weight int) bool { return weight == weightNormal || weight == weightCalendar }
	if before.quota == l.force.quota && isCalendars(before.weight) && isCalendars(l.force.weight) {
		cause = CauseCalendar
	}
	l.s.metrics.changes.WithLabelValues(cause.String()).Inc()
	l.s.cfg.Logger.Debug("budget moved", "cause", cause.String(), "reason", d.Reason.String(), "cores", d.Cores, "weight", d.Weight,
		"cores_before", cores, "weight_before", before.weight)
	_, span := l.s.cfg.Tracer.Start(context.Background(), changeSpan, trace.WithAttributes(
		attribute.String("cause", cause.String()), attribute.String("reason", d.Reason.String()),
		attribute.Float64("old_cores", cores), attribute.Float64("cores", d.Cores),
		attribute.Int("old_weight", before.weight), attribute.Int("weight", d.Weight)))
	span.End()
}
