package prover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one child from start to reaping. Four goroutines serve it (reader, writer, stderr, supervise); done closes
// when all of them have ended and the process is reaped.
type process struct {
	cfg *Config      // immutable
	log *slog.Logger // immutable
	cmd *exec.Cmd    // owned by supervise after start
	pid int          // immutable

	toChild   *os.File
	fromChild *os.File
	errPipe   *os.File
	stderr    *stderrLog

	// outbox has one slot for each call, so a sender waits only where the pipe is full and all slots are taken; a
	// sender that waits is freed by its context or by dying.
	outbox  chan []byte
	buffers *buffers      // of its frames
	slots   chan struct{} // semaphore of running calls, capacity cfg.Calls

	stop  chan struct{} // one slot: asks supervise to end the child; further requests are dropped
	dying chan struct{} // closed when fault is set: no further use
	done  chan struct{} // closed when reaped and all goroutines have ended

	served atomic.Bool  // has answered a call after hello
	heavy  atomic.Int32 // proofs in a row after which it held more than a child at rest should

	mu     sync.Mutex
	fault  error            // guarded by mu until dying is closed, then immutable
	polite bool             // guarded by mu: end by closing its input first
	lost   int              // guarded by mu: calls in flight when fault was set
	calls  map[uint64]*call // guarded by mu
	nextID uint64           // guarded by mu

	caps Capabilities // set by hello, immutable once the process is offered
}

// call is one request in flight.
type call struct {
	id      uint64
	kind    kind
	began   time.Time
	started chan struct{} // closed by the started frame
	wait    time.Duration // from began to the started frame; valid after started is closed or reply has the answer
	reply   chan frame    // one slot: the reader never waits for a caller who left
	cpu     atomic.Int64  // ns of child CPU by the last progress frame
	timer   *time.Timer   // nil where the caller keeps the deadline; guarded by process.mu
	slot    bool          // holds one of process.slots
	isOpen  bool          // guarded by process.mu: started not seen yet
}

// startProcess starts a child; its goroutines run until it is reaped.
func startProcess(ctx context.Context, f *forker, cfg *Config) (*process, error) {
	p := &process{
		cfg:    cfg,
		outbox: make(chan []byte, cfg.Calls+2), buffers: new(buffers),
		slots: make(chan struct{}, cfg.Calls),
		stop:  make(chan struct{}, 1),
		dying: make(chan struct{}),
		done:  make(chan struct{}),
		calls: make(map[uint64]*call),
	}
	childIn, toChild, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe to prover: %w", err)
	}
	fromChild, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe from prover: %w", err), childIn.Close(), toChild.Close())
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make stderr pipe of prover: %w", err),
			childIn.Close(), toChild.Close(), fromChild.Close(), childOut.Close())
	}
	p.toChild, p.fromChild, p.errPipe = toChild, fromChild, errRead

	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Env = append([]string{}, cfg.Env...) // never nil: nil would hand on our own environment
	cmd.Dir = cfg.Dir
	cmd.ExtraFiles = []*os.File{childIn, childOut} // file descriptors 3 and 4
	cmd.Stdout, cmd.Stderr = errWrite, errWrite
	// Setpgid and not Setsid: a new session would get its own autogroup and take the child's nice value out of the
	// comparison with ours.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if cfg.Place != nil {
		err = cfg.Place(cmd)
	}
	if err == nil {
		err = f.start(ctx, cmd)
	}
	for _, c := range []*os.File{childIn, childOut, errWrite} {
		c.Close() // our copy of the child's end; an error here has no consequence
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start prover child: %w", err),
			toChild.Close(), fromChild.Close(), errRead.Close())
	}
	p.cmd, p.pid = cmd, cmd.Process.Pid
	p.log = cfg.Logger.With("role", cfg.Role.String(), "pid", p.pid)
	p.stderr = &stderrLog{log: p.log}
	go p.supervise()
	return p, nil
}

// supervise owns the life of the process and of its other goroutines.
func (p *process) supervise() {
	var wg sync.WaitGroup
	readerDone, stderrDone, exited, quit := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	wg.Go(func() { defer close(readerDone); p.read() })
	wg.Go(func() { p.write(quit) })
	wg.Go(func() { defer close(stderrDone); p.stderr.drain(p.errPipe) })
	wg.Go(func() { defer close(exited); p.waitExit() })
	ctx, cancel := context.WithCancel(context.Background())
	if p.cfg.Watch != nil {
		wg.Go(func() {
			if err := p.cfg.Watch(ctx, p.pid, cmp.Or(p.cfg.MemoryMax, math.MaxInt64)); err != nil {
				p.kill(fmt.Errorf("%w: %w", ErrMemory, err))
			}
		})
	}

	p.awaitEnd(readerDone, exited)

	// The leader is a zombie now, so its process group still exists: end whoever is left in it, then reap.
	_ = unix.Kill(-p.pid, unix.SIGKILL) // ESRCH and EPERM mean that nobody is left
	err := p.cmd.Wait()
	// What the child wrote before it died is read to the end; a stranger who holds the pipes must not hold us.
	drained := time.Now().Add(p.cfg.StopGrace)
	_ = p.fromChild.SetReadDeadline(drained)
	_ = p.errPipe.SetReadDeadline(drained)
	<-readerDone
	<-stderrDone
	p.setFault(p.crash(err), false)
	cancel()
	close(quit)
	p.toChild.Close() // also ends a write that is blocked
	wg.Wait()
	p.fromChild.Close()
	p.errPipe.Close()
	p.endCalls()
	close(p.done)
}

