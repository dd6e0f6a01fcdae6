package aggregate

import "math"

const (
	// slowFrom and slowUntil are how many times longer than at hello a job must be predicted to take for the log to call
	// the prover slow, and to take that back. Under the node's own load jobs take up to half as long again.
	slowFrom, slowUntil = 2, 1.5
)

// recall brings the cost model to the circumstances of this moment: what was learnt under those before is kept, and what
// was learnt under these is taken up. Called once a slot.
func (a *Aggregator) recall() {
	caps, ok := a.prover.Capabilities()
	if a.cfg.Costs == nil || a.cfg.Place == nil || !ok {
		return
	}
	a.cost.seed(caps.HelloProve)
	tier, cores := a.cfg.Place()
	key := CostKey{Revision: caps.Revision, Tier: tier, Cores: int(math.Ceil(cores))}
	if key == a.costKey {
		return
	}
	a.keepCost()
	a.costKey = key
	a.cost.shape = defaultShape
	if s, ok := a.cfg.Costs.shapes[shapeKey{caps.Revision, caps.Threads}]; ok {
		a.cost.shape = s
	}
	if c, ok := a.cfg.Costs.learnt[key]; ok {
		a.cost.load(c)
		a.log.Debug("prover costs of an earlier run", "tier", tier, "cores", key.Cores,
			"fixed_ms", int64(1000*c.Fixed), "raw_ms", 1000*c.Raw, "child_ms", int64(1000*c.Child))
	}
}

// keepCost stores what was learnt under the circumstances so far.
func (a *Aggregator) keepCost() {
	if a.cfg.Costs != nil && a.costKey != (CostKey{}) && a.cost.hasLearnt {
		a.cfg.Costs.put(a.costKey, a.cost.cost())
	}
}

// saySlow says once when the prover has become slow, and once when it is over.
func (a *Aggregator) saySlow() {
	switch times := a.cost.slowness(); {
	case !a.isSlow && times >= slowFrom:
		a.isSlow = true
		a.log.Warn("the prover takes longer than at its start",
			"times", math.Round(10*times)/10, "hello_ms", a.cost.hello.Milliseconds())
	case a.isSlow && times < slowUntil:
		a.isSlow = false
		a.log.Info("the prover is as fast as at its start again")
	}
}
