package aggregate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"aggnode/prover"
	"aggnode/wire"
)

// checkRetry is how long a self-check waits before it asks a verifier again that could not answer.
const checkRetry = 100 * time.Millisecond

// prove makes the proof, checks it and puts it into the pool. It runs on the job's goroutine.
func (a *Aggregator) prove(j *job, input prover.Job, hard time.Time, release func()) {
	ctx, cancel := context.WithDeadline(j.ctx, hard)
	defer cancel()
	began := a.clock.Now()
	proveCtx, span := a.tracer.Start(ctx, "prove")
	result, err := a.prover.Prove(proveCtx, input)
	release()
	j.wall = a.clock.Now().Sub(began)
	endSpan(span, err)
	a.metrics.observeProof(j, err)
	if err != nil {
		j.err = err
		j.outcome, j.isBound = outcomeOf(err, ctx, j.ctx)
		return
	}
	if n := len(result.Proof); n == 0 || n > wire.MaxProofSize {
		j.outcome, j.err = JobBadOutput, fmt.Errorf("proof of %d bytes, at most %d allowed", n, wire.MaxProofSize)
		return
	}
	signed := &wire.SignedAggregate{Data: j.plan.group.Data, Participants: j.plan.participants(), Proof: result.Proof}
	began = a.clock.Now()
	checkCtx, span := a.tracer.Start(j.ctx, "check")
	j.outcome, j.err = a.check(checkCtx, signed)
	endSpan(span, j.err)
	a.metrics.observePhase(phaseCheck, a.clock.Now().Sub(began))
	if j.outcome != JobUnknown {
		return
	}
	j.proved = true
	if a.pool.isCovered(j.plan.group.Root, j.plan.members) {
		j.outcome = JobSuperseded
		return
	}
	j.pooled = a.pool.pooled(signed, j.plan.group.Root, SourceOwn)
	if !a.pool.addOwn(j.ctx, j.pooled) {
		j.outcome = JobCancelled
	}
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

// check has our own proof verified. A verifier that can not answer is asked again as long as others would still accept
// the aggregate; nothing leaves unchecked (invariant 5).
func (a *Aggregator) check(ctx context.Context, s *wire.SignedAggregate) (JobOutcome, error) {
	expires := a.expires(s.Data.Slot)
	for {
		r := a.checker.CheckAggregate(ctx, s)
		switch r {
		case wire.ReasonNone:
			return JobUnknown, nil
		case wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator, wire.ReasonEmptyParticipants,
			wire.ReasonBadSignature, wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonBadProposer, wire.ReasonBadCheckpoints:
			return JobBadOutput, errors.New(r.Short())
		case wire.ReasonDuplicate, wire.ReasonSubsumed:
			return JobSuperseded, nil
		case wire.ReasonStale:
			return JobLate, nil
		case wire.ReasonWrongSubnet, wire.ReasonEarly, wire.ReasonEquivocation, wire.ReasonTooManyForSlot, wire.ReasonQueueFull,
			wire.ReasonEvicted, wire.ReasonExpired, wire.ReasonUnknownHead, wire.ReasonUnknownParent, wire.ReasonVerifierUnavailable,
			wire.ReasonInternalError, wire.ReasonStopping, wire.ReasonPoolFull, wire.ReasonUnverified:
		}
		if a.clock.Now().Add(checkRetry).After(expires) {
			return JobLate, fmt.Errorf("no answer from the verifier: %s", r.Short())
		}
		timer := time.NewTimer(checkRetry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return JobCancelled, ctx.Err()
		}
	}
}
