package node

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"aggnode/scheduler"
)

// The test binary serves as the program that has the shim: backend children are started through it.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == scheduler.ChildExecCommand:
		fmt.Fprintln(os.Stderr, scheduler.ChildExec(os.Args[2:]))
		os.Exit(127)
	case len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-"):
		os.Exit(2) // a helper nobody wrote: running the tests instead would start it again, and again
	}
	os.Exit(m.Run())
}
