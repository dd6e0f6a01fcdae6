package bench

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/scheduler"
)

// Tests against the real package run where this variable names a Python that has it; `make interop` sets it.
const leanPQPython = "AGGNODE_TEST_LEANPQ_PYTHON"

func leanPQ(t *testing.T) (command, environ []string) {
	t.Helper()
	python := os.Getenv(leanPQPython)
	if python == "" {
		t.Skip("not run: " + leanPQPython + " names no Python with py-lean-pq")
	}
	command, environ, err := prover.LeanPQ(prover.FromPython(python))
	require.NoError(t, err)
	return command, environ
}

func TestIsolationWithRealProofs(t *testing.T) {
	command, environ := leanPQ(t)
	report, err := Isolation(t.Context(), IsolationConfig{
		Command: command, Env: environ, Rounds: 1, Phase: 3 * time.Second, CPUProfiles: t.TempDir(),
	})
	require.NoError(t, err)
	require.Len(t, report.Phases, len(Kinds()))
	for _, p := range report.Phases {
		require.Positive(t, p.Single.Checks, p.Kind)
		require.Positive(t, p.Single.StageMS.Check, p.Kind)
		if p.Kind == KindBudget || p.Kind == KindPlain {
			require.Positive(t, p.Single.Proofs, p.Kind)
			require.Positive(t, p.Single.CPUSeconds.Prover, p.Kind)
		}
	}
}

func TestProverWithRealProofs(t *testing.T) {
	command, environ := leanPQ(t)
	place, err := scheduler.New(scheduler.Config{})
	require.NoError(t, err)
	report, err := Prover(t.Context(), ProverConfig{
		Command: command, Env: environ, Place: place.Place(scheduler.ClassVerifier), Raw: []int{2}, Children: []int{0, 1},
	})
	require.NoError(t, err)
	require.Equal(t, "lean-pq", report.Backend)
	require.Len(t, report.Setups, 1)
	require.Len(t, report.Results, 3)
	for _, r := range report.Results {
		if r.Skipped == "" {
			require.Positive(t, r.WallMS)
			require.Positive(t, r.CPUMS)
			require.Positive(t, r.ProofBytes)
			require.Greater(t, r.PeakBytes, int64(100<<20))
		}
	}
}
