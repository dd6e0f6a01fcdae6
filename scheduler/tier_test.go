package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestTheLadder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		tier         Tier
		cpus         int
		max          float64
		want         Tier
		reason       string
		node, prover []int
	}{
		{"a group is better than cores", TierAuto, 8, 0, Tier2, "T2: leaves in ", nil, nil},
		{"the same by name", Tier2, 2, 1, Tier2, "T2: leaves in ", nil, nil},
		{"cores, with a group at hand", Tier1, 4, 0, Tier1, "T2: not asked for; T1: CPUs 0 for the node alone", []int{0}, []int{1, 2, 3}},
		{"a quarter of the cores", Tier1, 10, 0, Tier1, "CPUs 0-1", []int{0, 1}, []int{2, 3, 4, 5, 6, 7, 8, 9}},
		{"cores and a maximum", Tier1, 8, 2.5, Tier1, "CPUs 0-1", []int{0, 1}, []int{5, 6, 7}},
		{"cores and a maximum that they have anyway", Tier1, 8, 7, Tier1, "CPUs 0-1", []int{0, 1}, []int{2, 3, 4, 5, 6, 7}},
		{"too few cores", Tier1, 3, 0, Tier0, "T1: 3 CPUs, this needs 4; T0: own process", nil, nil},
		{"priority alone, with everything at hand", Tier0, 64, 0, Tier0, "T2: not asked for; T1: not asked for", nil, nil},
		{"nothing said", TierUnknown, 64, 0, Tier0, "T1: not asked for", nil, nil},
		{"priority and a maximum", Tier0, 4, 1.1, Tier0, "", nil, []int{2, 3}},
		{"priority and all cores as the maximum", Tier0, 4, 4, Tier0, "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newFakeKernel(t, "/svc", "cpu", "memory")
			cfg := k.config()
			cfg.Budget = Budget{Tier: c.tier, CoresMax: c.max}
			s := k.scheduler(cfg, c.cpus)
			defer func() { require.NoError(t, s.Close()) }()
			p := s.Placement()
			require.Equal(t, c.want, s.Tier())
			require.Equal(t, c.want, p.Tier)
			require.Contains(t, p.Reason, c.reason)
			require.Equal(t, c.node, p.NodeCPUs)
			require.Equal(t, c.prover, p.ProverCPUs)
			require.Equal(t, float64(c.want-Tier0), testutil.ToFloat64(s.metrics.tier))
			cmd := exec.Command("/bin/true")
			require.NoError(t, s.Place(ClassProver)(cmd))
			if c.prover != nil {
				require.Contains(t, cmd.Args, formatCPUs(c.prover))
			} else {
				require.NotContains(t, cmd.Args, "--cpus")
			}
		})
	}
	require.Equal(t, "unknown T0 T1 T2 auto", fmt.Sprintf("%v %v %v %v %v", TierUnknown, Tier0, Tier1, Tier2, TierAuto))
	for tier := Tier0; tier <= TierAuto; tier++ {
		read, err := ParseTier(tier.String())
		require.NoError(t, err)
		require.Equal(t, tier, read)
	}
	for _, text := range []string{"", "unknown", "t0", "T3", "T00"} {
		_, err := ParseTier(text)
		require.ErrorContains(t, err, "must be auto, T0, T1 or T2")
	}
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		`tier 9, must be auto, T0, T1 or T2`: {Budget: Budget{Tier: 9}},
		"cores max 1e+06, must be":           {Budget: Budget{CoresMax: 1e6}},
		"memory max -1, must be":             {MemoryMax: -1},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, want)
	}
}

func TestThreadsOfOneCoreStandSideBySide(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	// Two sockets of two cores of two threads, numbered as Linux does on most machines: siblings are 4 apart.
	var text string
	for cpu := range 8 {
		text += "processor\t: " + strconv.Itoa(cpu) + "\nmodel name\t: any\nphysical id\t: " + strconv.Itoa(cpu%4/2) +
			"\ncore id\t\t: " + strconv.Itoa(cpu%2) + "\nflags\t\t: a b\n\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(proc, "cpuinfo"), []byte(text), 0o644))
	require.Equal(t, []int{0, 4, 1, 5, 2, 6, 3, 7}, coreOrder(proc, upTo(8)))
	require.Equal(t, []int{1, 5, 6, 7}, coreOrder(proc, []int{7, 6, 5, 1}))
	require.Equal(t, []int{0, 4, 1, 8, 9}, coreOrder(proc, []int{0, 1, 4, 8, 9}), "unknown ones are cores of their own")
	require.Equal(t, []int{3, 5, 9}, coreOrder(t.TempDir(), []int{9, 5, 3}))
}

func TestCPULists(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"0": "0", "3-5": "3-5", "5,3,4,4": "3-5", "0-1,1023": "0-1,1023", "7,9": "7,9"} {
		cpus, err := parseCPUs(text)
		require.NoError(t, err)
		require.Equal(t, want, formatCPUs(cpus))
	}
	for _, text := range []string{"", ",", "a", "1-", "-1", "5-3", "0-65535", "1024", "0 1", "99999999999999999999"} {
		_, err := parseCPUs(text)
		require.Error(t, err, text)
	}
	require.Empty(t, formatCPUs(nil))
}
