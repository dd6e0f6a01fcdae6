package p2p

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package where a goroutine outlives its host.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
