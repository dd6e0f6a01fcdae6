package pipeline

import "aggnode/wire"

// Verdict is what gossip does with a message.
type Verdict uint8

// The verdicts.
const (
	VerdictUnknown Verdict = iota // no verdict yet
	Accept                        // valid and new: forward it
	Reject                        // provably wrong: do not forward it
	Ignore                        // anything else: do not forward it, nobody is to blame
)

// String returns the label of the verdict.
func (v Verdict) String() string {
	switch v {
	case VerdictUnknown:
		return "unknown"
	case Accept:
		return "accept"
	case Reject:
		return "reject"
	case Ignore:
		return "ignore"
	}

	return "invalid"
}

// Outcome is how one item ended: exactly one reason, and the verdict that
// follows from it.
type Outcome struct {
	Verdict Verdict
	Reason  wire.Reason
}

// outcomeOf returns the outcome of a reason.
func outcomeOf(r wire.Reason) Outcome { return Outcome{Verdict: VerdictOf(r), Reason: r} }

// VerdictOf is the verdict table of ARCHITECTURE.md: reject only for a provable
// fault of the bytes (invariant 3). A node without a verifying backend forwards
// aggregates on their structure alone, so ReasonUnverified is an accept that
// reaches no pool.
func VerdictOf(r wire.Reason) Verdict {
	switch r {
	case wire.ReasonNone, wire.ReasonUnverified:
		return Accept
	case wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator, wire.ReasonEmptyParticipants,
		wire.ReasonBadSignature, wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonBadProposer,
		wire.ReasonBadCheckpoints:
		return Reject
	case wire.ReasonWrongSubnet, wire.ReasonStale, wire.ReasonEarly, wire.ReasonDuplicate, wire.ReasonSubsumed,
		wire.ReasonEquivocation, wire.ReasonTooManyForSlot, wire.ReasonQueueFull, wire.ReasonEvicted,
		wire.ReasonExpired, wire.ReasonUnknownHead, wire.ReasonUnknownParent, wire.ReasonVerifierUnavailable,
		wire.ReasonInternalError, wire.ReasonStopping, wire.ReasonPoolFull:
		return Ignore
	}

	return Ignore // a number that is not in the table proves nothing
}
