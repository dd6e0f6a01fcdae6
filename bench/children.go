package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"aggnode/prover"
	"aggnode/scheduler"
)

// startTimeout ends a measurement whose child does not come up: it is started again and again until then. Set-up took at
// most 17 s on the busiest machine seen.
const startTimeout = 2 * time.Minute

// children are the processes of a measurement. Owned by one goroutine.
type children struct {
	cancels []context.CancelFunc
	running sync.WaitGroup
}

// start starts a child and waits until it serves. They are started one after the other: set-ups at once delay each other.
func (c *children) start(ctx context.Context, progress io.Writer, name string, cfg prover.Config) (*prover.Client, error) {
	say(progress, "starting the %s ...", name)
	began := time.Now()
	client, err := prover.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("start the %s: %w", name, err)
	}
	run, cancel := context.WithCancel(ctx)
	c.cancels = append(c.cancels, cancel)
	c.running.Go(func() { _ = client.Run(run) }) // WaitReady and the calls return its error
	wait, stop := context.WithTimeout(ctx, startTimeout)
	defer stop()
	if err := client.WaitReady(wait); err != nil {
		return nil, fmt.Errorf("start the %s: %w", name, errors.Join(err, client.Stats().LastError))
	}
	say(progress, "the %s is ready after %.1f s", name, time.Since(began).Seconds())
	return client, nil
}

// startVerifier starts a verifier child as the node has it, of base's backend.
func (c *children) startVerifier(
	ctx context.Context, progress io.Writer, base prover.Config, workers int, sched *scheduler.Scheduler,
) (*prover.Client, error) {
	base.Role, base.Calls = prover.RoleVerify, max(1, workers-1)
	base.Threads = base.Calls
	base.Place = sched.Place(scheduler.ClassVerifier)
	return c.start(ctx, progress, "verifier", base)
}

// stop ends all children and waits until they are reaped.
func (c *children) stop() {
	for _, cancel := range c.cancels {
		cancel()
	}
	c.running.Wait()
}
