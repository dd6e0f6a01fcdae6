//go:build race

package wire_test

// raceEnabled tells whether the tests run under the race detector.
const raceEnabled = true
