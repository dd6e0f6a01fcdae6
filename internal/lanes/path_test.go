package lanes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
)

// onEachPath runs a test on every path of this CPU. The path belongs to the whole process, so such a test is not parallel:
// the parallel ones of a package wait until the others have ended.
func onEachPath(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	before := lanes.Current()
	t.Cleanup(func() { lanes.Use(before) })
	for _, p := range lanes.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			lanes.Use(p)
			test(t)
		})
	}
}

func TestPathsAreSlowestFirstAndNamed(t *testing.T) {
	paths := lanes.Paths()
	require.Equal(t, lanes.PathGeneric, paths[0])
	for i, p := range paths {
		require.NotEqual(t, "unknown", p.String())
		if i > 0 {
			require.Greater(t, p, paths[i-1])
		}
	}
	require.Equal(t, "unknown", lanes.PathUnknown.String())
	require.Equal(t, "unknown", lanes.Path(200).String())
}

func TestUseChangesThePathAndRefusesOneThatIsNotThere(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		p := lanes.Current()
		require.Equal(t, p, lanes.Use(lanes.PathGeneric))
		require.Equal(t, lanes.PathGeneric, lanes.Use(p))
		require.Equal(t, p, lanes.Current())
	})
	require.Panics(t, func() { lanes.Use(lanes.PathUnknown) })
	require.Panics(t, func() { lanes.Use(lanes.PathAVX512 + 1) })
}
