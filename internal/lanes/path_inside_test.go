package lanes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func all(Path) bool { return true }

func TestTheEnvironmentLowersThePath(t *testing.T) {
	t.Parallel()
	paths := supportedPaths()
	best := paths[len(paths)-1]
	for name, want := range map[string]Path{
		"": best, "generic": PathGeneric, "avx2": min(PathAVX2, best), "avx512": best,
	} {
		got, refused := newCurrent(name, all)
		require.Equal(t, want, Path(got.Load()), "%q", name)
		require.Empty(t, refused)
	}
	for _, name := range []string{"unknown", "AVX2", "sse", " "} {
		require.Panics(t, func() { newCurrent(name, all) }, "%q", name)
	}
}

func TestAPathWhoseKernelsAreWrongIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, p := range supportedPaths() {
		require.True(t, agrees(p), p)
		got, refused := newCurrent("", func(q Path) bool { return q < p })
		require.Less(t, Path(got.Load()), max(p, PathGeneric+1), "portable code is always right")
		require.Len(t, refused, len(supportedPaths())-max(1, int(p-PathGeneric)))
	}
	portable, wrong := sampleOf(PathGeneric), sampleOf(PathGeneric)
	wrong.tried.Digest[3][15] ^= 1
	require.NotEqual(t, portable, wrong)
}

func TestOccupancyAddsUp(t *testing.T) {
	t.Parallel()
	var c occupancyCounter
	c.add(Occupancy{Used: 3, Capacity: 16})
	c.add(Occupancy{Used: 16, Capacity: 16})
	require.Equal(t, Occupancy{Used: 19, Capacity: 32}, c.read())
}
