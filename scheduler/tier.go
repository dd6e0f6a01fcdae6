package scheduler

import (
	"fmt"
	"strings"
)

// Tier is how well a prover is kept apart from the node, by what the machine allows.
type Tier uint8

// Tiers. Each has what the one below has.
const (
	TierUnknown Tier = iota
	Tier0            // own process at the lowest priority
	Tier1            // besides, cores that the prover does not run on
	Tier2            // cgroup v2: a leaf of its own with weight and quota; no reserved cores, so that idle ones are used
	TierAuto         // a wish and never in force: the highest that the machine allows
)

// String returns "T0", "T1", "T2" or "auto".
func (t Tier) String() string {
	switch t {
	case Tier0:
		return "T0"
	case Tier1:
		return "T1"
	case Tier2:
		return "T2"
	case TierAuto:
		return "auto"
	case TierUnknown:
	}
	return "unknown"
}

// ParseTier reads what String writes: a tier to ask for.
func ParseTier(text string) (Tier, error) {
	for t := Tier0; t <= TierAuto; t++ {
		if t.String() == text {
			return t, nil
		}
	}
	return TierUnknown, fmt.Errorf("tier %q, must be auto, T0, T1 or T2", text)
}

// Placement is where provers run and why there.
type Placement struct {
	Tier       Tier
	Reason     string // what was found at each tier from T2 down to this one
	ProverCPUs []int  // the CPUs of the prover, ascending; nil for all that the node may use
	NodeCPUs   []int  // the CPUs that no prover runs on, ascending; nil for none
	CgroupPath string // directory of the group that holds both leaves; empty below T2
}

// reserveFrom is the number of CPUs from which some are reserved: with fewer, one core for the node alone would take
// a third of the prover's and more, where priority alone gives checks their idle latency for a tenth.
const reserveFrom = 4

// climb finds the highest tier up to the one asked for that the machine allows, and opens control groups where it needs
// them and groups, those that are open already, is nil. Groups once open stay so: the node could leave its leaf only
// after all its children.
func (s *Scheduler) climb(highest Tier, groups *cgroups) (p Placement, open *cgroups) {
	var found []string
	note := func(t Tier, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", t, fmt.Sprintf(format, args...)))
	}
	defer func() { p.Reason = strings.Join(found, "; ") }()

	switch {
	case highest < Tier2:
		note(Tier2, "not asked for")
	case s.machine.Cgroup != CgroupV2:
		note(Tier2, "the host has cgroup %s, this needs v2", s.machine.Cgroup)
	default:
		var err error
		if groups == nil {
			groups, err = openCgroups(s.seams.kernel, s.cfg.CgroupRoot, s.cfg.ProcRoot, s.cfg.MemoryMax)
		}
		if err == nil {
			note(Tier2, "%s", groups.describe())
			return Placement{Tier: Tier2, CgroupPath: groups.parent}, groups
		}
		note(Tier2, "%v", err)
	}

	cpus := min(s.machine.CPUs, len(s.cpus))
	switch {
	case highest < Tier1:
		note(Tier1, "not asked for")
	case cpus < reserveFrom:
		note(Tier1, "%d CPUs, this needs %d", cpus, reserveFrom)
	default:
		reserved := max(1, cpus/4)
		p = Placement{Tier: Tier1, NodeCPUs: sorted(s.cpus[:reserved]), ProverCPUs: sorted(s.cpus[reserved:])}
		note(Tier1, "CPUs %s for the node alone", formatCPUs(p.NodeCPUs))
		return p, groups
	}
	note(Tier0, "own process at the lowest priority")
	return Placement{Tier: Tier0}, groups
}

// proverCPUs returns the CPUs of the prover in a place and under a budget; nil for all. A maximum in cores is a number of
// CPUs below T2, rounded up: an approximation, since only a cgroup can give a part of a core.
func (s *Scheduler) proverCPUs(p *Placement, b Budget) []int {
	if p.Tier == Tier2 {
		return nil
	}
	all := s.cpus
	if p.Tier == Tier1 {
		all = s.cpus[len(p.NodeCPUs):]
	}
	// From the end of the list: its start is the node's at T1, and the lowest CPUs of a machine serve its interrupts.
	if n := b.wholeCores(); n > 0 && n < len(all) {
		return sorted(all[len(all)-n:])
	}
	return p.ProverCPUs
}

// cpusOf is proverCPUs with all CPUs spelled out.
func (s *Scheduler) cpusOf(p *Placement, b Budget) []int {
	if cpus := s.proverCPUs(p, b); cpus != nil {
		return cpus
	}
	return sorted(s.cpus)
}

// enforced is how many cores the tier really leaves to the prover when the controller came to some.
func (s *Scheduler) enforced(cores float64, p *Placement, b Budget) float64 {
	if p.Tier == Tier2 {
		return cores
	}
	return float64(min(len(s.cpusOf(p, b)), s.machine.CPUs))
}
