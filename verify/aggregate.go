package verify

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/wire"
)

// minProofSize is the length in bytes below which nothing can be a proof: every backend's proof holds more than one key
// and one message. Shorter ones are refused before a checker sees them, so that it never matters what a backend makes
// of an empty or cut proof.
const minProofSize = 65

// Aggregate checks the proof of an aggregate against the claim that its data and participants make. ReasonNone means
// valid, otherwise: ReasonEmptyParticipants, ReasonUnknownValidator, ReasonEarly (as in Attestations), ReasonMalformed
// (proof longer than the limit), ReasonBadProof, ReasonClaimMismatch, ReasonSchemeMismatch, ReasonVerifierUnavailable, and
// ReasonExpired or ReasonStopping when ctx ended before there was an answer.
//
// With Config.NoProofs an aggregate that passes the structural checks is answered with ReasonUnverified, never with
// ReasonNone. Source: leanSpec containers/aggregation.py; ARCHITECTURE.md section 4.
func (v *Verifier) Aggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason {
	ctx, span := v.tracer.Start(ctx, "verify.aggregate")
	reason := v.aggregate(ctx, a)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.Int64("slot", int64(a.Data.Slot)), //nolint:gosec // a label for people; slots fit
			attribute.String("data_root", a.Data.HashTreeRoot().Short()),
			attribute.Int("participants", a.Participants.Count()),
			attribute.Int("proof_bytes", len(a.Proof)),
			attribute.String("reason", reason.String()),
		)
		if reason != wire.ReasonNone {
			span.SetStatus(codes.Error, reason.String())
		}
	}
	span.End()
	v.metrics.aggregate.count(reason)
	return reason
}

// Aggregates checks a batch and writes the reason of batch[i], as of Aggregate, to out[i], whatever the others hold; out must
// be at least as long as batch. A checker that shares work between proofs is asked once, so all answers come when the last one
// does, and there are no spans; another is asked for one proof after the other.
func (v *Verifier) Aggregates(ctx context.Context, batch []*wire.SignedAggregate, out []wire.Reason) {
	out = out[:len(batch)]
	if len(batch) == 1 || v.sharing == nil {
		for i, a := range batch {
			out[i] = v.Aggregate(ctx, a)
		}
		return
	}
	var (
		checks []ProofCheck
		sets   []*pubkeycache.SignerSet // of checks
		index  []int                    // position in the batch of checks[i]
	)
	for i, a := range batch {
		var set *pubkeycache.SignerSet
		if set, out[i] = v.prepare(ctx, a); out[i] == wire.ReasonNone {
			checks, sets, index = append(checks, ProofCheck{claimOf(a, set), a.Proof}), append(sets, set), append(index, i)
		}
	}
	if len(checks) > 0 {
		busy, start := v.proverBusy(), time.Now()
		errs := v.sharing.VerifyBatch(ctx, checks)
		each := time.Since(start) / time.Duration(len(checks))
		for n, i := range index {
			out[i] = v.conclude(ctx, sets[n], errs[n], each, busy)
		}
	}
	v.metrics.aggregate.countAll(out)
}

func (v *Verifier) aggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason {
	set, reason := v.prepare(ctx, a)
	if reason != wire.ReasonNone {
		return reason
	}
	busy, start := v.proverBusy(), time.Now()
	err := v.checker.Verify(ctx, claimOf(a, set), a.Proof)
	return v.conclude(ctx, set, err, time.Since(start), busy)
}

// prepare is all that comes before the proof: structure and signer set.
func (v *Verifier) prepare(ctx context.Context, a *wire.SignedAggregate) (*pubkeycache.SignerSet, wire.Reason) {
	highest, ok := a.Participants.Highest()
	switch {
	case !ok:
		return nil, wire.ReasonEmptyParticipants
	case highest >= wire.ValidatorIndex(v.registry.Len()):
		return nil, wire.ReasonUnknownValidator
	case a.Data.Slot > maxEpoch:
		return nil, wire.ReasonEarly
	case len(a.Proof) > wire.MaxProofSize:
		return nil, wire.ReasonMalformed
	case len(a.Proof) < minProofSize:
		return nil, wire.ReasonBadProof
	case v.noProofs:
		return nil, wire.ReasonUnverified
	}
	if reason, over := ended(ctx); over {
		return nil, reason
	}
	set, err := v.cache.SignerSet(ctx, a.Participants)
	if err != nil {
		return nil, signerSetReason(ctx, err)
	}
	return set, wire.ReasonNone
}

func claimOf(a *wire.SignedAggregate, set *pubkeycache.SignerSet) prover.Claim {
	return prover.Claim{Message: a.Data.HashTreeRoot(), Epoch: uint32(a.Data.Slot), SignerSet: set.Keys}
}

// conclude turns the checker's answer into a reason, and keeps and counts what it showed.
func (v *Verifier) conclude(ctx context.Context, set *pubkeycache.SignerSet, err error, took time.Duration, busy bool) wire.Reason {
	reason := v.proofReason(ctx, err)
	switch reason {
	case wire.ReasonNone:
		v.cache.Admit(set)
		v.metrics.aggregatesValid.Inc()
	case wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonSchemeMismatch:
		v.metrics.aggregatesInvalid.Inc()
	default:
		return reason // no answer about the bytes: neither valid nor invalid, and no check time
	}
	v.metrics.observeAggregate(took.Seconds(), busy)
	return reason
}

// proofReason maps the checker's error. Unavailability comes first: a child that could not start because it is for
// another scheme is our fault, not that of the aggregate's sender (invariant 3).
func (v *Verifier) proofReason(ctx context.Context, err error) wire.Reason {
	switch {
	case err == nil:
		return wire.ReasonNone
	case errors.Is(err, prover.ErrUnavailable):
	case errors.Is(err, prover.ErrBadProof):
		return wire.ReasonBadProof
	case errors.Is(err, prover.ErrClaimMismatch):
		return wire.ReasonClaimMismatch
	case errors.Is(err, prover.ErrSchemeMismatch):
		v.notice.schemeMismatch("proof", 0)
		return wire.ReasonSchemeMismatch
	}
	if reason, over := ended(ctx); over {
		return reason
	}
	v.notice.unavailable(err)
	return wire.ReasonVerifierUnavailable
}

// signerSetReason maps an error of the cache. The participants were checked before, so what is left is a wait for
// another worker's build that ended with ctx.
func signerSetReason(ctx context.Context, err error) wire.Reason {
	switch reason, over := ended(ctx); {
	case over:
		return reason
	case errors.Is(err, pubkeycache.ErrUnknownValidator):
		return wire.ReasonUnknownValidator
	case errors.Is(err, pubkeycache.ErrNoParticipants):
		return wire.ReasonEmptyParticipants
	}
	return wire.ReasonInternalError
}
