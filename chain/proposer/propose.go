package proposer

import (
	"context"
	"fmt"

	"aggnode/wire"
)

// Propose makes the block of a slot whose proposal key is held here, inserts it
// into our own chain and publishes it. The block is nil where none was signed;
// err tells more about an outcome other than OutcomePublished and may be nil.
func (p *Proposer) Propose(ctx context.Context, slot wire.Slot) (*wire.SignedBlock, Outcome, error) {
	proposer := p.proposer(slot)
	switch {
	case p.cfg.Profile.Envelope != wire.EnvelopePair:
		return nil, OutcomeNoEnvelope, fmt.Errorf("profile %s has the %s envelope", p.cfg.Profile.Name, p.cfg.Profile.Envelope)
	case !p.isOurs(slot):
		return nil, OutcomeRefused, fmt.Errorf("no proposal key of validator %d here", proposer)
	case !p.clock.Now().Before(p.clock.IntervalStart(slot, 1)):
		return nil, OutcomeLate, nil
	}
	block := p.build(slot)
	root := block.Block.HashTreeRoot(p.cfg.Profile)
	var err error
	if block.ProposerSignature, err = p.signer.SignBlock(ctx, proposer, slot, root); err != nil {
		return nil, OutcomeRefused, err
	}
	// Our own chain first: a block that this node itself proves wrong must not go
	// out. Any other answer (queue full, stopping, out of time) is no reason to
	// lose the slot.
	reason := p.deliverer.SubmitBlock(ctx, block)
	if isFault(reason) {
		return block, OutcomeWithheld, fmt.Errorf("own pipeline: %s", reason)
	}
	if reason != wire.ReasonNone {
		p.log.Warn("own block not taken by this node", "slot", uint64(slot), "reason", reason.String())
	}
	if err := p.publisher.PublishBlock(ctx, block); err != nil {
		return block, OutcomeNotSent, err
	}

	return block, OutcomePublished, nil
}

// isFault reports whether a reason says that the block itself is wrong
// (ARCHITECTURE.md section 2).
func isFault(r wire.Reason) bool {
	switch r {
	case wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator, wire.ReasonEmptyParticipants, wire.ReasonBadSignature,
		wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonBadProposer, wire.ReasonBadCheckpoints:
		return true
	case wire.ReasonNone, wire.ReasonWrongSubnet, wire.ReasonStale, wire.ReasonEarly, wire.ReasonDuplicate, wire.ReasonSubsumed,
		wire.ReasonEquivocation, wire.ReasonTooManyForSlot, wire.ReasonQueueFull, wire.ReasonEvicted, wire.ReasonExpired, wire.ReasonUnknownHead,
		wire.ReasonUnknownParent, wire.ReasonVerifierUnavailable, wire.ReasonInternalError, wire.ReasonStopping, wire.ReasonPoolFull,
		wire.ReasonUnverified:
	}

	return false
}

// build returns the unsigned block of a slot.
func (p *Proposer) build(slot wire.Slot) *wire.SignedBlock {
	parent := p.chain.AttestationData(slot - 1).Head
	block := &wire.SignedBlock{Block: wire.Block{
		Slot:          slot,
		ProposerIndex: p.proposer(slot),
		ParentRoot:    parent.Root,
	}}
	best, ok := p.aggregates.BestForBlock(slot)
	if !ok || !p.fits(slot, parent.Root, best) {
		return block
	}
	// The union with nobody is the set in its shortest form.
	participants := best.Participants.Union(wire.Participants{})
	block.Block.Body.Attestations = []wire.AggregatedAttestation{{Participants: participants, Data: best.Data}}
	block.Proof = best.Proof

	return block
}

// fits reports whether an aggregate is of use on the chain that ends at parent:
// its vote is older than the block, names that chain, and has participants that
// no block of the chain holds yet.
func (p *Proposer) fits(slot wire.Slot, parent wire.Root, a *wire.SignedAggregate) bool {
	if a.Data.Slot >= slot || !p.chain.IsAncestor(a.Data.Head.Root, parent) {
		return false
	}
	included := p.chain.Included(parent, a.Data.HashTreeRoot())

	return a.Participants.CountNotIn(included) > 0
}
