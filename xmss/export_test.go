package xmss

import (
	"testing"

	"aggnode/internal/lanes"
)

// OnEachPath is onEachPath for the tests that see this package from outside.
var OnEachPath = onEachPath

// onEachPath runs a test on every path of this CPU. The path belongs to the whole process, so such a test is not parallel:
// the parallel ones of the package wait until it has ended.
func onEachPath(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	for _, p := range lanes.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			defer lanes.Use(lanes.Use(p))
			test(t)
		})
	}
}
