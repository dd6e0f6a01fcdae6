package scheduler

import "time"

// Weights of the two leaves at T2. The kernel divides a busy CPU in proportion; an idle one goes to whoever wants it.
const (
	weightNode = 1000
	// weightNormal gives the prover an eleventh while the node wants everything.
	weightNormal = 100
	// weightCalendar is for intervals 0 and 1: three hundredths. Guess, not measured; between the other two.
	weightCalendar = 30
	// weightStress gives it a hundredth: still enough not to stop it in the middle of a proof with locks held.
	weightStress = 10
)

const (
	// slowdownLimit is how much longer than its CPU time a check may take before somebody else's use of the CPU is
	// taken for the cause. An idle machine shows 1.0 to 1.05 (preemption by the kernel and the collector), a prover at
	// nice 0 on every core 1.8 (ARCHITECTURE.md section 7).
	slowdownLimit = 1.15
	// shrinkAfter is how long slowdown must last at the lowest weight before cores are cut: the weight works at once,
	// but most of the samples of one window (2.5 s) are to be from after it.
	shrinkAfter = 2 * time.Second
	// shrinkEvery lets a cut show in the signals before the next one.
	shrinkEvery = time.Second
	// shrinkTo is what a cut leaves. Five cuts take the prover below a fifth, in about as many seconds.
	shrinkTo = 0.7
	// growPerSecond is the share of all cores that is given back in a second: ten seconds from nothing to everything,
	// a third as fast as it was taken, so that the two do not chase each other.
	growPerSecond = 0.1
	// floorShare is the least share of all cores that the controller itself goes down to: one second of growth.
	floorShare = 0.1
	// stressHold keeps the lowest weight, and what was cut, for one window of the signals after the last sign of
	// stress: sooner, the samples that look good are those that the low weight made.
	stressHold = 2500 * time.Millisecond
	// maxElapsed bounds the growth of one step when the process itself was stopped for a while.
	maxElapsed = 2 * time.Second
	// pressureLimit is the share of time, in percent over 10 s, in which some thread of the node stood in line for
	// CPU, above which cores are not given back. Guess, not measured.
	pressureLimit = 10
)

// Inputs is what one step knows.
type Inputs struct {
	Now          time.Time
	Interval     int           // within the slot, 0 to 4
	QueueWaitP99 time.Duration // votes
	CheckP99     time.Duration // aggregates
	Slowdown     float64       // wall time over CPU time of checks; 1 is none
	RunDelay     float64       // time that our threads stood in line for a CPU, over the time that they ran
	PressureSome float64       // avg10 of "some" of the node's own cgroup in percent; 0 where there is none
	Proving      bool          // a job held the grant at some time since the last step
	Waiting      bool          // a job waits
	Throttled    bool          // the prover used up its quota since the last step
	CanLimit     bool          // the tier has a leaf with weight and quota
}

// Decision is what a step came to.
type Decision struct {
	Cores  float64 // for the prover, at most P
	Weight int     // of its leaf against weightNode of the node's
	Reason Reason
}

// State is the memory of the controller between steps. The zero value is its start: all cores.
type State struct {
	cores    float64   // before the operator's limits; 0 before the first step
	last     time.Time // step
	stressed time.Time // since when without a break; zero for not
	stress   time.Time // last step that was stressed
	shrunk   time.Time // last cut
}

// Step decides for the time until the next step. It is a pure function: p is the number of CPUs, b is valid.
//
// Its law (ARCHITECTURE.md section 7): weight protects latency and always applies; idle CPU belongs to the prover, so
// cores are cut only when weight has been seen not to suffice; and latency that the prover did not cause is not its fault.
func (s State) Step(in Inputs, b Budget, p int) (State, Decision) {
	if s.last.IsZero() {
		s.cores, s.last = float64(p), in.Now
	}
	elapsed := min(max(0, in.Now.Sub(s.last)), maxElapsed)
	s.last = in.Now

	late := max(in.QueueWaitP99, in.CheckP99) > b.target()
	slowed := max(in.Slowdown, 1+in.RunDelay) > slowdownLimit
	stressed := late && slowed && in.Proving
	switch {
	case !stressed:
		s.stressed = time.Time{}
	case s.stressed.IsZero():
		s.stressed = in.Now
	}
	if stressed {
		s.stress = in.Now
	}

	top := b.top(p)
	floor := min(max(b.CoresMin, floorShare*float64(p)), top)
	d := Decision{Cores: min(max(s.cores, floor), top), Weight: s.weight(in, b)}
	wanted, held := in.Waiting || in.Throttled, d.Weight == weightStress
	switch {
	case stressed:
		s, d = s.cut(in, b, floor, d)
	case held && late:
		d.Reason = ReasonLoadNotProver
	case held:
		d.Reason = ReasonStressWeight
	case wanted && d.Cores < top && in.PressureSome > pressureLimit:
		d.Reason = ReasonHoldPressure
	case wanted && d.Cores < top:
		d.Cores = min(top, d.Cores+growPerSecond*float64(p)*elapsed.Seconds())
		d.Reason = ReasonGrowWaiting
		if s.cores = d.Cores; d.Cores == top {
			s.cores = float64(p) // recovered: what holds it now is the operator's maximum alone
		}
	case late:
		d.Reason = ReasonLoadNotProver
	case wanted && top < float64(p):
		d.Reason = ReasonOperatorMax
	case d.Weight == weightCalendar:
		d.Reason = ReasonCalendar
	default:
		d.Reason = ReasonSteady
	}
	return s, d
}

// weight follows stress first and the calendar second. Without a leaf there is only priority, which is always the lowest.
func (s State) weight(in Inputs, b Budget) int {
	switch {
	case !in.CanLimit:
		return weightNormal
	case !s.stress.IsZero() && in.Now.Sub(s.stress) < stressHold:
		return weightStress
	case b.Calendar && (in.Interval == 0 || in.Interval == 1):
		return weightCalendar
	}
	return weightNormal
}

// cut takes cores away where the lowest weight has had its time.
func (s State) cut(in Inputs, b Budget, floor float64, d Decision) (State, Decision) {
	switch {
	case in.Now.Sub(s.stressed) < shrinkAfter, in.CanLimit && in.Now.Sub(s.shrunk) < shrinkEvery:
		d.Reason = ReasonStressWeight
	case !in.CanLimit:
		d.Reason = ReasonCannotLimit
	case d.Cores > floor:
		d.Cores = max(floor, shrinkTo*d.Cores)
		s.cores, s.shrunk = d.Cores, in.Now
		d.Reason = ReasonShrinkSlowdown
	case floor == b.CoresMin:
		d.Reason = ReasonOperatorMin
	default:
		d.Reason = ReasonFloor
	}
	return s, d
}
