package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"aggnode/prover"
)

const (
	faultTick = 20 * time.Millisecond  // how often the job in progress is looked at
	intoJob   = 200 * time.Millisecond // how far a job gets before the fault meets it; it takes 0.6 s on two cores

	// Of each slowPeriod a slowed prover runs a third: 10 ms at a time are what a time slice is.
	slowPeriod = 30 * time.Millisecond
	slowRuns   = 10 * time.Millisecond

	// hungryMax is the limit of the prover that eats memory: a job of eight signatures needs 500 MiB.
	hungryMax = 1 << 30
)

// hungryScript forks a process that takes 32 MiB in each 50 ms once it gets SIGUSR1, and becomes the child in the process that
// was started, where the signal is ignored: what the limit sees is the tree of both.
const hungryScript = `import os, signal, sys, time
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
if os.fork() == 0:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    signal.sigwait([signal.SIGUSR1])
    held = []
    while True:
        held.append(b"x" * (32 << 20))
        time.sleep(0.05)
os.execv(sys.argv[1], sys.argv[1:])
`

// Fault is what is done to the prover.
type Fault uint8

// The faults.
const (
	FaultUnknown Fault = iota
	FaultNone          // no prover at all: the figures that the others are held against
	FaultHealthy       // a prover at work
	FaultStopped       // SIGSTOP in the middle of each job
	FaultKilled        // SIGKILL in the middle of each job
	FaultSlow          // runs a third of the time
	FaultMemory        // its process tree takes memory until it is over its limit
)

// FaultKinds returns all faults in the order of the report.
func FaultKinds() []Fault {
	return []Fault{FaultNone, FaultHealthy, FaultStopped, FaultKilled, FaultSlow, FaultMemory}
}

// String returns the name used in the JSON.
func (f Fault) String() string {
	switch f {
	case FaultNone:
		return "none"
	case FaultHealthy:
		return "healthy"
	case FaultStopped:
		return "stopped"
	case FaultKilled:
		return "killed"
	case FaultSlow:
		return "slow"
	case FaultMemory:
		return "memory"
	case FaultUnknown:
	}
	return "unknown"
}

// Long returns the words of the printed table.
func (f Fault) Long() string {
	switch f {
	case FaultNone:
		return "prover absent"
	case FaultHealthy:
		return "prover at work"
	case FaultStopped:
		return "prover stopped in each job"
	case FaultKilled:
		return "prover killed in each job"
	case FaultSlow:
		return "prover three times slower"
	case FaultMemory:
		return "prover that eats memory"
	case FaultUnknown:
	}
	return "unknown"
}

// MarshalText is for JSON.
func (f Fault) MarshalText() ([]byte, error) {
	if f == FaultUnknown {
		return nil, fmt.Errorf("fault %d", uint8(f))
	}
	return []byte(f.String()), nil
}

// command returns the child's command, with what the fault needs around it.
func (f Fault) command(child []string) []string {
	if f != FaultMemory {
		return child
	}
	return append([]string{child[0], "-I", "-c", hungryScript}, child...)
}

// memoryMax is the limit of the child in bytes, 0 for none.
func (f Fault) memoryMax() int64 {
	if f == FaultMemory {
		return hungryMax
	}
	return 0
}

// inflict does it to the prover until ctx ends. Each child gets its signal once: the next one gets its own.
func (f Fault) inflict(ctx context.Context, maker *prover.Client) {
	switch f {
	case FaultStopped:
		signalJobs(ctx, maker, unix.SIGSTOP)
	case FaultKilled:
		signalJobs(ctx, maker, unix.SIGKILL)
	case FaultMemory:
		signalJobs(ctx, maker, unix.SIGUSR1)
	case FaultSlow:
		slowDown(ctx, maker)
	case FaultNone, FaultHealthy, FaultUnknown:
	}
}

// signalJobs sends a signal to the process group of each child some way into its first job.
func signalJobs(ctx context.Context, maker *prover.Client, signal unix.Signal) {
	tick := time.NewTicker(faultTick)
	defer tick.Stop()
	last := 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s := maker.Stats()
			if s.PID == 0 || s.PID == last || s.Running == 0 || now.Sub(s.Oldest) < intoJob {
				continue
			}
			last = s.PID
			_ = unix.Kill(-s.PID, signal) // one that has just ended has met its fault
		}
	}
}

// slowDown lets the child run a third of the time. It runs again when this returns.
func slowDown(ctx context.Context, maker *prover.Client) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	for {
		pid := maker.Stats().PID
		if pid != 0 {
			_ = unix.Kill(-pid, unix.SIGSTOP) // as above
		}
		next = next.Add(slowPeriod - slowRuns)
		runs := waitUntil(ctx, timer, next)
		if pid != 0 {
			_ = unix.Kill(-pid, unix.SIGCONT)
		}
		next = next.Add(slowRuns)
		if !runs || !waitUntil(ctx, timer, next) {
			return
		}
	}
}
