package node

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stage is one part of the running node.
type stage struct {
	name string
	run  func(ctx context.Context) error // blocks until ctx ends; nil for a stage that only stops
	halt func()                          // called before ctx of run is cancelled; may be nil
}

// stopDeadline is how long each stage may take to stop. The longest is a prover child that ignores SIGTERM: half a
// second until it is killed, and a little to reap it.
const stopDeadline = 4 * time.Second

// stages is the one list of what runs, in stop order. They start in the reverse order, so that everything a stage
// calls is there before it.
func (n *Node) stages() []stage {
	list := []stage{
		{name: "intake", halt: n.host.StopIntake},
	}
	if n.proposer != nil {
		list = append(list, stage{name: "proposer", run: n.proposer.Run})
	}
	if n.signer != nil {
		list = append(list, stage{name: "signer", run: n.afterHost(n.signer.Run)})
	}
	list = append(list,
		stage{name: "pipeline", run: n.pipe.Run},
		stage{name: "session", run: n.runSession},
		stage{name: "pool", run: n.pool.Run},
	)
	if n.backend.proverChild != nil {
		list = append(list, stage{name: "prover", run: n.backend.proverChild.Run})
	}
	if n.backend.compare {
		list = append(list, stage{name: "arbiter", run: n.backend.arbiter.Run})
	}
	if n.backend.verifierChild != nil {
		list = append(list, stage{name: "verifier", run: n.backend.runVerifierChild})
	}
	return append(list,
		stage{name: "budget", run: n.sched.Run},
		stage{name: "p2p", run: n.joinWarm},
		stage{name: "clock", run: n.monitor.Run},
		stage{name: "announcer", run: n.announceBackend},
		stage{name: "api", run: n.servers.Run},
	)
}

// running is a started stage.
type running struct {
	stage
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid after done
}

// Run starts all stages and blocks until ctx ends or one of them fails, then stops them in order. The error is that of
// the stage that ended the run, nil after an ordered stop.
func (n *Node) Run(ctx context.Context) error {
	n.announce()
	list := n.stages()
	started := make([]*running, len(list))
	ended := make(chan *running, len(list)) // one send a stage
	for i := len(list) - 1; i >= 0; i-- {
		r := &running{stage: list[i], done: make(chan struct{})}
		started[i] = r
		if r.run == nil {
			close(r.done)
			continue
		}
		// Stages outlive ctx: they stop one after the other.
		stageCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r.cancel = cancel
		go func() {
			r.err = r.run(stageCtx)
			close(r.done)
			ended <- r
		}()
	}
	var cause error
	select {
	case <-ctx.Done():
		n.log.Info("stopping")
	case r := <-ended:
		cause = r.err
		if cause == nil {
			cause = errors.New("ended by itself")
		}
		cause = fmt.Errorf("%s: %w", r.name, cause)
	}
	return errors.Join(cause, n.stop(started, stopDeadline))
}

// stop ends the stages in order, each within the limit.
func (n *Node) stop(started []*running, limit time.Duration) error {
	began := time.Now()
	var errs []error
	for _, r := range started {
		if r.halt != nil {
			r.halt()
		}
		if r.cancel != nil {
			r.cancel()
		}
		deadline := time.NewTimer(limit)
		select {
		case <-r.done:
			if r.err != nil && !errors.Is(r.err, context.Canceled) {
				n.log.Debug("stage ended with an error", "stage", r.name, "error", r.err)
			}
		case <-deadline.C:
			n.log.Error("stage did not stop in time", "stage", r.name, "deadline_ms", limit.Milliseconds())
			errs = append(errs, fmt.Errorf("%s did not stop within %v", r.name, limit))
		}
		deadline.Stop()
	}
	n.log.Info("stopped", "duration_ms", time.Since(began).Milliseconds())
	return errors.Join(errs...)
}

// runSession runs the aggregator and keeps what it learnt about the prover.
func (n *Node) runSession(ctx context.Context) error {
	err := n.aggregator.Run(ctx)
	if n.backend.costs != nil {
		err = errors.Join(err, saveCosts(n.cfg.DataDir, n.backend.costs))
	}
	return err
}

// joinWarm joins the network with the keys of the next duty at hand.
func (n *Node) joinWarm(ctx context.Context) error {
	if n.signer != nil {
		n.signer.Warm(ctx)
	}
	return n.host.Run(ctx)
}

// afterHost delays duties until the topics are joined: a vote published before that would reach nobody.
func (n *Node) afterHost(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-n.host.Started():
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}
