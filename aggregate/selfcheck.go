package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"aggnode/wire"
)

const (
	// checkRetry is how long a self-check waits before it asks a verifier again that could not answer.
	checkRetry = 100 * time.Millisecond
	// checkingMax bounds finished proofs that wait for their self-check. A check takes 20 ms and a proof half a second, so
	// more than one means that no verifier answers, and then no further job is started.
	checkingMax = 4
)

// checked is how a self-check ended. pooled is set where the outcome is JobUnknown: the proof is good and on its way out.
type checked struct {
	job     *job
	outcome JobOutcome
	isGood  bool // the proof verifies
	pooled  *Pooled
	err     error
}

// selfCheck has a proof of ours verified and puts it into the pool. It runs on the job's goroutine, while the prover has
// the next job.
func (a *Aggregator) selfCheck(j *job, signed *wire.SignedAggregate) checked {
	began := a.clock.Now()
	ctx, span := a.tracer.Start(j.ctx, "check")
	outcome, err := a.check(ctx, signed)
	endSpan(span, err)
	a.metrics.observePhase(phaseCheck, a.clock.Now().Sub(began))
	c := checked{job: j, outcome: outcome, err: err, isGood: outcome == JobUnknown}
	if !c.isGood {
		return c
	}
	if a.pool.isCovered(j.plan.group.Root, j.plan.members) {
		c.outcome = JobSuperseded
		return c
	}
	c.pooled = a.pool.pooled(signed, j.plan.group.Root, SourceOwn)
	if !a.pool.addOwn(j.ctx, c.pooled) {
		c.outcome = JobCancelled
	}
	return c
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

// settleCheck takes the end of a self-check: a good proof goes out, a wrong one is never made again.
func (a *Aggregator) settleCheck(c checked) {
	j := c.job
	a.checking = slices.DeleteFunc(a.checking, func(k *job) bool { return k == j })
	a.follow() // what the proof was thought to cover is open again, or covered for good
	j.pooled, j.proved, j.err, j.outcome = c.pooled, c.isGood, c.err, c.outcome
	switch {
	case c.outcome == JobBadOutput:
		a.bars.quarantine(j.plan.key, j.slot())
		a.setWhy("a proof failed the self-check: " + c.err.Error())
	case c.outcome == JobUnknown:
		a.settle(j)
		a.send(j)
		return
	}
	a.settle(j)
	a.close(j, c.outcome)
}

// send puts a checked aggregate into the outbox.
func (a *Aggregator) send(j *job) {
	parcel := &parcel{job: j, notBefore: a.heldUntil(j), expires: a.expires(j.slot())}
	superseded, over := a.outbox.put(parcel)
	a.metrics.outbox.Set(float64(a.outbox.len()))
	for _, q := range superseded {
		a.published(publication{parcel: q, outcome: JobSuperseded})
	}
	for _, q := range over {
		a.published(publication{parcel: q, outcome: JobLate})
	}
}

// heldUntil is when the profile lets an aggregate go out; the zero time means at once.
func (a *Aggregator) heldUntil(j *job) time.Time {
	if !a.cfg.Profile.HoldUntilInterval2 {
		return time.Time{}
	}
	return a.clock.IntervalStart(j.slot(), 2)
}
