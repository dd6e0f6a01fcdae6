package aggregate

import "time"

const (
	// quietPeriod is how long at least no vote must come after two thirds are in, for the rest to count as late:
	// ARCHITECTURE.md section 5 point 1.
	quietPeriod = 50 * time.Millisecond
	// quietGaps is the same in mean gaps between the votes of the slot so far. Where a signature takes 0.4 s and a node
	// signs one after the other, the next vote is that far away; 50 ms alone then proved three votes of four, and all four
	// in a second job that came too late (lean-pq devnet, 2 cores, November 2026).
	quietGaps = 2
	// quietShare bounds it: a quarter of an interval, so that votes that never come cost no more than that.
	quietShare = 4
)

// finishTime is what comes after the proof and before it is of use to others: self-check (15 to 20 ms with lean-pq),
// publication and one hop. A guess, not measured under load; deadlines of planning are that much earlier.
const finishTime = 50 * time.Millisecond

// trigger says why a job is planned now.
type trigger uint8

const (
	triggerNone     trigger = iota
	triggerComplete         // every expected vote is in, raw or in an aggregate
	triggerBoundary         // interval 2 begins
	triggerQuiet            // two thirds are in, or interval 2 has begun, and no vote came for quietPeriod
	triggerLatest           // two thirds are in, or interval 2 has begun, and waiting would miss the end of interval 3
	triggerChild            // an aggregate arrived after the first plan of the slot
	triggerPause            // interval 4 or interval 0 begins: time for what was left over
	triggerFollowUp         // a job ended

	triggerEnd // one past the last trigger
)

var triggerCodes = [triggerEnd]string{
	"none", "complete", "boundary", "quiet", "latest", "child", "pause", "follow_up",
}

// String returns the code: metric label and log field.
func (t trigger) String() string {
	if t >= triggerEnd {
		return "invalid"
	}
	return triggerCodes[t]
}

// times are the moments of one slot that triggers and deadlines hang on.
type times struct {
	start    time.Time
	votes    time.Time // interval 1: votes are published
	boundary time.Time // interval 2
	pause    time.Time // interval 4, the end of interval 3
	end      time.Time
	nextVote time.Time // interval 1 of the next slot
}

// watch decides when a session plans. It is a pure state machine over the pool's counts and the time; the aggregator's
// loop owns it.
type watch struct {
	times    times
	expected int // votes that the slot should bring

	isOpened   bool      // the start of the slot was used
	isBoundary bool      // interval 2 was used
	isPaused   bool      // interval 4 was used
	planned    bool      // a plan was made in this slot
	version    uint64    // of the slot's material at the last plan
	merges     uint64    // aggregates of the slot at the last plan
	pool       uint64    // version of the whole pool at the last plan
	since      time.Time // of the oldest trigger that could not be acted on yet; zero if there is none
}

// quorum is two thirds of the expected votes, rounded up.
func (w *watch) quorum() int { return (2*w.expected + 2) / 3 }

// inPause tells whether no votes of the slot are waited for: before interval 1 and from interval 4 on.
func (w *watch) inPause(now time.Time) bool {
	return now.Before(w.times.votes) || !now.Before(w.times.pause)
}

// view is what a watch looks at.
type view struct {
	slot      Progress      // counts of the slot
	pool      uint64        // version of the whole pool
	lastAdded time.Time     // when the newest vote of any slot came
	cost      time.Duration // predicted for a leaf job over the votes in
	leastCost time.Duration // predicted for the smallest leaf job
}

// next returns the trigger that is due and since when anything has been, or triggerNone and when to look again if nothing
// changes before.
func (w *watch) next(now time.Time, v view) (trigger, time.Time) {
	t, at := w.look(now, v)
	if t != triggerNone && !w.since.IsZero() && w.since.Before(at) {
		at = w.since
	}
	return t, at
}

func (w *watch) look(now time.Time, v view) (trigger, time.Time) {
	wake := w.times.end
	for _, t := range []time.Time{w.times.pause, w.times.boundary} {
		if now.Before(t) {
			wake = t
		}
	}
	isNew := v.slot.Version != w.version
	switch {
	case !w.isBoundary && !now.Before(w.times.boundary):
		return triggerBoundary, w.times.boundary
	case !w.isPaused && !now.Before(w.times.pause):
		return triggerPause, w.times.pause
	case !w.isOpened:
		return triggerPause, w.times.start
	case !w.since.IsZero():
		return triggerFollowUp, w.since
	case w.planned && v.slot.Merges != w.merges:
		return triggerChild, now
	case isNew && w.isComplete(v.slot):
		if v.slot.Votes < w.expected {
			return triggerComplete, now // by an aggregate
		}
		return triggerComplete, v.slot.LastAdded
	}
	inPause := w.inPause(now)
	switch {
	case inPause:
		isNew = v.pool != w.pool // what is left over may be of any slot
	case !w.mayPlanOwn(now, v.slot):
		return triggerNone, wake
	}
	if !isNew {
		return triggerNone, wake
	}
	due, kind := v.lastAdded.Add(w.quiet(v.slot)), triggerQuiet
	if limit := w.times.pause.Add(-finishTime); !inPause && !now.Add(v.leastCost).After(limit) {
		if latest := limit.Add(-v.cost); latest.Before(due) {
			due, kind = latest, triggerLatest
		}
	}
	if !now.Before(due) {
		return kind, due
	}
	if due.Before(wake) {
		wake = due
	}
	return triggerNone, wake
}

// quiet is how long no vote must come for the rest to count as late.
func (w *watch) quiet(p Progress) time.Duration {
	if p.Votes < 2 {
		return quietPeriod
	}
	gap := p.LastAdded.Sub(p.FirstAdded) / time.Duration(p.Votes-1)
	most := w.times.boundary.Sub(w.times.votes) / quietShare
	return max(min(quietGaps*gap, most), quietPeriod)
}

func (w *watch) isComplete(p Progress) bool { return w.expected > 0 && p.Reached >= w.expected }

// mayPlanOwn tells whether enough votes are in, or enough time has passed, to prove the slot's own material.
func (w *watch) mayPlanOwn(now time.Time, p Progress) bool {
	return !now.Before(w.times.boundary) || p.Votes >= w.quorum() && w.expected > 0 || w.isComplete(p)
}

// consume notes that a trigger was acted on with this view, whatever came of it.
func (w *watch) consume(now time.Time, v view) {
	w.isOpened, w.since = true, time.Time{}
	w.isBoundary = w.isBoundary || !now.Before(w.times.boundary)
	w.isPaused = w.isPaused || !now.Before(w.times.pause)
	w.planned = w.planned || w.mayPlanOwn(now, v.slot)
	w.version, w.merges, w.pool = v.slot.Version, v.slot.Merges, v.pool
}

// hold takes a trigger that can not be acted on: it is remembered, never skipped, and many make one. It returns the
// trigger and since when it was due, triggerNone if there was none, and when to look again.
func (w *watch) hold(now time.Time, v view) (t trigger, due, wake time.Time) {
	since := w.since
	w.since = time.Time{}
	t, at := w.next(now, v)
	if t == triggerNone {
		w.since = since
		return t, time.Time{}, at
	}
	w.consume(now, v)
	_, wake = w.next(now, v)
	w.since = since
	w.remember(at)
	return t, at, wake
}

// remember makes a follow-up due since a moment.
func (w *watch) remember(at time.Time) {
	if w.since.IsZero() || at.Before(w.since) {
		w.since = at
	}
}
