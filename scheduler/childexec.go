package scheduler

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ChildExecCommand is the hidden subcommand under which the program runs ChildExec.
const ChildExecCommand = "child-exec"

// childOptions are the arguments of the shim.
type childOptions struct {
	parent    int
	nice      int
	oom       int
	schedIdle bool
	dataMax   uint64
	cpus      []int
	command   []string
}

func parseChildExec(args []string) (childOptions, error) {
	var o childOptions
	f := flag.NewFlagSet(ChildExecCommand, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.parent, "parent", 0, "process that must still be the parent; 0 skips the check")
	f.IntVar(&o.nice, "nice", 0, "nice value, 0 to 19")
	f.IntVar(&o.oom, "oom", 0, "oom_score_adj, 0 to 1000")
	f.BoolVar(&o.schedIdle, "sched-idle", false, "policy SCHED_IDLE")
	f.Uint64Var(&o.dataMax, "rlimit-data", 0, "RLIMIT_DATA in bytes; 0 sets none")
	f.Func("cpus", "CPUs to run on, as 0-2,5", func(text string) (err error) {
		o.cpus, err = parseCPUs(text)
		return err
	})
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("%s: %w", ChildExecCommand, err)
	}
	o.command = f.Args()
	switch {
	case len(o.command) == 0:
		return o, fmt.Errorf("%s: no command", ChildExecCommand)
	case o.nice < 0 || o.nice > 19:
		return o, fmt.Errorf("%s: nice %d, must be 0 to 19", ChildExecCommand, o.nice)
	case o.oom < 0 || o.oom > 1000:
		return o, fmt.Errorf("%s: oom %d, must be 0 to 1000", ChildExecCommand, o.oom)
	}
	return o, nil
}

// ChildExec is the shim: it gives its own thread the place in the system that the flags name and becomes the command
// by execve. It returns only with an error, after which the caller must exit. args are what follows ChildExecCommand:
//
//	[--parent PID] [--nice N] [--sched-idle] [--oom N] [--rlimit-data BYTES] [--cpus LIST] -- COMMAND [ARG…]
//
// COMMAND is a path; it is not searched for. Open files without close-on-exec pass through.
func ChildExec(args []string) error {
	o, err := parseChildExec(args)
	if err != nil {
		return err
	}
	// Linux keeps priority, policy, affinity and death signal by thread, and execve keeps those of the thread that calls it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := dieWithParent(o.parent); err != nil {
		return err
	}
	if o.nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, o.nice); err != nil {
			return fmt.Errorf("set nice %d: %w", o.nice, err)
		}
	}
	if o.schedIdle {
		attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: int32(o.nice)}
		if err := unix.SchedSetAttr(0, attr, 0); err != nil {
			return fmt.Errorf("set policy SCHED_IDLE: %w", err)
		}
	}
	if o.cpus != nil {
		if err := unix.SchedSetaffinity(0, cpuSet(o.cpus)); err != nil {
			return fmt.Errorf("set CPUs %s: %w", formatCPUs(o.cpus), err)
		}
	}
	if o.oom != 0 {
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(o.oom)), 0); err != nil {
			return fmt.Errorf("set oom_score_adj: %w", err)
		}
	}
	if o.dataMax != 0 {
		if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: o.dataMax, Max: o.dataMax}); err != nil {
			return fmt.Errorf("set RLIMIT_DATA %d: %w", o.dataMax, err)
		}
	}
	// A prover that crashes holds gigabytes: writing them out would stall the machine for longer than the proof took.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("set RLIMIT_CORE: %w", err)
	}
	err = syscall.Exec(o.command[0], o.command, os.Environ())
	return fmt.Errorf("run %s: %w", o.command[0], err)
}

// errOrphan says that the parent ended before the death signal was in force.
var errOrphan = errors.New("the parent has ended")

// dieWithParent asks for SIGKILL at the parent's end. The signal misses a parent that ended before the call, so who
// the parent is now is compared with who it must be.
func dieWithParent(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set death signal: %w", err)
	}
	if parent != 0 && unix.Getppid() != parent {
		return errOrphan
	}
	return nil
}