// awaitEnd returns when the leader has exited, by itself or because it was made to.
func (p *process) awaitEnd(readerDone, exited <-chan struct{}) {
	select {
	case <-exited:
		return
	case <-p.stop:
	case <-readerDone:
		// The end of the pipe normally comes a moment before the end of the process.
		if waitFor(exited, p.cfg.StopGrace) {
			return
		}
		p.setFault(fmt.Errorf("%w: it closed its pipe and went on running", ErrProtocol), false)
	}
	p.mu.Lock()
	polite := p.polite
	p.mu.Unlock()
	if polite {
		p.toChild.Close()
		if waitFor(exited, p.cfg.StopGrace) {
			return
		}
	}
	_ = unix.Kill(-p.pid, unix.SIGTERM)
	if waitFor(exited, p.cfg.StopGrace) {
		return
	}
	_ = unix.Kill(-p.pid, unix.SIGKILL)
	<-exited
}

// waitExit blocks until the leader can be reaped, without reaping it: its pid stays ours until supervise has killed
// the group. Waiting for the process and not for its pipes is what keeps a grandchild with our pipe from blocking us.
func (p *process) waitExit() {
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func waitFor(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// crash explains the end of the leader.
func (p *process) crash(err error) error {
	e := &CrashError{Stderr: p.stderr.lastWords()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Signal = ws.Signal()
		} else {
			e.Exit = exit.ExitCode()
		}
	}
	if e.Signal == syscall.SIGKILL {
		limit := "it has no memory limit"
		if p.cfg.MemoryMax > 0 {
			limit = fmt.Sprintf("its memory limit is %d MiB", p.cfg.MemoryMax/mebibyte)
		}
		e.Reason = "killed from outside, for memory or by hand (" + limit + ")"
	}
	return e
}

// setFault records the first reason and withdraws the process from use.
func (p *process) setFault(err error, polite bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		return
	}
	p.fault, p.polite, p.lost = err, polite, len(p.calls)
	close(p.dying)
}

// kill ends the process for a reason: SIGTERM to its group, StopGrace, SIGKILL. It does not wait.
func (p *process) kill(reason error) {
	p.setFault(reason, false)
	p.requestStop()
}

// errStopped is the fault of a process that was asked to end.
var errStopped = errors.New("stopped")

// retire takes a process that has nothing to do out of use and ends it politely; false where it has a call or is ending
// already. It does not wait.
func (p *process) retire(reason error) bool {
	p.mu.Lock()
	isIdle := p.fault == nil && len(p.calls) == 0
	if isIdle {
		p.fault, p.polite = reason, true
		close(p.dying)
	}
	p.mu.Unlock()
	if isIdle {
		p.requestStop()
	}
	return isIdle
}

// shutdown ends the process politely: its input is closed, then as kill. It does not wait.
func (p *process) shutdown() {
	p.setFault(errStopped, true)
	p.requestStop()
}

func (p *process) requestStop() {
	select {
	case p.stop <- struct{}{}:
	default:
	}
}

// cause returns why the process is of no use any more; valid after dying is closed.
func (p *process) cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// callsLost is how many calls were in flight when the fault was set.
func (p *process) callsLost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *process) isDying() bool {
	select {
	case <-p.dying:
		return true
	default:
		return false
	}
}

func (p *process) write(quit <-chan struct{}) {
	for {
		select {
		case b := <-p.outbox:
			if _, err := p.toChild.Write(b); err != nil {
				// A child that died shows up as an exit, with a better reason than a broken pipe.
				if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
					p.kill(fmt.Errorf("write to prover: %w", err))
				}
				return
			}
			p.buffers.give(b)
		case <-quit:
			return
		}
	}
}

func (p *process) read() {
	for {
		f, err := readFrame(p.fromChild, true, p.buffers)
		if err != nil {
			if errors.Is(err, errFrame) {
				p.kill(fmt.Errorf("%w: %w", ErrProtocol, err))
			}
			return
		}
		if err := p.deliver(f); err != nil {
			p.kill(fmt.Errorf("%w: %w", ErrProtocol, err))
			return
		}
	}
}
