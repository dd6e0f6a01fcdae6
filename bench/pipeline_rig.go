package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"time"

	"aggnode/pipeline"
	"aggnode/verify"
)

// samples are the measurements of the rounds.
type samples struct {
	bare, node, direct, queue []cost
	acceptedByBare            int

	// Of the streams to the node.
	senderCPU        []time.Duration // of the whole stream
	spans            []time.Duration // from when the first vote was due to the last verdict
	batches          []float64       // mean votes of a check
	verdicts, delays []time.Duration // of each vote
	lost             map[string]int  // by reason

	// In this process.
	batchesDirect  []float64
	verdictsDirect []time.Duration
}

// pipelineRig is what stays from stream to stream.
type pipelineRig struct {
	cfg      *PipelineConfig
	votes    *slotVotes
	capture  string // the votes, for the sender
	verifier *verify.Verifier
	limits   pipeline.Limits
}

// total is the number of votes of a stream.
func (r *pipelineRig) total() int { return r.cfg.Passes * r.cfg.Validators }

// warmUp lets the verifier learn the upper part of every key, and makes sure that all votes are valid.
func (r *pipelineRig) warmUp(ctx context.Context) error {
	p, err := startPasses(ctx, r.votes, 1, r.cfg.Workers, r.verifier)
	if err != nil {
		return err
	}
	defer p.stop()
	r.limits = p.Limits()
	p.feedDirect(ctx, r.votes)
	if err := ctx.Err(); err != nil {
		return err
	}
	if n := int(p.accepted.Load()); n != r.cfg.Validators {
		return fmt.Errorf("warm up: %d of %d votes were accepted, the others ended as %v", n, r.cfg.Validators, p.lost)
	}
	return nil
}

// step is one measurement of a round.
type step struct {
	name string
	do   func(ctx context.Context, s *samples) error
}

// round measures everything once. The two receivers change places from round to round.
func (r *pipelineRig) round(ctx context.Context, round int, s *samples) error {
	steps := []step{{"in-process", r.direct}, {"queue", r.queue}, {"bare", r.bare}, {"node", r.node}}
	if round%2 == 1 {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		stop, err := r.profile(fmt.Sprintf("%s-%d", step.name, round+1))
		if err != nil {
			return err
		}
		if err := errors.Join(step.do(ctx, s), stop(), ctx.Err()); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	each := func(c []cost) float64 { return c[round].us(r.total()) }
	say(r.cfg.Progress, "round %d of %d  bare %5.1f us  node %5.1f us  in process %5.1f us  queue %5.2f us a vote",
		round+1, r.cfg.Rounds, each(s.bare), each(s.node), each(s.direct), each(s.queue))
	return nil
}

// profile begins a CPU profile in the folder for them, if there is one.
func (r *pipelineRig) profile(name string) (stop func() error, err error) {
	if r.cfg.CPUProfiles == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(r.cfg.CPUProfiles, name+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// direct measures the whole path in this process.
func (r *pipelineRig) direct(ctx context.Context, s *samples) error {
	p, err := startPasses(ctx, r.votes, r.cfg.Passes, r.cfg.Workers, r.verifier)
	if err != nil {
		return err
	}
	defer p.stop()
	s.direct = append(s.direct, p.feedDirect(ctx, r.votes))
	s.batchesDirect = append(s.batchesDirect, p.batch())
	s.verdictsDirect = append(s.verdictsDirect, p.verdicts()...)
	return nil
}

// queue measures the pipeline after stage 1 and without signatures.
func (r *pipelineRig) queue(ctx context.Context, s *samples) error {
	p, err := startPasses(ctx, r.votes, r.cfg.Passes, r.cfg.Workers, allValid{})
	if err != nil {
		return err
	}
	defer p.stop()
	c, err := p.feedScreened(ctx, r.votes)
	s.queue = append(s.queue, c)
	return err
}

// bare measures a stream to the library alone.
func (r *pipelineRig) bare(ctx context.Context, s *samples) error {
	to, err := startBare(ctx, r.cfg.Passes, r.total(), r.limits)
	if err != nil {
		return fmt.Errorf("start the receiver: %w", err)
	}
	c, _, err := r.stream(ctx, to)
	s.bare = append(s.bare, c)
	s.acceptedByBare += to.accepted()
	return errors.Join(err, to.stop())
}

// node measures a stream to the node.
func (r *pipelineRig) node(ctx context.Context, s *samples) error {
	p, err := startPasses(ctx, r.votes, r.cfg.Passes, r.cfg.Workers, r.verifier)
	if err != nil {
		return err
	}
	defer p.stop()
	to, err := startNode(ctx, r.votes, p)
	if err != nil {
		return fmt.Errorf("start the receiver: %w", err)
	}
	c, sent, err := r.stream(ctx, to)
	if err := errors.Join(err, to.stop()); err != nil {
		return err
	}
	s.node = append(s.node, c)
	s.senderCPU = append(s.senderCPU, sent.CPU)
	s.batches = append(s.batches, p.batch())
	s.verdicts = append(s.verdicts, p.verdicts()...)
	s.delays = append(s.delays, p.delays(sent.Begin, r.cfg.Rate)...)
	s.spans = append(s.spans, p.began.Add(slices.Max(p.ends)).Sub(sent.Begin))
	for reason, n := range p.lost {
		s.lost[reason.String()] += n
	}
	return countShed(to.registry, s.lost)
}

// stream has the sender send all votes to a receiver and measures from before the first to after the last.
func (r *pipelineRig) stream(ctx context.Context, to *receiver) (c cost, sent senderLine, err error) {
	from, err := startSender(ctx, r.cfg.Sender,
		SenderConfig{Capture: r.capture, To: to.address, Passes: r.cfg.Passes, Rate: r.cfg.Rate})
	if err != nil {
		return cost{}, senderLine{}, err
	}
	defer func() { err = errors.Join(err, from.stop()) }()
	m := newMeter()
	if sent, err = from.play(ctx, atRate(r.total(), r.cfg.Rate)); err != nil {
		return cost{}, senderLine{}, err
	}
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	select {
	case <-to.all:
	case <-timer.C:
	case <-ctx.Done():
	}
	return m.stop(), sent, ctx.Err()
}
