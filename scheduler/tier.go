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
)

// String returns "T0", "T1" or "T2".
func (t Tier) String() string {
	switch t {
	case Tier0:
		return "T0"
	case Tier1:
		return "T1"
	case Tier2:
		return "T2"
	case TierUnknown:
	}
	return "unknown"
}

// parseTier reads Config.Tier: the highest tier to try.
func parseTier(text string) (Tier, error) {
	switch text {
	case "", "T0":
		return Tier0, nil
	case "T1":
		return Tier1, nil
	case "T2", "auto":
		return Tier2, nil
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

// climb finds the highest tier that the machine and the configuration allow, and sets it up.
func (s *Scheduler) climb(highest Tier) {
	var found []string
	note := func(t Tier, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", t, fmt.Sprintf(format, args...)))
	}
	defer func() { s.placement.Reason = strings.Join(found, "; ") }()

	switch {
	case highest < Tier2:
		note(Tier2, "not asked for")
	case s.machine.Cgroup != CgroupV2:
		note(Tier2, "the host has cgroup %s, this needs v2", s.machine.Cgroup)
	default:
		groups, err := openCgroups(s.seams.kernel, s.cfg.CgroupRoot, s.cfg.ProcRoot, s.cfg.MemoryMax)
		if err == nil {
			s.groups = groups
			s.placement.Tier, s.placement.CgroupPath = Tier2, groups.parent
			note(Tier2, "%s", groups.describe())
			return
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
		s.placement.Tier = Tier1
		s.placement.NodeCPUs = sorted(s.cpus[:reserved])
		s.placement.ProverCPUs = sorted(s.cpus[reserved:])
		note(Tier1, "CPUs %s for the node alone", formatCPUs(s.placement.NodeCPUs))
		return
	}
	s.placement.Tier = Tier0
	note(Tier0, "own process at the lowest priority")
}

// proverCPUs returns the CPUs of the prover under a budget; nil for all. A maximum in cores is a number of CPUs below
// T2, rounded up: an approximation, since only a cgroup can give a part of a core.
func (s *Scheduler) proverCPUs(b Budget) []int {
	if s.placement.Tier == Tier2 {
		return nil
	}
	all := s.cpus
	if s.placement.Tier == Tier1 {
		all = s.cpus[len(s.placement.NodeCPUs):]
	}
	// From the end of the list: its start is the node's at T1, and the lowest CPUs of a machine serve its interrupts.
	if n := b.wholeCores(); n > 0 && n < len(all) {
		return sorted(all[len(all)-n:])
	}
	return s.placement.ProverCPUs
}
