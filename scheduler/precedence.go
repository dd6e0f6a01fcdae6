package scheduler

import (
	"log/slog"
	"runtime"
	"sync"
	"time"
)

const (
	// precedenceShare is the part of the machine's CPU time that the node may take at real-time priority in the long run, one
	// in so many. 200 votes and 20 aggregates a second take a tenth of two cores; what fills half a machine is no longer
	// gossip that the prover could be in the way of, and others on the host have a right to the rest.
	precedenceShare = 2
	// precedenceBurst is how much of it may be saved up, for each CPU. It bounds how long a flood keeps everybody else from
	// the machine, together with stepEvery, after which it is noticed at the latest.
	precedenceBurst = 500 * time.Millisecond
	// noteEvery is the least distance of two lines about it.
	noteEvery = time.Minute
)

// threads are those of this process.
type threads interface {
	list() ([]int, error)
	own() int // the calling thread, which the caller has locked
	// set gives a thread real-time priority, or takes it. A thread that has ended is no error.
	set(tid int, realTime bool) error
	cpu() time.Duration          // that all have used
	cpuOf(tid int) time.Duration // that one has used; 0 when it has ended
}

// precedence puts the threads of the node before all ordinary ones: real-time priority (SCHED_RR), where the system allows it
// and as long as the node takes no more than its share.
//
// Weights alone do not keep a prover from a check. The kernel lets a thread at nice 19 wait long, but then gives it all the
// time until the next tick, 4 ms at 250 Hz, in the middle of a check that takes 4 ms; and a thread of the node that wakes while
// such a tick has just begun waits for its end. That is the tail of checks and votes beside a prover. At real-time priority
// only for checks the rest of the node stood behind its own checks, which the kernel does not count as busy CPUs: all threads
// have it or none. What computes for long without being waited for by gossip goes back among the ordinary (Ordinarily), so
// that the node does not keep its own disk and timers waiting.
type precedence struct {
	threads threads      // immutable
	cpus    int          // immutable
	metrics *metrics     // immutable
	log     *slog.Logger // immutable

	mu        sync.Mutex
	wanted    bool                  // guarded by mu; a refusal of the system ends it
	suspended int                   // guarded by mu; how many asked for a pause
	inForce   bool                  // guarded by mu
	ordinary  map[int]time.Duration // guarded by mu; threads that do ordinary work, with the CPU time that is in exempt already
	credit    time.Duration         // guarded by mu; below zero until what was taken too much is paid back
	at        time.Time             // guarded by mu; of the last step
	used      time.Duration         // guarded by mu; CPU time of the process at the last step
	exempt    time.Duration         // guarded by mu; of it, what ordinary work took since the last step
	noted     time.Time             // guarded by mu; when a change was logged last
}

func newPrecedence(threads threads, wanted bool, cpus int, m *metrics, log *slog.Logger) *precedence {
	p := &precedence{threads: threads, cpus: cpus, metrics: m, log: log, wanted: wanted, ordinary: map[int]time.Duration{}}
	p.credit = p.burst()
	return p
}

func (p *precedence) burst() time.Duration { return time.Duration(p.cpus) * precedenceBurst }

// step counts what was used since the last one, and sees to it that all threads have what they should: those that were made
// meanwhile began as ordinary ones.
func (p *precedence) step(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted {
		return
	}
	for tid := range p.ordinary {
		p.exemptLocked(tid)
	}
	used := p.threads.cpu()
	if !p.at.IsZero() {
		if p.inForce {
			p.credit -= max(0, used-p.used-p.exempt)
		}
		p.credit = min(p.burst(), p.credit+time.Duration(p.cpus)*now.Sub(p.at)/precedenceShare)
	}
	p.at, p.used, p.exempt = now, used, 0
	p.settleLocked()
}

// exemptLocked counts what a thread's ordinary work took since it was last counted.
func (p *precedence) exemptLocked(tid int) {
	used := p.threads.cpuOf(tid)
	p.exempt += max(0, used-p.ordinary[tid])
	p.ordinary[tid] = used
}

// settleLocked puts in force what holds now. Precedence that was lost comes back with half of the credit, not with the first
// of it.
func (p *precedence) settleLocked() {
	was := p.inForce
	least := time.Duration(1)
	if !was {
		least = p.burst() / 2
	}
	p.inForce = p.wanted && p.suspended == 0 && p.credit >= least
	if p.inForce || was {
		if err := p.setAll(p.inForce); err != nil {
			p.giveUpLocked(err)
		}
	}
	switch {
	case p.inForce && !was:
		p.metrics.realTime.Set(1)
		p.noteLocked("the node runs at real-time priority, before its prover")
	case was && !p.inForce:
		p.metrics.realTime.Set(0)
		if p.wanted && p.suspended == 0 {
			p.metrics.realTimeLost.Inc()
			p.noteLocked("the node runs at ordinary priority for a while: it took more than its share")
		}
	}
}

// noteLocked logs a change, once a minute at most: on a busy machine it may come each second, and is counted.
func (p *precedence) noteLocked(what string) {
	if p.noted.IsZero() || p.at.Sub(p.noted) >= noteEvery {
		p.noted = p.at
		p.log.Info(what, "share", 1.0/precedenceShare)
	}
}

// setAll gives all threads the priority, but for those that do ordinary work, which have it already.
func (p *precedence) setAll(realTime bool) error {
	tids, err := p.threads.list()
	if err != nil {
		return err
	}
	for _, tid := range tids {
		if _, isOrdinary := p.ordinary[tid]; isOrdinary {
			continue
		}
		if err := p.threads.set(tid, realTime); err != nil {
			return err
		}
	}
	return nil
}

// giveUpLocked is for a system that does not allow it. It says so once, with the way out.
func (p *precedence) giveUpLocked(err error) {
	p.wanted, p.inForce = false, false
	_ = p.setAll(false) // what was raised before the refusal; it is the same refusal or none
	p.log.Info("the node runs at ordinary priority: beside a prover some checks take a tick of the kernel longer", "why", err.Error(),
		"way_out", "LimitRTPRIO=1 in systemd, --ulimit rtprio=1 in Docker, or the capability CAP_SYS_NICE")
}

// stop makes all threads ordinary for good.
func (p *precedence) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
	p.settleLocked()
}

// suspend makes all threads ordinary until resume is called.
func (p *precedence) suspend() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspended++
	p.settleLocked()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.suspended--
		p.settleLocked()
	})
}

// enter makes the calling thread, which is locked, an ordinary one.
func (p *precedence) enter() (leave func()) {
	tid := p.threads.own()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ordinary[tid] = p.threads.cpuOf(tid)
	if p.inForce {
		_ = p.threads.set(tid, false) // always allowed
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exemptLocked(tid)
		delete(p.ordinary, tid)
		if p.inForce {
			_ = p.threads.set(tid, true) // as it was for all at the last step; a refusal shows at the next one
		}
	}
}

// RealTime reports whether the node runs at real-time priority now.
func (s *Scheduler) RealTime() bool {
	s.precedence.mu.Lock()
	defer s.precedence.mu.Unlock()
	return s.precedence.inForce
}

// SuspendRealTime makes all threads ordinary until resume is called: for measurements of what precedence is worth.
func (s *Scheduler) SuspendRealTime() (resume func()) { return s.precedence.suspend() }

// Ordinarily runs work, which computes for a millisecond or more and does not check what gossip brings, on the caller's thread
// at ordinary priority, and returns when it has ended.
func (s *Scheduler) Ordinarily(work func()) {
	if !s.cfg.RealTime {
		work()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer s.precedence.enter()()
	work()
}
