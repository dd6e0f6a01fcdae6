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
	due      time.Time     // when it was to be sent
	arrived  time.Time     // when it was
	decoded  time.Time     // Screen is over
	taken    time.Time     // a worker has it checked
	asked    time.Time     // the signer set is there, the proof goes to the checker
	answered time.Time     // the checker's answer
	computed time.Duration // in the checker, without the way there and back
	ended    time.Time     // the verdict
	reason   wire.Reason
}

// probe stands between the pipeline and the verifier, and between the verifier and the proof checker, and notes when an
// aggregate passes. Safe for concurrent use.
type probe struct {
	*verify.Verifier
	waiting sync.Map // *wire.SignedAggregate -> *passage, of aggregates that were submitted
}

// proofChecker checks proofs and says what that cost where it was done. prover.Client and verify.Native are.
type proofChecker interface {
	Check(ctx context.Context, c prover.Claim, proof []byte) (prover.Verdict, error)
}

type passageKey struct{}

// Aggregates is asked by a worker of the pipeline, about one: passes take no batches, so that each has its own times.
func (p *probe) Aggregates(ctx context.Context, batch []*wire.SignedAggregate, out []wire.Reason) {
	for i, a := range batch {
		out[i] = p.aggregate(ctx, a)
	}
}

func (p *probe) aggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason {
	if v, ok := p.waiting.Load(a); ok {
		if s, ok := v.(*passage); ok {
			s.taken = time.Now()
			ctx = context.WithValue(ctx, passageKey{}, s)
		}
	}
	return p.Verifier.Aggregate(ctx, a)
}

// probedChecker is the far side: the verifier asks it.
type probedChecker struct {
	checker proofChecker // in use; changed between phases, when nothing is under way
	meters  *meters
}

// Verify asks the checker, and tells the meters as the node does.
func (c *probedChecker) Verify(ctx context.Context, claim prover.Claim, proof []byte) error {
	asked := time.Now()
	v, err := c.checker.Check(ctx, claim, proof)
	c.meters.Proof(v.Wall, v.CPU)
	if s, ok := ctx.Value(passageKey{}).(*passage); ok {
		s.asked, s.answered, s.computed = asked, time.Now(), v.Wall
	}
	return err
}
