package scheduler

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// urgentShare is the part of the machine's CPU time that computations may take at real-time priority, one in so many:
	// 20 checks of aggregates a second need a twentieth of two cores. What comes beyond it runs as everything else does,
	// so that a flood of checks starves neither gossip nor the host.
	urgentShare = 4
	// urgentBurst is how much of it may be saved up, for each CPU: a slot's aggregates come together, in interval 3.
	urgentBurst = 200 * time.Millisecond
	// realTimePriority is the lowest of Linux's 99: above all ordinary threads is enough.
	realTimePriority = 1
)

// threadPriority changes the priority of the calling thread, which the caller has locked.
type threadPriority interface {
	raise() error
	lower() error
}

// urgent lets computations run on the thread that asks for them, at real-time priority (SCHED_RR), where the system allows
// that and as long as they have credit for it.
//
// At ordinary priority a computation of some milliseconds has its share of the core used up in the middle, and the kernel
// gives a prover that waits, even at nice 19, the time until the next tick: 4 ms at 250 Hz, which is as much as a check of an
// aggregate takes. Weights do not change that, only how often it happens. A thread at real-time priority is not interrupted,
// and owes ordinary threads nothing when it becomes one again: see compute, the second best.
type urgent struct {
	thread threadPriority // immutable
	cpus   int            // immutable
	log    *slog.Logger   // immutable

	mu      sync.Mutex
	allowed bool          // guarded by mu; a raise that fails ends it
	credit  time.Duration // guarded by mu; may be below zero by what ran last
	at      time.Time     // guarded by mu; when credit was computed
}

// newUrgent tries on a thread of its own what the system allows.
func newUrgent(thread threadPriority, wanted bool, cpus int, log *slog.Logger) *urgent {
	u := &urgent{thread: thread, cpus: cpus, log: log}
	if !wanted {
		return u
	}
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks it: the thread ends here
		err := thread.raise()
		if err == nil {
			err = thread.lower()
		}
		tried <- err
	}()
	if err := <-tried; err != nil {
		u.refused(err)
		return u
	}
	u.allowed, u.credit, u.at = true, u.burst(), time.Now()
	log.Info("checks of proofs run at real-time priority", "share", u.share())
	return u
}

func (u *urgent) burst() time.Duration { return time.Duration(u.cpus) * urgentBurst }

// refused says it once, with the way out.
func (u *urgent) refused(err error) {
	u.log.Info("checks of proofs run at ordinary priority: a prover may delay one by some milliseconds now and then", "why", err.Error(),
		"way_out", "LimitRTPRIO=1 in systemd, --ulimit rtprio=1 in Docker, or the capability CAP_SYS_NICE")
}

// share is the part of the CPU time that computations may take at real-time priority, 0 for none.
func (u *urgent) share() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.allowed {
		return 0
	}
	return 1.0 / urgentShare
}

// RealTime reports whether Compute runs work at real-time priority, while there is credit for it.
func (s *Scheduler) RealTime() bool { return s.urgent.share() > 0 }

// has reports whether there is credit at a time.
func (u *urgent) has(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.allowed {
		return false
	}
	u.credit = min(u.burst(), u.credit+time.Duration(u.cpus)*now.Sub(u.at)/urgentShare)
	u.at = now
	return u.credit > 0
}

func (u *urgent) pay(used time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.credit -= used
}

// run runs work on the calling thread and reports whether it did: not without credit, and not where it is not allowed.
func (u *urgent) run(work func()) bool {
	began := time.Now()
	if !u.has(began) {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := u.thread.raise(); err != nil { // the node has come into a control group without real time
		u.giveUp(err)
		return false
	}
	defer func() {
		u.pay(time.Since(began))
		if err := u.thread.lower(); err != nil {
			u.giveUp(err)
		}
	}()
	work()
	return true
}

func (u *urgent) giveUp(err error) {
	u.mu.Lock()
	was := u.allowed
	u.allowed = false
	u.mu.Unlock()
	if was {
		u.refused(err)
	}
}

// osPriority is that of this machine's threads.
type osPriority struct {
	ordinary, realTime unix.SchedAttr
	err                error // there is no telling what ordinary is
}

// newOSPriority takes what the calling thread has for what all have: they differ only while one is raised.
func newOSPriority() *osPriority {
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return &osPriority{err: fmt.Errorf("read the scheduling policy: %w", err)}
	}
	// Threads that a raised one makes are ordinary. The flag stays: it takes a privilege to take it back.
	const flags = unix.SCHED_FLAG_RESET_ON_FORK
	return &osPriority{
		ordinary: unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: now.Policy, Nice: now.Nice, Priority: now.Priority, Flags: flags},
		realTime: unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: realTimePriority, Flags: flags},
	}
}

func (p *osPriority) raise() error {
	if p.err != nil {
		return p.err
	}
	if err := unix.SchedSetAttr(0, &p.realTime, 0); err != nil {
		return fmt.Errorf("set policy SCHED_RR: %w", err)
	}
	return nil
}

func (p *osPriority) lower() error {
	if err := unix.SchedSetAttr(0, &p.ordinary, 0); err != nil {
		return fmt.Errorf("set the policy back: %w", err)
	}
	return nil
}
