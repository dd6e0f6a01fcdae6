package bench

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"aggnode/scheduler"
)

// The test binary serves as the program that has the shim.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == scheduler.ChildExecCommand {
		fmt.Fprintln(os.Stderr, scheduler.ChildExec(os.Args[2:]))
		os.Exit(127)
	}
	goleak.VerifyTestMain(m)
}
