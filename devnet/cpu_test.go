package devnet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func statLine(pid int, name string, parent int, utime, stime, cutime, cstime int) string {
	return fmt.Sprintf("%d (%s) S %d 7 7 0 -1 4194560 100 0 0 0 %d %d %d %d 20 0 9 0 12345 1000 200", pid, name, parent, utime, stime, cutime, cstime)
}

func TestTheCPUOfATreeIsThatOfAllItsProcesses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for pid, line := range map[int]string{
		10: statLine(10, "aggnode", 1, 100, 20, 5, 1),
		11: statLine(11, "python (x) S 99", 10, 300, 0, 0, 0), // a name made to mislead
		12: statLine(12, "helper", 11, 50, 0, 0, 0),
		20: statLine(20, "other", 1, 9999, 0, 0, 0),
		30: "no stat line",
	} {
		dir := filepath.Join(root, fmt.Sprint(pid))
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(line), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "40"), 0o700)) // ended meanwhile
	procs, err := readProcs(root)
	require.NoError(t, err)
	require.Len(t, procs, 4)
	require.Equal(t, 4760*time.Millisecond, treeCPU(procs, 10))
	require.Zero(t, treeCPU(procs, 99))
}

func TestCPUByRoleIsTheMeanOfItsNodes(t *testing.T) {
	t.Parallel()
	members := []member{{committee: 0}, {committee: 1}, {committee: -1}, {committee: -1, isObserver: true}}
	m := cpuMeter{began: time.Unix(0, 0), first: []time.Duration{0, time.Second, 0, 0}}
	got := m.byRole(members, []time.Duration{10 * time.Second, 31 * time.Second, time.Second, 2 * time.Second}, time.Unix(10, 0))
	require.Equal(t, map[string]float64{"aggregator": 200, "validator": 10, "observer": 20}, got)
}
