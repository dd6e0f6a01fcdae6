package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/aggregate"
)

func TestCostsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	costs := new(aggregate.Costs)
	learnt := `{"costs":[{"revision":"r 1","tier":"T0","cores":2,"fixed_s":0.5,"raw_s":0.01,"child_s":1.2}]}`
	require.NoError(t, costs.UnmarshalJSON([]byte(learnt)))
	require.NoError(t, saveCosts(dir, costs))
	loaded, err := loadCosts(dir, testLogger(t)).MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, learnt, string(loaded))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no half-written file stays")
}

func TestADamagedCostsFileIsSaidAndLeftAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, costsFile), []byte("{"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, benchFile), []byte("[]"), 0o600))
	var said strings.Builder
	b, err := loadCosts(dir, slog.New(slog.NewTextHandler(&said, nil))).MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"costs":[]}`, string(b))
	require.Contains(t, said.String(), costsFile)
	require.Contains(t, said.String(), benchFile)
}
