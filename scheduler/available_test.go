package scheduler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"unknown", nil, 0},
		{"a machine", map[string]string{"proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 2097152 kB\n"}, 2 * gib},
		{"a container with a limit", map[string]string{
			"proc/meminfo": "MemAvailable: 8388608 kB\n", "proc/self/cgroup": "0::/\n",
			"cgroup/memory.max": "4294967296\n", "cgroup/memory.current": "3221225472\n", "cgroup/memory.stat": "anon 1\ninactive_file 1073741824\n",
		}, 2 * gib},
		{"a limit above our own group", map[string]string{
			"proc/meminfo": "MemAvailable: 8388608 kB\n", "proc/self/cgroup": "0::/a/b\n",
			"cgroup/a/b/memory.max": "max\n", "cgroup/a/b/memory.current": "1\n",
			"cgroup/a/memory.max": "2147483648\n", "cgroup/a/memory.current": "1073741824\n",
		}, gib},
		{"a limit that is exceeded", map[string]string{
			"proc/meminfo": "MemAvailable: 8388608 kB\n", "cgroup/memory.max": "1\n", "cgroup/memory.current": "2\n",
		}, 0},
		{"a path that climbs out", map[string]string{
			"proc/meminfo": "MemAvailable: 1048576 kB\n", "proc/self/cgroup": "0::/../../..\n",
		}, gib},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			require.Equal(t, c.want, AvailableMemory(filepath.Join(root, "proc"), filepath.Join(root, "cgroup")))
		})
	}
}
