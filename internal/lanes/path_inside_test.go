package lanes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEnvironmentLowersThePath(t *testing.T) {
	t.Parallel()
	paths := supportedPaths()
	best := paths[len(paths)-1]
	for name, want := range map[string]Path{
		"": best, "generic": PathGeneric, "avx2": min(PathAVX2, best), "avx512": best,
	} {
		require.Equal(t, want, Path(newCurrent(name).Load()), "%q", name)
	}
	for _, name := range []string{"unknown", "AVX2", "sse", " "} {
		require.Panics(t, func() { newCurrent(name) }, "%q", name)
	}
}

func TestOccupancyAddsUp(t *testing.T) {
	t.Parallel()
	var c occupancyCounter
	c.add(Occupancy{Used: 3, Capacity: 16})
	c.add(Occupancy{Used: 16, Capacity: 16})
	require.Equal(t, Occupancy{Used: 19, Capacity: 32}, c.read())
}
