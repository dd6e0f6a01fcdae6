package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"aggnode/api"
	"aggnode/prover"
	"aggnode/scheduler"
	"aggnode/verify"
)

// signals are what the budget controller looks at: the meters that workers and checks feed, and the clock.
type signals struct {
	scheduler.Meters
	n *Node
}

// meteredChecker tells the meters what checks took where they were made.
type meteredChecker struct {
	arbiter *verify.Arbiter
	meters  *scheduler.Meters
}

// Verify is verify.Arbiter.Check.
func (c meteredChecker) Verify(ctx context.Context, claim prover.Claim, proof []byte) error {
	v, err := c.arbiter.Check(ctx, claim, proof)
	c.meters.Proof(v.Wall, v.CPU)
	return err
}

// checker checks proofs: the backend's checker, metered where checks are of proofs.
func (n *Node) checker() proofChecker {
	if n.backend.arbiter == nil {
		return n.backend.checker
	}
	return meteredChecker{n.backend.arbiter, &n.signals.Meters}
}

// VerifyBatch is verify.Arbiter.CheckBatch.
func (c meteredChecker) VerifyBatch(ctx context.Context, checks []verify.ProofCheck) []error {
	v, errs := c.arbiter.CheckBatch(ctx, checks)
	c.meters.Proof(v.Wall, v.CPU)
	return errs
}

// Signals answers the controller, twice a second.
func (s *signals) Signals() scheduler.Signals {
	_, interval := s.n.clock.At()
	return s.Meters.Signals(int(interval))
}

// placed is a budget with the tier that this node has a use for: auto where none is said, and the lowest where there is no
// prover that would need a place.
func (c *Config) placed(b scheduler.Budget) scheduler.Budget {
	b.Tier = cmp.Or(b.Tier, scheduler.TierAuto)
	if !c.IsAggregator || c.ProverClass == ProverPlain {
		b.Tier = scheduler.Tier0
	}
	return b
}

// SetBudget puts a budget in force while the node runs, and says what became of it. The error says what is out of its
// range, or why the tier is not to be had.
func (n *Node) SetBudget(ctx context.Context, b scheduler.Budget, cause scheduler.Cause) (scheduler.Change, error) {
	return n.sched.SetBudget(ctx, n.cfg.placed(b), cause)
}

// operatorBudget is the budget as the API reads and changes it.
type operatorBudget struct{ n *Node }

// BudgetView returns the settings in force and the last decision.
func (o operatorBudget) BudgetView() api.BudgetView {
	b, d, place := o.n.sched.Budget(), o.n.sched.Decision(), o.n.sched.Placement()
	target := float64(b.Target.Microseconds()) / 1000
	return api.BudgetView{
		BudgetSettings: api.BudgetSettings{CoresMin: &b.CoresMin, CoresMax: &b.CoresMax, TargetMS: &target, Calendar: &b.Calendar},
		Tier:           place.Tier.String(), TierAsked: b.Tier.String(), TierReason: place.Reason,
		Cores: d.Cores, Weight: d.Weight, Reason: d.Reason.String(),
	}
}

// ChangeBudget changes what is given and leaves the rest.
func (o operatorBudget) ChangeBudget(ctx context.Context, c api.BudgetSettings) (moved string, err error) {
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
	if c.Tier != nil {
		if b.Tier, err = scheduler.ParseTier(*c.Tier); err != nil {
			return "", err
		}
		if o.n.cfg.placed(b).Tier != b.Tier {
			return "", fmt.Errorf("tier %s: a prover with --prover-class plain is not placed", b.Tier)
		}
	}
	change, err := o.n.SetBudget(ctx, b, scheduler.CauseAPI)
	return change.Moved, err
}
