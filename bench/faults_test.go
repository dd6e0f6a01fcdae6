package bench

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// phaseOf is a phase in which checks took these milliseconds, and one was dropped.
func phaseOf(f Fault, served bool, jobs map[string]int, ms ...int) *faultPhase {
	p := &faultPhase{fault: f, jobs: jobs, served: served, again: time.Second}
	begin := time.Unix(0, 0)
	for _, d := range ms {
		p.aggregates = append(p.aggregates, &passage{arrived: begin, ended: begin.Add(time.Duration(d) * time.Millisecond), reason: wire.ReasonNone})
	}
	p.aggregates = append(p.aggregates, &passage{reason: wire.ReasonQueueFull})
	return p
}

func TestFaultsAreHeldAgainstTheAbsentProver(t *testing.T) {
	t.Parallel()
	var all []*faultPhase
	for round := range 2 {
		for _, f := range FaultKinds() {
			all = append(all, phaseOf(f, f == FaultKilled && round == 1, map[string]int{"ok": 1, f.String(): 2}, 10*int(f), 10*int(f)))
		}
	}
	r := newFaultsReport(all, machine{tier: "T0", cpuModel: "none", cores: 2})
	require.Len(t, r.Faults, len(FaultKinds()))
	for i, f := range FaultKinds() {
		got := r.Faults[i]
		require.Equal(t, f, got.Fault)
		require.Equal(t, 4, got.Checks, "both rounds, %s", f)
		require.Equal(t, 2, got.Drops)
		require.InDelta(t, 10*float64(f), got.P50MS, 1e-9)
		require.Equal(t, 2, got.Phases)
		require.Equal(t, map[string]int{"ok": 2, f.String(): 4}, got.Jobs)
		if f == FaultNone {
			require.Zero(t, got.RatioP99)
			continue
		}
		require.InDelta(t, float64(f)/float64(FaultNone), got.RatioP50, 1e-3)
	}
	require.Equal(t, 1, r.Faults[3].Served)

	var out bytes.Buffer
	require.NoError(t, r.Print(&out))
	for _, f := range FaultKinds() {
		require.Contains(t, out.String(), f.Long())
	}
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(b), `"fault":"memory"`)
}

func TestFaultsConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]FaultsConfig{
		"no command":         {},
		"negative rounds":    {Command: []string{"x"}, Rounds: -1},
		"phase too short":    {Command: []string{"x"}, Phase: time.Millisecond},
		"negative workers":   {Command: []string{"x"}, Workers: -1},
		"verifier not known": {Command: []string{"x"}, Verifier: "nobody"},
	} {
		_, err := Faults(t.Context(), cfg)
		require.ErrorContains(t, err, "faults: ", name)
	}
}

func TestOnlyTheFaultOfMemoryChangesTheCommand(t *testing.T) {
	t.Parallel()
	child := []string{"python", "child.py"}
	for _, f := range FaultKinds() {
		if f != FaultMemory {
			require.Equal(t, child, f.command(child))
			require.Zero(t, f.memoryMax())
			continue
		}
		got := f.command(child)
		require.Equal(t, "python", got[0])
		require.Equal(t, child, got[len(got)-2:])
		require.Positive(t, f.memoryMax())
	}
}
