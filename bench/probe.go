package bench

import (
	"context"
	"sync"
	"time"

	"aggnode/prover"
	"aggnode/verify"
	"aggnode/wire"
)

// passage is one message on its way, with the times at which it passed. Each field is written by the goroutine that holds
// the message then, and read after its verdict.
type passage struct {
	due      time.Time // when it was to be sent
	arrived  time.Time // when it was
	decoded  time.Time // Screen is over
	taken    time.Time // a worker has it checked
	asked    time.Time // the signer set is there, the proof goes to the checker
	answered time.Time // the checker's answer
	ended    time.Time // the verdict
	reason   wire.Reason
}

// probe stands between the pipeline and the verifier, and between the verifier and the proof checker, and notes when an
// aggregate passes. Safe for concurrent use.
type probe struct {
	*verify.Verifier
	waiting sync.Map // *wire.SignedAggregate -> *passage, of aggregates that were submitted
}

// proofChecker checks proofs. prover.Client is one.
type proofChecker interface {
	Verify(ctx context.Context, c prover.Claim, proof []byte) error
}

type passageKey struct{}

// Aggregate is asked by a worker of the pipeline.
func (p *probe) Aggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason {
	if v, ok := p.waiting.Load(a); ok {
		if s, ok := v.(*passage); ok {
			s.taken = time.Now()
			ctx = context.WithValue(ctx, passageKey{}, s)
		}
	}
	return p.Verifier.Aggregate(ctx, a)
}

// probedChecker is the far side: the verifier asks it.
type probedChecker struct{ proofChecker }

func (c probedChecker) Verify(ctx context.Context, claim prover.Claim, proof []byte) error {
	s, ok := ctx.Value(passageKey{}).(*passage)
	if !ok {
		return c.proofChecker.Verify(ctx, claim, proof)
	}
	s.asked = time.Now()
	err := c.proofChecker.Verify(ctx, claim, proof)
	s.answered = time.Now()
	return err
}
