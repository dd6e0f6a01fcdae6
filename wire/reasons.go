package wire

// Reason says why an inbound item ended as it did. It is the value of the
// "reason" label and log field. The table is ARCHITECTURE.md section 2.
type Reason uint8

// The reasons. ReasonNone means that there is no fault.
const (
	ReasonNone Reason = iota

	// Provable from the bytes, or from the bytes and blocks that they commit
	// to: such an item is rejected.
	ReasonMalformed
	ReasonSchemeMismatch
	ReasonUnknownValidator
	ReasonEmptyParticipants
	ReasonBadSignature
	ReasonBadProof
	ReasonClaimMismatch
	ReasonBadProposer
	ReasonBadCheckpoints

	// Everything else is ignored: nobody is to blame, or nobody can tell.
	ReasonWrongSubnet
	ReasonStale
	ReasonEarly
	ReasonDuplicate
	ReasonSubsumed
	ReasonEquivocation
	ReasonTooManyForSlot
	ReasonQueueFull
	ReasonEvicted
	ReasonExpired
	ReasonUnknownHead
	ReasonUnknownParent
	ReasonVerifierUnavailable
	ReasonInternalError
	ReasonStopping
	ReasonPoolFull
	ReasonUnverified

	reasonEnd // one past the last reason
)

// reasonText is one row of the table.
type reasonText struct{ code, short, long string }

// reasonTexts holds the rows, indexed by Reason. Never written.
var reasonTexts = [reasonEnd]reasonText{
	ReasonNone:      {"none", "no fault", "The item is valid."},
	ReasonMalformed: {"malformed", "cannot be decoded", "The bytes are not an encoding of the container that the topic carries: a length, an offset, a delimiter or a limit is wrong."},
	ReasonSchemeMismatch: {
		"scheme_mismatch", "made for another signature scheme",
		"The length is that of another known scheme, or the verifying backend says that the proof was made for another one. The sender runs another line of the network.",
	},
	ReasonUnknownValidator:  {"unknown_validator", "index outside the registry", "A validator index is not below the number of validators of the genesis registry."},
	ReasonEmptyParticipants: {"empty_participants", "no participant", "The participants bitlist has no bit set."},
	ReasonBadSignature:      {"bad_signature", "signature does not verify", "The signature is not one of the validator's key over the root and the slot that the message carries."},
	ReasonBadProof:          {"bad_proof", "proof does not verify", "The verifying backend refused the proof."},
	ReasonClaimMismatch:     {"claim_mismatch", "proof makes other claims", "The proof may be sound, but it is not about this data root, epoch and signer set."},
	ReasonBadProposer:       {"bad_proposer", "not the proposer of the slot", "The proposer index of the block is not its slot modulo the number of validators."},
	ReasonBadCheckpoints: {
		"bad_checkpoints", "checkpoints contradict each other",
		"The source is after the target, the head is before the target, a checkpoint has another slot than its known block, or one is not an ancestor of the next.",
	},
	ReasonWrongSubnet:         {"wrong_subnet", "another subnet's validator", "The validator belongs to another subnet than the topic. Nobody on the network checks that, so the relaying peer is not to blame."},
	ReasonStale:               {"stale", "slot too old", "The slot is behind the window of its class, or at or below the finalized slot."},
	ReasonEarly:               {"early", "slot too far ahead", "The slot starts more than one interval from now."},
	ReasonDuplicate:           {"duplicate", "already verified", "The same content was verified before."},
	ReasonSubsumed:            {"subsumed", "covered by a verified aggregate", "All participants are in one aggregate of the same data root that was verified before."},
	ReasonEquivocation:        {"equivocation", "second vote of a validator in a slot", "Another vote of this validator for this slot was verified first."},
	ReasonTooManyForSlot:      {"too_many_for_slot", "enough blocks for this slot", "The bound of blocks, or of parked blocks, for one slot is reached."},
	ReasonQueueFull:           {"queue_full", "no place in the queue", "The queue of the class is full and everything in it goes before this item."},
	ReasonEvicted:             {"evicted", "displaced in the queue", "The item gave its place to one that goes before it."},
	ReasonExpired:             {"expired", "deadline passed", "No verdict was reached before the item's deadline."},
	ReasonUnknownHead:         {"unknown_head", "head not known yet", "The head, target or source block was not seen in time."},
	ReasonUnknownParent:       {"unknown_parent", "parent not known yet", "The parent of the block was not seen in time."},
	ReasonVerifierUnavailable: {"verifier_unavailable", "no verifying backend", "The verifying backend is starting, died or did not answer in time."},
	ReasonInternalError:       {"internal_error", "fault of this node", "A worker hit a broken invariant of its own; the stack is in the log."},
	ReasonStopping:            {"stopping", "node is stopping", "The node shuts down and takes no more work."},
	ReasonPoolFull:            {"pool_full", "no place in the pool", "The item is valid, but the aggregation pool could not take it in time."},
	ReasonUnverified:          {"unverified", "proof not checked", "The node runs with --no-proofs: the aggregate passed the structural checks only and is never pooled."},
}

// String returns the code: metric label, log field and row of the documentation.
func (r Reason) String() string {
	if r >= reasonEnd {
		return "invalid"
	}

	return reasonTexts[r].code
}

// Short returns a few words for a person.
func (r Reason) Short() string {
	if r >= reasonEnd {
		return "not a reason"
	}

	return reasonTexts[r].short
}

// Long returns one or two sentences for the documentation.
func (r Reason) Long() string {
	if r >= reasonEnd {
		return "The number is not one of the table."
	}

	return reasonTexts[r].long
}

// Reasons returns all reasons but ReasonNone, in the order of the table.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonEnd-1)
	for r := ReasonNone + 1; r < reasonEnd; r++ {
		out = append(out, r)
	}

	return out
}
