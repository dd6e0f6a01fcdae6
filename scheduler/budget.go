package scheduler

import (
	"fmt"
	"math"
	"time"
)

const (
	// defaultTarget is what p99 of queue wait and check time may reach before slowdown counts: the queue target of
	// votes (ARCHITECTURE.md section 7). Checks of backends that take longer than this by themselves are always above
	// it, and slowdown alone decides.
	defaultTarget = 50 * time.Millisecond
	// minTarget is below what a check costs on any machine; maxTarget is longer than a slot.
	minTarget, maxTarget = time.Millisecond, 10 * time.Second
	// minCores is the least maximum: at a tenth of a core a proof of a second of CPU takes longer than two slots.
	minCores = 0.1
)

// Budget is what the operator allows the prover. The zero value sets no limits.
type Budget struct {
	CoresMin float64       // the controller takes the prover no lower than this; 0 leaves its own floor
	CoresMax float64       // hard limit in cores; 0 is none
	Target   time.Duration // p99 of queue wait and of checks above which the prover may have to yield; 0 is 50 ms
	Calendar bool          // lower weight in intervals 0 and 1, when blocks and votes come
	// Tier is the highest placement to use. New gives up what the machine does not allow; a later change to a tier that
	// is not to be had is refused. 0 leaves it as it is, at New it is Tier0, which changes nothing about the own process.
	Tier Tier
}

// validate names the field that is out of its range, and the range. cpus is P.
func (b Budget) validate(cpus int) error {
	// Written so that NaN is refused.
	if b.CoresMax != 0 && !(b.CoresMax >= minCores && b.CoresMax <= float64(cpus)) {
		return fmt.Errorf("cores max %g, must be 0 for no limit or %g to %d", b.CoresMax, minCores, cpus)
	}
	top := float64(cpus)
	if b.CoresMax > 0 {
		top = b.CoresMax
	}
	if !(b.CoresMin >= 0 && b.CoresMin <= top) {
		return fmt.Errorf("cores min %g, must be 0 to %g", b.CoresMin, top)
	}
	if b.Tier > TierAuto {
		return fmt.Errorf("tier %d, must be auto, T0, T1 or T2", b.Tier)
	}
	if b.Target != 0 && (b.Target < minTarget || b.Target > maxTarget) {
		return fmt.Errorf("target %s, must be 0 for %s or %s to %s", b.Target, defaultTarget, minTarget, maxTarget)
	}
	return nil
}

// target returns Target with its default.
func (b Budget) target() time.Duration {
	if b.Target == 0 {
		return defaultTarget
	}
	return b.Target
}

// top is the most that the prover may have of p cores.
func (b Budget) top(p int) float64 {
	if b.CoresMax > 0 {
		return min(b.CoresMax, float64(p))
	}
	return float64(p)
}

// wholeCores is CoresMax as a number of CPUs, rounded up; 0 for no limit.
func (b Budget) wholeCores() int { return int(math.Ceil(b.CoresMax)) }
