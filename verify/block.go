package verify

import (
	"context"

	"aggnode/wire"
)

// Block checks the proposer's signature where the envelope carries it raw (wire.EnvelopePair): the proposal key of the
// named proposer over the block root at epoch = slot. In the other envelope the signature is inside the merged proof and
// there is nothing to check here: ReasonNone. Reasons as of Attestations; whether the named validator is the proposer of
// the slot is for the chain. Source: leanSpec containers/block.py; ethlambda BlockProof; ARCHITECTURE.md section 2.
func (v *Verifier) Block(ctx context.Context, b *wire.SignedBlock) wire.Reason {
	if v.profile.Envelope != wire.EnvelopePair {
		return wire.ReasonNone
	}
	reason := v.block(ctx, b)
	v.metrics.block.count(reason)
	return reason
}

func (v *Verifier) block(ctx context.Context, b *wire.SignedBlock) wire.Reason {
	if reason, over := ended(ctx); over {
		return reason
	}
	key, ok := v.registry.ProposalKey(b.Block.ProposerIndex)
	if !ok {
		return wire.ReasonUnknownValidator
	}
	c, reason := v.check(b.Block.ProposerIndex, key, b.Block.Slot, b.Block.HashTreeRoot(v.profile), b.ProposerSignature)
	if reason != wire.ReasonNone {
		return reason
	}
	s := v.scratch.Get().(*scratch)
	s.add(c, b.Block.ProposerIndex)
	v.run(s, &v.metrics.block)
	reason = signatureReason(s.answers[0].Err)
	s.release()
	v.scratch.Put(s)
	return reason
}
