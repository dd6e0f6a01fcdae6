package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// compute is OS threads that do long computations and nothing else.
//
// Go puts a goroutine that wakes on whatever thread is free. Linux gives each thread its share of a core: one that has just
// computed for milliseconds, longer than what waited beside it (a prover always waits), is not due when it wakes next. It
// stays in the line of the core that it used last, even while the other one would take it, until the next tick, up to 4 ms.
// Votes met that whenever they came to a thread that had checked a proof: their p99 was 0.6 ms while nobody proved and 4.5 ms
// beside a prover; with checks on threads of their own 0.6 and 0.7 (AMD EPYC, 2 cores, Linux 6.18, 2026-12).
type compute struct {
	jobs    chan func()
	quit    chan struct{}
	start   sync.Once
	stop    sync.Once
	running sync.WaitGroup
}

func newCompute() *compute { return &compute{jobs: make(chan func()), quit: make(chan struct{})} }

var errClosed = errors.New("the scheduler is closed")

// Compute runs work, which computes for a millisecond or more, on a thread kept for such work, and returns when it has ended.
// As many run at once as Go has processors; more wait. A panic of work continues in the caller. The error tells that work was
// not run: ctx ended before there was room, or the scheduler is closed. The threads start with the first call and end with
// Close, which waits for what is running.
func (s *Scheduler) Compute(ctx context.Context, work func()) error {
	c := s.compute
	c.start.Do(func() {
		for range s.machine.CPUs {
			c.running.Go(c.thread)
		}
	})
	done := make(chan struct{})
	var failed any // read after done is closed
	job := func() {
		defer close(done)
		defer func() {
			if failed = recover(); failed != nil {
				failed = fmt.Errorf("%v, on a thread for computations:\n%s", failed, debug.Stack())
			}
		}()
		work()
	}
	select {
	case c.jobs <- job:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.quit:
		return errClosed
	}
	<-done
	if failed != nil {
		panic(failed)
	}
	return nil
}

// thread runs jobs until the end. It never unlocks its OS thread, which thus ends with it.
func (c *compute) thread() {
	runtime.LockOSThread()
	for {
		select {
		case job := <-c.jobs:
			job()
		case <-c.quit:
			return
		}
	}
}

// close ends the threads. A Compute that comes later, or waits, gets an error.
func (c *compute) close() {
	c.start.Do(func() {}) // nobody starts them any more
	c.stop.Do(func() { close(c.quit) })
	c.running.Wait()
}
