package aggregate

// text is one row of a reason table.
type text struct{ code, short, long string }

// JobOutcome says how a job ended; every job has exactly one (ARCHITECTURE.md section 5 point 8). It is the value of
// the "outcome" label and log field.
type JobOutcome uint8

// The outcomes.
const (
	JobUnknown JobOutcome = iota
	JobPublished
	JobNoTime
	JobSuperseded
	JobCancelled
	JobTimedOut
	JobCrashed
	JobRefused
	JobBadOutput
	JobLate

	jobOutcomeEnd // one past the last outcome
)

var jobTexts = [jobOutcomeEnd]text{
	JobUnknown:    {"unknown", "not ended", "The job has not ended."},
	JobPublished:  {"published", "proved, checked and published", "The proof passed the self-check, is in the pool and was handed to the network."},
	JobNoTime:     {"no_time", "would end too late", "The predicted end was past the deadline, so the job was not started."},
	JobSuperseded: {"superseded", "replaced by something wider", "A newer plan took its place before it started, or an aggregate with all its participants was there before its proof was."},
	JobCancelled:  {"cancelled", "stopped by this node", "The node is stopping or gave up the aggregator role."},
	JobTimedOut:   {"timed_out", "no proof before the hard deadline", "The prover gave no proof before the hard deadline, or made no progress, and was killed."},
	JobCrashed:    {"crashed", "the prover died", "The prover ended without being asked to, or broke its protocol. The same plan is tried once more and then quarantined."},
	JobRefused:    {"refused", "the prover refused the input", "The prover answered that it does not take this job. The input it named is barred, or else the plan is quarantined."},
	JobBadOutput:  {"bad_output", "the proof failed the self-check", "The proof does not verify or makes other claims. It is not published and the node is not ready until a proof passes again."},
	JobLate:       {"late", "finished when it was of no use", "The proof could not be checked or published before the slots in which others accept it had passed."},
}

// String returns the code.
func (o JobOutcome) String() string { return o.row().code }

// Short returns a few words for a person.
func (o JobOutcome) Short() string { return o.row().short }

// Long returns one or two sentences for the documentation.
func (o JobOutcome) Long() string { return o.row().long }

func (o JobOutcome) row() text {
	if o >= jobOutcomeEnd {
		return text{"invalid", "not an outcome", "The number is not one of the table."}
	}
	return jobTexts[o]
}

// JobOutcomes returns all outcomes in the order of the table.
func JobOutcomes() []JobOutcome {
	out := make([]JobOutcome, 0, jobOutcomeEnd-1)
	for o := JobUnknown + 1; o < jobOutcomeEnd; o++ {
		out = append(out, o)
	}
	return out
}

// SessionReason says what became of a slot: proved, or the one reason why nothing was. It is the value of the "reason"
// label and log field of sessions. A job that ended without a proof lends the session its code.
type SessionReason uint8

// The reasons.
const (
	SessionUnknown SessionReason = iota
	SessionProved
	SessionNotAggregator
	SessionNoVotes
	SessionSingleVote
	SessionNothingNew
	SessionQuarantined
	SessionNoTime
	SessionProverUnavailable
	SessionProverBusy
	SessionStillProving
	SessionFailed

	sessionReasonEnd // one past the last reason
)

var sessionTexts = [sessionReasonEnd]text{
	SessionUnknown:           {"unknown", "not ended", "The session has not ended."},
	SessionProved:            {"proved", "at least one aggregate published", "At least one aggregate of the slot was published before the slot ended."},
	SessionNotAggregator:     {"not_aggregator", "not in the aggregator role", "The node does not have the aggregator role."},
	SessionNoVotes:           {"no_votes", "no verified vote of the slot", "No verified vote and no aggregate of the slot was in the pool."},
	SessionSingleVote:        {"single_vote", "too little for a job", "Only one vote, or one aggregate and nothing to add to it: proving that has no value."},
	SessionNothingNew:        {"nothing_new", "others have covered it", "Every job would have been a subset of an aggregate that was there already."},
	SessionQuarantined:       {"quarantined", "only jobs that failed before", "The only possible jobs are ones that the prover crashed on twice, or refused."},
	SessionNoTime:            {"no_time", "the smallest job would end too late", "The predicted end of even the smallest useful job was past the deadline."},
	SessionProverUnavailable: {"prover_unavailable", "no prover ready", "The prover is starting, restarting or not installed."},
	SessionProverBusy:        {"prover_busy", "a job of an earlier slot held the prover", "A job of an earlier slot did not end in time for this one."},
	SessionStillProving:      {"still_proving", "the job ran past the end of the slot", "The first job of the slot was still running, or its proof not yet published, when the slot ended."},
	SessionFailed:            {"failed", "the job ended without a proof", "The job ended in an outcome other than published; the line names it."},
}

// String returns the code.
func (r SessionReason) String() string { return r.row().code }

// Short returns a few words for a person.
func (r SessionReason) Short() string { return r.row().short }

// Long returns one or two sentences for the documentation.
func (r SessionReason) Long() string { return r.row().long }

func (r SessionReason) row() text {
	if r >= sessionReasonEnd {
		return text{"invalid", "not a reason", "The number is not one of the table."}
	}
	return sessionTexts[r]
}

// SessionReasons returns all reasons in the order of the table.
func SessionReasons() []SessionReason {
	out := make([]SessionReason, 0, sessionReasonEnd-1)
	for r := SessionUnknown + 1; r < sessionReasonEnd; r++ {
		out = append(out, r)
	}
	return out
}

// Source says where an aggregate of the pool came from.
type Source uint8

// The sources.
const (
	SourceUnknown Source = iota
	SourceOwn
	SourceGossip
)

// String returns the name used in logs and by the API.
func (s Source) String() string {
	switch s {
	case SourceOwn:
		return "own"
	case SourceGossip:
		return "gossip"
	case SourceUnknown:
	}
	return "unknown"
}
