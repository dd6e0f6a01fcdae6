package scheduler

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// realTimePriority is the lowest of Linux's 99: above all ordinary threads is enough.
	realTimePriority = 1
	ownThreads       = "/proc/self/task"
)

// osThreads are the threads of this process.
type osThreads struct {
	ordinary, realTime unix.SchedAttr
	err                error // there is no telling what ordinary is
}

// newOSThreads takes what the calling thread has for what all have: they differ only while precedence is in force.
func newOSThreads() *osThreads {
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return &osThreads{err: fmt.Errorf("read the scheduling policy: %w", err)}
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil || limit.Cur != unix.RLIM_INFINITY {
		return &osThreads{err: fmt.Errorf("RLIMIT_RTTIME is %d us, after which the kernel would end the process", limit.Cur)}
	}
	// What a thread at real-time priority makes, a thread or a child, begins as an ordinary one. The flag stays: it takes a
	// privilege to take it back.
	const flags = unix.SCHED_FLAG_RESET_ON_FORK
	return &osThreads{
		ordinary: unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: now.Policy, Nice: now.Nice, Priority: now.Priority, Flags: flags},
		realTime: unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: realTimePriority, Flags: flags},
	}
}

func (t *osThreads) list() ([]int, error) {
	if t.err != nil {
		return nil, t.err
	}
	entries, err := os.ReadDir(ownThreads)
	if err != nil {
		return nil, fmt.Errorf("list the threads: %w", err)
	}
	tids := make([]int, 0, len(entries))
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

func (*osThreads) own() int { return unix.Gettid() }

func (t *osThreads) set(tid int, realTime bool) error {
	attr, name := &t.ordinary, "ordinary"
	if realTime {
		attr, name = &t.realTime, "SCHED_RR"
	}
	if err := unix.SchedSetAttr(tid, attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("give a thread policy %s: %w", name, err)
	}
	return nil
}

func (*osThreads) cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (*osThreads) cpuOf(tid int) time.Duration {
	// The clock of a thread by its number, as pthread_getcpuclockid(3) makes it: ^tid in the upper bits, then "of a thread" and
	// "as scheduled".
	const ofThread, scheduled = 4, 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|ofThread|scheduled), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
