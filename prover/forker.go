package prover

import (
	"context"
	"os/exec"
	"runtime"
)

// forker starts commands from one locked OS thread that lives as long as the client. The kernel delivers
// PR_SET_PDEATHSIG when the *thread* that forked ends, not the process: a child started from any goroutine would die
// whenever the runtime retires the thread underneath.
type forker struct {
	requests chan forkRequest // unbuffered: a request is taken when the thread is free to serve it
}

type forkRequest struct {
	cmd   *exec.Cmd
	reply chan error // one slot, so that the forker never waits for a caller who left
}

func newForker() *forker { return &forker{requests: make(chan forkRequest)} }

// run serves start until quit is closed. The caller closes quit after the last child is reaped.
func (f *forker) run(quit <-chan struct{}) {
	// No unlock: the thread ends with the goroutine, and with it any child that was missed.
	runtime.LockOSThread()
	for {
		select {
		case r := <-f.requests:
			r.reply <- r.cmd.Start()
		case <-quit:
			return
		}
	}
}

func (f *forker) start(ctx context.Context, cmd *exec.Cmd) error {
	r := forkRequest{cmd: cmd, reply: make(chan error, 1)}
	select {
	case f.requests <- r:
		// Starting takes milliseconds and must not be left half done: no ctx here.
		return <-r.reply
	case <-ctx.Done():
		return ctx.Err()
	}
}
