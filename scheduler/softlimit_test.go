package scheduler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSoftLimitFollowsGroupAndMachine(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		name     string
		groups   map[string]string // files below the root of the groups
		own      string            // /proc/self/cgroup
		children int64
		want     int64
		why      string
	}{
		{"a machine alone", nil, "0::/\n", 0, 8192 * mib, "half of the machine's 16384 MiB, after 0 MiB"},
		{"with children", nil, "", 2048 * mib, 7168 * mib, "after 2048 MiB for children"},
		{"a v2 group", map[string]string{"a/b/memory.max": "1048576000"}, "0::/a/b\n", 0, 900 * mib, "0.9 of the control group's 1000 MiB"},
		{"a group above it", map[string]string{"a/memory.max": "1048576000", "a/b/memory.max": "max"}, "0::/a/b\n", 0, 900 * mib, "0.9 of"},
		{"a v1 group", map[string]string{"memory/x/memory.limit_in_bytes": "1048576000"}, "4:cpu:/\n3:memory:/x\n", 100 * mib, 810 * mib, "0.9 of"},
		{"a v1 group outside of what is mounted", map[string]string{"memory/memory.limit_in_bytes": "1048576000"}, "3:memory:/docker/x\n", 0, 900 * mib, "0.9 of"},
		{"a group without a limit", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712"}, "3:memory:/\n", 0, 8192 * mib, "half of"},
		{"a group larger than half of the machine", map[string]string{"memory.max": "17179869184"}, "0::/\n", 0, 8192 * mib, "half of"},
		{"children that take everything", nil, "0::/\n", 1 << 40, 256 * mib, "half of"},
		{"lines that do not read", map[string]string{"memory.max": "-5"}, ":\nnonsense\n  :\n0:\n0::..\n", 0, 8192 * mib, "half of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proc, root := t.TempDir(), t.TempDir()
			write := func(path, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			write(filepath.Join(proc, "meminfo"), "MemFree: 5 kB\nMemTotal:       16777216 kB\n")
			write(filepath.Join(proc, "self", "cgroup"), c.own)
			for name, text := range c.groups {
				write(filepath.Join(root, name), text+"\n")
			}
			limit, why, err := SoftLimit(proc, root, c.children)
			require.NoError(t, err)
			require.InDelta(t, c.want, limit, 1, "%d MiB", limit>>20)
			require.Contains(t, why, c.why)
		})
	}
	limit, _, err := SoftLimit("", "", 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, limit, int64(leastSoftLimit))
	for _, text := range []string{"", "MemTotal: many kB\n", "MemTotal:\n"} {
		proc := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(proc, "meminfo"), []byte(text), 0o644))
		_, _, err := SoftLimit(proc, proc, 0)
		require.ErrorContains(t, err, "size of the memory")
	}
	_, _, err = SoftLimit(t.TempDir(), "", 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}
