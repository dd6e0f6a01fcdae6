package node

import (
	"time"

	"aggnode/api"
	"aggnode/pipeline"
	"aggnode/scheduler"
)

// signals are what the budget controller looks at, fed by the workers. Safe for concurrent use.
type signals struct {
	queueWait scheduler.Window // votes
	check     scheduler.Window // aggregates
	slowdown  scheduler.SlowdownMeter
	n         *Node
}

// observe takes the measurement of one piece of work. Only votes tell the slowdown: their check computes and waits for
// nothing, while an aggregate's waits for the verifier child.
func (s *signals) observe(w pipeline.Work) {
	switch w.Class {
	case pipeline.ClassAttestation:
		s.queueWait.Add(w.Wait)
		s.slowdown.Add(w.Wall, w.CPU)
	case pipeline.ClassAggregate:
		s.check.Add(w.Wall)
	case pipeline.ClassUnknown, pipeline.ClassBlock, pipeline.ClassLocal:
	}
}

// Signals answers the controller, twice a second.
func (s *signals) Signals() scheduler.Signals {
	_, interval := s.n.clock.At()
	return scheduler.Signals{
		QueueWaitP99: s.queueWait.P99(), CheckP99: s.check.P99(), Slowdown: s.slowdown.Slowdown(), Interval: int(interval),
	}
}

// SetBudget puts a budget in force while the node runs: after a changed settings file, for instance.
func (n *Node) SetBudget(b scheduler.Budget) error {
	_, err := n.sched.SetBudget(b)
	return err
}

// operatorBudget is the budget as the API reads and changes it.
type operatorBudget struct{ n *Node }

// BudgetView returns the settings in force and the last decision.
func (o operatorBudget) BudgetView() api.BudgetView {
	b, d := o.n.sched.Budget(), o.n.sched.Decision()
	target := float64(b.Target.Microseconds()) / 1000
	return api.BudgetView{
		BudgetSettings: api.BudgetSettings{CoresMin: &b.CoresMin, CoresMax: &b.CoresMax, TargetMS: &target, Calendar: &b.Calendar},
		Tier:           o.n.sched.Tier().String(), Cores: d.Cores, Weight: d.Weight, Reason: d.Reason.String(),
	}
}

// ChangeBudget changes what is given and leaves the rest.
func (o operatorBudget) ChangeBudget(c api.BudgetSettings) error {
	b := o.n.sched.Budget()
	if c.CoresMin != nil {
		b.CoresMin = *c.CoresMin
	}
	if c.CoresMax != nil {
		b.CoresMax = *c.CoresMax
	}
	if c.TargetMS != nil {
		b.Target = time.Duration(*c.TargetMS * float64(time.Millisecond))
	}
	if c.Calendar != nil {
		b.Calendar = *c.Calendar
	}
	return o.n.SetBudget(b)
}
