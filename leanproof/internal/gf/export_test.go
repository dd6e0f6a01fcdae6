package gf

import "testing"

// OnEachPath runs a test on every path that CPU and build have, one after another.
func OnEachPath(t *testing.T, test func(t *testing.T)) {
	for p := PathGeneric; p <= best(); p++ {
		t.Run(p.String(), func(t *testing.T) {
			path = p
			defer func() { path = best() }()
			test(t)
		})
	}
}

// SetPath changes the path for a benchmark and returns the function that sets the best one again.
func SetPath(p Path) (reset func()) {
	path = p
	return func() { path = best() }
}
