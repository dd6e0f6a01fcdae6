package proposer

// Outcome is how a block duty ended.
type Outcome uint8

// The outcomes.
const (
	// OutcomeUnknown is the zero value and no outcome.
	OutcomeUnknown Outcome = iota
	OutcomePublished
	OutcomeLate
	OutcomeRefused
	OutcomeWithheld
	OutcomeNotSent
	OutcomeNoEnvelope

	outcomeEnd // one past the last outcome
)

// outcomeTexts holds code, short and long text, indexed by Outcome. Never
// written.
var outcomeTexts = [outcomeEnd]struct{ code, short, long string }{
	OutcomeUnknown:    {"unknown", "no outcome", "Not an outcome."},
	OutcomePublished:  {"published", "block was sent", "The block was signed, inserted into our own chain and published."},
	OutcomeLate:       {"late", "interval 0 was over", "The duty came after interval 0, when the slot's votes are cast for what is known."},
	OutcomeRefused:    {"refused", "not signed", "The proposal key did not sign: see aggnode_signer_refused_total for the reason."},
	OutcomeWithheld:   {"withheld", "own check failed", "Our own pipeline found a fault in the block, so it was not sent."},
	OutcomeNotSent:    {"not_sent", "could not be published", "The block is in our own chain, but the network did not take it."},
	OutcomeNoEnvelope: {"no_envelope", "profile has merged proofs", "Blocks of the profile carry one proof that includes the proposer's signature; this node can not make it."},
}

// String returns the code: metric label, log field and row of the documentation.
func (o Outcome) String() string { return outcomeTexts[o.valid()].code }

// Short returns a few words for a person.
func (o Outcome) Short() string { return outcomeTexts[o.valid()].short }

// Long returns one or two sentences for the documentation.
func (o Outcome) Long() string { return outcomeTexts[o.valid()].long }

func (o Outcome) valid() Outcome {
	if o >= outcomeEnd {
		return OutcomeUnknown
	}

	return o
}

// Outcomes returns all outcomes, in the order of the table.
func Outcomes() []Outcome {
	out := make([]Outcome, 0, outcomeEnd-1)
	for o := OutcomeUnknown + 1; o < outcomeEnd; o++ {
		out = append(out, o)
	}

	return out
}
