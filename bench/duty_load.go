package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"aggnode/prover"
	"aggnode/scheduler"
)

// DutyLoad is what runs beside the duties of DutyConfig, placed as the node places its prover.
type DutyLoad string

// The loads.
const (
	DutyLoadNone   DutyLoad = "none"
	DutyLoadSpin   DutyLoad = "spin"   // a process a core that does nothing but run
	DutyLoadProver DutyLoad = "prover" // a prover at one job after the other
)

// DutyLoads returns all loads.
func DutyLoads() []DutyLoad { return []DutyLoad{DutyLoadNone, DutyLoadSpin, DutyLoadProver} }

// spinner is a program that never waits.
var spinner = [...]string{"/bin/sh", "-c", "while :; do :; done"}

// dutyLoad is a load that runs. Owned by one goroutine.
type dutyLoad struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	pids    func() []int

	markTime time.Time
	markCPU  time.Duration

	// valid after running
	spans []span
	err   error

	children children
}

// startDutyLoad starts the load and returns when it is at work.
func startDutyLoad(ctx context.Context, cfg *DutyConfig, sched *scheduler.Scheduler) (*dutyLoad, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &dutyLoad{cancel: cancel, pids: func() []int { return nil }}
	var err error
	switch cfg.Load {
	case DutyLoadNone:
	case DutyLoadSpin:
		err = l.spin(ctx, sched)
	case DutyLoadProver:
		err = l.prove(ctx, cfg, sched)
	default:
		err = fmt.Errorf("duty bench: unknown load %q", cfg.Load)
	}
	if err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

// spin starts a spinner for each core.
func (l *dutyLoad) spin(ctx context.Context, sched *scheduler.Scheduler) error {
	var pids []int
	for range runtime.GOMAXPROCS(0) {
		cmd := exec.CommandContext(ctx, spinner[0], spinner[1:]...)
		if err := sched.Place(scheduler.ClassProver)(cmd); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start the load: %w", err)
		}
		pids = append(pids, cmd.Process.Pid)
		l.running.Go(func() { _ = cmd.Wait() }) // it ends by being killed
	}
	l.pids = func() []int { return pids }
	return nil
}

// prove starts a prover and keeps it at work.
func (l *dutyLoad) prove(ctx context.Context, cfg *DutyConfig, sched *scheduler.Scheduler) error {
	t, err := loadTrace()
	if err != nil {
		return err
	}
	client, err := l.children.start(ctx, cfg.Progress, "prover", prover.Config{
		Command: cfg.Command, Env: cfg.Env, Scheme: t.profile.Scheme, Logger: cfg.Logger,
		Role: prover.RoleProve, Place: sched.Place(scheduler.ClassProver),
	})
	if err != nil {
		return err
	}
	l.pids = func() []int { return []int{client.Stats().PID} }
	job := t.job(jobVotes, 0)
	l.running.Go(func() {
		for ctx.Err() == nil && l.err == nil {
			var s span
			if s, l.err = proveOnce(ctx, client, job, nil); l.err == nil {
				l.spans = append(l.spans, s)
			}
		}
		if ctx.Err() != nil {
			l.err = nil // the last proof ended with the measurement
		}
	})
	return nil
}

// mark begins the time that used is about.
func (l *dutyLoad) mark() { l.markTime, l.markCPU = time.Now(), l.cpu() }

// used ends the load and returns how many cores it had since mark, and how many proofs it made.
func (l *dutyLoad) used() (cores, proofs float64) {
	end := time.Now()
	cpu := l.cpu() - l.markCPU
	l.cancel()
	l.running.Wait()
	return float64(cpu) / float64(end.Sub(l.markTime)), share(l.spans, l.markTime, end)
}

func (l *dutyLoad) cpu() (sum time.Duration) {
	for _, pid := range l.pids() {
		sum += processCPU(pid)
	}
	return sum
}

// stop ends the load, however far it came, and returns its fault.
func (l *dutyLoad) stop() error {
	l.cancel()
	l.running.Wait()
	l.children.stop()
	return l.err
}
