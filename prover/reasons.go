package prover

import "errors"

// text is one row of a reason table.
type text struct{ code, short, long string }

// Outcome is how a call ended: label "outcome" of aggnode_prover_calls_total. Every call has exactly one.
type Outcome uint8

// The outcomes.
const (
	OutcomeUnknown Outcome = iota
	OutcomeOK
	OutcomeBadProof
	OutcomeClaimMismatch
	OutcomeRefused
	OutcomeTimeout
	OutcomeStuck
	OutcomeMemory
	OutcomeProtocol
	OutcomeCrashed
	OutcomeUnavailable

	outcomeEnd // one past the last outcome
)

var outcomeTexts = [outcomeEnd]text{
	OutcomeUnknown:       {"unknown", "not ended", "The call has not ended."},
	OutcomeOK:            {"ok", "answered", "The proof was made, or is sound and makes exactly the claim asked about."},
	OutcomeBadProof:      {"bad_proof", "the proof does not verify", "The backend checked the proof and refused it: the bytes are at fault."},
	OutcomeClaimMismatch: {"claim_mismatch", "the proof claims something else", "The proof is sound but covers other keys or another message, or holds claims of another kind."},
	OutcomeRefused:       {"refused", "the request was refused", "The job or check as it stands is not for this backend: a signature that does not verify, too many inputs. The error names the input."},
	OutcomeTimeout:       {"timeout", "no answer in time", "The deadline of the job or the limit of the check passed; the child was killed and started again."},
	OutcomeStuck:         {"stuck", "the child used no CPU", "A job's child used less than 10 ms of CPU in 3 s, or sent no progress for that long, and was killed before the deadline."},
	OutcomeMemory:        {"memory", "memory limit exceeded", "The child's process tree held more than its limit and was killed."},
	OutcomeProtocol:      {"protocol", "the child broke the protocol", "The child sent bytes that are no frame or no answer, and was killed."},
	OutcomeCrashed:       {"crashed", "the child died", "The child ended by itself or was killed from outside; the error has its signal or code and its last words."},
	OutcomeUnavailable:   {"unavailable", "no child, or the caller left", "No child was ready, or the caller's context ended first. Nothing was learnt."},
}

// OutcomeOf maps the error of a call to its outcome.
func OutcomeOf(err error) Outcome {
	var r *RefusedError
	switch {
	case err == nil:
		return OutcomeOK
	case errors.Is(err, ErrBadProof):
		return OutcomeBadProof
	case errors.Is(err, ErrClaimMismatch):
		return OutcomeClaimMismatch
	case errors.As(err, &r):
		return OutcomeRefused
	case errors.Is(err, ErrStuck):
		return OutcomeStuck
	case errors.Is(err, ErrTimeout):
		return OutcomeTimeout
	case errors.Is(err, ErrMemory):
		return OutcomeMemory
	case errors.Is(err, ErrProtocol):
		return OutcomeProtocol
	case errors.Is(err, ErrCrashed):
		return OutcomeCrashed
	}
	return OutcomeUnavailable
}

// Outcomes returns all outcomes in the order of the table.
func Outcomes() []Outcome {
	out := make([]Outcome, 0, outcomeEnd-1)
	for o := OutcomeUnknown + 1; o < outcomeEnd; o++ {
		out = append(out, o)
	}
	return out
}

// String returns the code.
func (o Outcome) String() string { return o.row().code }

// Short returns a few words for a person.
func (o Outcome) Short() string { return o.row().short }

// Long returns one or two sentences for the documentation.
func (o Outcome) Long() string { return o.row().long }

func (o Outcome) row() text {
	if o >= outcomeEnd {
		return text{"invalid", "not an outcome", "The number is not one of the table."}
	}
	return outcomeTexts[o]
}

// startReasons is the closed set of the label "reason" of aggnode_prover_starts_total: "first", or what ended the child
// before.
var startReasons = []string{"first", "timeout", "stuck", "memory", "recycled", "protocol", "crashed", "refused", "other"}

// startReason maps the end of the child before, nil if there was none.
func startReason(err error) string {
	if err == nil {
		return "first"
	}
	switch o := OutcomeOf(err); o {
	case OutcomeTimeout, OutcomeStuck, OutcomeMemory, OutcomeProtocol, OutcomeCrashed, OutcomeRefused:
		return o.String()
	case OutcomeUnknown, OutcomeOK, OutcomeBadProof, OutcomeClaimMismatch, OutcomeUnavailable:
	}
	switch {
	case errors.Is(err, ErrSchemeMismatch):
		return OutcomeRefused.String()
	case errors.Is(err, errRecycled):
		return "recycled"
	}
	return "other"
}
