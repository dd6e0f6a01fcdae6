package aggregate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"aggnode/prover"
	"aggnode/wire"
)

// proof is how a prover call ended. signed is set where the outcome is JobUnknown: the proof is made and not checked yet.
type proof struct {
	job      *job
	outcome  JobOutcome
	isBound  bool      // wall is a lower bound of what the job costs: it was killed
	accepted time.Time // when the prover had begun
	ended    time.Time
	wall     time.Duration
	signed   *wire.SignedAggregate
	err      error
}

// work makes the proof and then checks it. It runs on the job's goroutine and tells the loop after each part, so that the
// prover has its next job while the proof is checked.
func (a *Aggregator) work(j *job, input prover.Job, hard time.Time, release func()) {
	p := a.prove(j, input, hard, release)
	a.reports <- func() { a.finish(p) }
	if p.outcome == JobUnknown {
		c := a.selfCheck(j, p.signed)
		a.reports <- func() { a.settleCheck(c) }
	}
}

// prove makes the proof.
func (a *Aggregator) prove(j *job, input prover.Job, hard time.Time, release func()) proof {
	ctx, cancel := context.WithDeadline(j.ctx, hard)
	defer cancel()
	began := a.clock.Now()
	proveCtx, span := a.tracer.Start(ctx, "prove")
	result, err := a.prover.Prove(proveCtx, input)
	release()
	p := proof{job: j, accepted: began.Add(result.Wait), ended: a.clock.Now(), err: err}
	p.wall = p.ended.Sub(began)
	endSpan(span, err)
	a.metrics.observeProof(j.plan, p.wall, err)
	if err != nil {
		p.outcome, p.isBound = outcomeOf(err, ctx, j.ctx)
		return p
	}
	if n := len(result.Proof); n == 0 || n > wire.MaxProofSize {
		p.outcome, p.err = JobBadOutput, fmt.Errorf("proof of %d bytes, at most %d allowed", n, wire.MaxProofSize)
		return p
	}
	p.signed = &wire.SignedAggregate{Data: j.plan.group.Data, Participants: j.plan.participants(), Proof: result.Proof}
	return p
}

// outcomeOf maps an error of the prover; isBound says that its running time is a lower bound of the true cost.
func outcomeOf(err error, prove, job context.Context) (o JobOutcome, isBound bool) {
	var refused *prover.RefusedError
	switch {
	case job.Err() != nil:
		return JobCancelled, false
	case errors.As(err, &refused):
		return JobRefused, false
	case prove.Err() != nil, errors.Is(err, prover.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return JobTimedOut, true
	case errors.Is(err, prover.ErrStuck):
		return JobTimedOut, false // it did nothing: that says nothing about the cost
	}
	return JobCrashed, false
}
