package scheduler

// Reason says why the controller decided as it did; every step has exactly one. It is the value of the "reason" label
// and log field.
type Reason uint8

// The reasons.
const (
	ReasonUnknown Reason = iota
	ReasonSteady
	ReasonCalendar
	ReasonStressWeight
	ReasonShrinkSlowdown
	ReasonGrowWaiting
	ReasonHoldPressure
	ReasonLoadNotProver
	ReasonOperatorMax
	ReasonOperatorMin
	ReasonFloor
	ReasonCannotLimit
	ReasonNoSignals

	reasonEnd // one past the last reason
)

type reasonText struct{ code, short, long string }

// reasonTexts holds the rows, indexed by Reason. Never written.
var reasonTexts = [reasonEnd]reasonText{
	ReasonUnknown:        {"unknown", "no decision", "No step was taken."},
	ReasonSteady:         {"steady", "nothing to do", "Checks are within their target; idle CPU belongs to the prover."},
	ReasonCalendar:       {"calendar", "weight lowered by the calendar", "Intervals 0 and 1 bring blocks and votes: the prover's weight is lower, its quota is not touched."},
	ReasonStressWeight:   {"stress_weight", "lowest weight", "Checks are past their target and slowed down while a proof runs: the prover has the lowest weight (or priority, where the tier has no weights), until one window of the signals has passed without this, and what was done is given time to show."},
	ReasonShrinkSlowdown: {"shrink_slowdown", "fewer cores", "Checks stayed slowed down although the prover had the lowest weight: its cores were cut."},
	ReasonGrowWaiting:    {"grow_waiting", "more cores", "A job waits or is throttled and checks do not suffer: cores are given back step by step."},
	ReasonHoldPressure:   {"hold_pressure", "not grown under pressure", "A job waits, but threads of the node itself stand in line for CPU: cores are not given back yet."},
	ReasonLoadNotProver:  {"load_not_prover", "overload without the prover's doing", "Checks are past their target, but they are not slowed down or no proof runs: there is more to check than the machine can do, and the prover is left alone."},
	ReasonOperatorMax:    {"operator_max", "at the operator's maximum", "A job could use more cores than the operator allows."},
	ReasonOperatorMin:    {"operator_min", "at the operator's minimum", "Checks suffer, but the operator's minimum of cores is reached."},
	ReasonFloor:          {"floor", "at the least share", "Checks suffer, but the prover is down to the share below which no proof is finished in time."},
	ReasonCannotLimit:    {"cannot_limit", "nothing lower at this tier", "Checks stay slowed down at the lowest priority, and this tier has no quota to cut."},
	ReasonNoSignals:      {"no_signals", "no signals", "Nothing measures checks in this process: only the operator's limits are in force."},
}

// String returns the code.
func (r Reason) String() string { return r.row().code }

// Short returns a few words for a person.
func (r Reason) Short() string { return r.row().short }

// Long returns one or two sentences for the documentation.
func (r Reason) Long() string { return r.row().long }

func (r Reason) row() reasonText {
	if r >= reasonEnd {
		return reasonText{"invalid", "not a reason", "The number is not one of the table."}
	}
	return reasonTexts[r]
}

// Reasons returns all reasons in the order of the table.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonEnd-1)
	for r := ReasonUnknown + 1; r < reasonEnd; r++ {
		out = append(out, r)
	}
	return out
}
