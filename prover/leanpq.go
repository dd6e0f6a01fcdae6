package prover

import (
	_ "embed"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// leanPQChild is the child program of the lean-pq backend. It travels in the binary and not in the environment that
// Install makes, so that every copy of the binary runs its own version of the protocol.
//
//go:embed leanpq_child.py
var leanPQChild string

// LeanPQ returns the command and the complete environment of a lean-pq child for Config: Python isolated from its
// user's settings (-I) and writing no byte code (-B). The child is an argument and not a file, so that a read-only
// environment serves. ErrNotInstalled tells of an environment that is not there; a *RefusedError with
// CodeCPUUnsupported of a processor that the backend can not use.
func LeanPQ(env Environment) (command, environ []string, err error) {
	if err := cpuSupported(); err != nil {
		return nil, nil, err
	}
	if err := env.usable(); err != nil {
		return nil, nil, err
	}
	return []string{env.Python, "-I", "-B", "-c", leanPQChild}, env.environ(), nil
}

// cpuSupported says what the processor lacks: the wheels are built with these instructions and would end with SIGILL.
// The child looks too, since a backend may run under an emulator.
func cpuSupported() error {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	var missing []string
	if !cpu.X86.HasAVX2 {
		missing = append(missing, "AVX2")
	}
	if !cpu.X86.HasPCLMULQDQ {
		missing = append(missing, "PCLMULQDQ")
	}
	if len(missing) == 0 {
		return nil
	}
	return &RefusedError{CodeCPUUnsupported, -1, "this processor lacks " + strings.Join(missing, " and ") + ", which lean-pq needs"}
}

// childEnviron is the environment of a Python child: what the interpreter itself may need to start, and nothing else.
func childEnviron(extra ...string) []string {
	env := []string{"LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"}
	if v := os.Getenv("LD_LIBRARY_PATH"); v != "" { // an interpreter outside the system's places is linked by it
		env = append(env, "LD_LIBRARY_PATH="+v)
	}
	return append(env, extra...)
}
