package signer

import (
	"context"
	"errors"
	"fmt"

	"aggnode/store"
	"aggnode/wire"
	"aggnode/xmss"
)

// Refusal is why a key did not sign.
type Refusal uint8

// The refusals.
const (
	// RefusedUnknown is the zero value and no refusal.
	RefusedUnknown Refusal = iota
	RefusedUnknownValidator
	RefusedData
	RefusedSlotRange
	RefusedKeyRange
	RefusedAlreadySigned
	RefusedBelowMark
	RefusedJournal
	RefusedCancelled
	RefusedInternal

	refusalEnd // one past the last refusal
)

// refusalTexts holds code, short and long text, indexed by Refusal. Never
// written.
var refusalTexts = [refusalEnd]struct{ code, short, long string }{
	RefusedUnknown:          {"unknown", "no refusal", "Not a refusal."},
	RefusedUnknownValidator: {"unknown_validator", "no key here", "This node holds no key of the role for the validator."},
	RefusedData:             {"bad_data", "data of another slot", "The attestation data is of another slot than the duty."},
	RefusedSlotRange:        {"slot_range", "slot above 2^32-1", "The slot is not a position of any key."},
	RefusedKeyRange:         {"key_range", "slot outside the key's range", "The slot is before the first or after the last position of the key. A key at its end needs a successor."},
	RefusedAlreadySigned:    {"already_signed", "another root was signed", "The key has signed another root at this slot; a second one would give the position away."},
	RefusedBelowMark:        {"below_mark", "a later slot was signed", "The key has signed at a later slot: the clock went back, or the data directory is a copy."},
	RefusedJournal:          {"journal", "position not recorded", "The position could not be written to disk, so nothing was signed."},
	RefusedCancelled:        {"cancelled", "time is over", "The duty's time ended, or the node stops, before the signature was made."},
	RefusedInternal:         {"internal_error", "fault of the key", "Signing failed or panicked: the key file or the memory is damaged. The stack is in the log."},
}

// String returns the code: metric label, log field and row of the documentation.
func (r Refusal) String() string { return refusalTexts[r.valid()].code }

// Short returns a few words for a person.
func (r Refusal) Short() string { return refusalTexts[r.valid()].short }

// Long returns one or two sentences for the documentation.
func (r Refusal) Long() string { return refusalTexts[r.valid()].long }

func (r Refusal) valid() Refusal {
	if r >= refusalEnd {
		return RefusedUnknown
	}

	return r
}

// Refusals returns all refusals, in the order of the table.
func Refusals() []Refusal {
	out := make([]Refusal, 0, refusalEnd-1)
	for r := RefusedUnknown + 1; r < refusalEnd; r++ {
		out = append(out, r)
	}

	return out
}

// Refused is the error of a key that did not sign.
type Refused struct {
	Refusal Refusal
	Index   wire.ValidatorIndex
	Slot    wire.Slot
	Err     error
}

// Error names the validator, the slot and the cause.
func (e *Refused) Error() string {
	return fmt.Sprintf("validator %d slot %d: %s: %v", e.Index, e.Slot, e.Refusal, e.Err)
}

// Unwrap returns the cause.
func (e *Refused) Unwrap() error { return e.Err }

// refuse classifies an error of a key.
func refuse(v wire.ValidatorIndex, slot wire.Slot, err error) error {
	refused, ok := errors.AsType[*Refused](err)
	if ok {
		return refused
	}
	refusal := RefusedJournal
	switch {
	case errors.Is(err, store.ErrAlreadySigned):
		refusal = RefusedAlreadySigned
	case errors.Is(err, store.ErrBelowMark):
		refusal = RefusedBelowMark
	case errors.Is(err, xmss.ErrEpochRange):
		refusal = RefusedKeyRange
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		refusal = RefusedCancelled
	case errors.Is(err, errKey):
		refusal = RefusedInternal
	}

	return &Refused{Refusal: refusal, Index: v, Slot: slot, Err: err}
}

// role is what a key is for.
type role uint8

const (
	roleUnknown role = iota
	roleAttestation
	roleProposal
)

// String returns the label.
func (r role) String() string {
	switch r {
	case roleUnknown:
		return "unknown"
	case roleAttestation:
		return "attestation"
	case roleProposal:
		return "proposal"
	}

	return "invalid"
}
