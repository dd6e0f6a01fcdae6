package devnet

import "time"

// tally turns the records of the observer and the aggregators into figures. It is not safe for concurrent use.
type tally struct {
	validators   int
	slotDuration time.Duration
	first, last  uint64 // measured slots, inclusive

	slots     map[uint64]*slotTally
	published int
	verified  int
	publishMS []float64
	checkMS   []float64 // at the observer
	elsewhere []float64 // at aggregators
}

type slotTally struct {
	coveredAt   []float64 // per validator: ms into the slot at which an aggregate with its vote was verified; 0 = never
	aggregates  int
	publishedMS []float64
	checkMS     []float64
}

func newTally(validators int, slotDuration time.Duration, slots int) *tally {
	return &tally{
		validators: validators, slotDuration: slotDuration,
		first: warmupSlots, last: warmupSlots + uint64(slots) - 1,
		slots: make(map[uint64]*slotTally),
	}
}

func (t *tally) slot(s uint64) *slotTally {
	st := t.slots[s]
	if st == nil {
		st = &slotTally{coveredAt: make([]float64, t.validators)}
		t.slots[s] = st
	}
	return st
}

func (t *tally) measured(s uint64) bool { return s >= t.first && s <= t.last }

// observe takes an aggregate that the observer verified.
func (t *tally) observe(r record) {
	if r.Slot > t.last {
		return
	}
	st := t.slot(r.Slot)
	st.aggregates++
	st.checkMS = append(st.checkMS, r.CheckMS)
	for _, v := range r.Indices {
		if v < 0 || v >= t.validators {
			continue
		}
		if at := st.coveredAt[v]; at == 0 || r.AtMS < at {
			st.coveredAt[v] = r.AtMS
		}
	}
	if t.measured(r.Slot) {
		t.verified++
		t.checkMS = append(t.checkMS, r.CheckMS)
	}
}

// publish takes an aggregate that an aggregator published.
func (t *tally) publish(r record) {
	if r.Slot > t.last {
		return
	}
	st := t.slot(r.Slot)
	st.publishedMS = append(st.publishedMS, r.AtMS)
	if t.measured(r.Slot) {
		t.published++
		t.publishMS = append(t.publishMS, r.AtMS)
	}
}

// checked takes an aggregate of somebody else that an aggregator verified.
func (t *tally) checked(r record) {
	if t.measured(r.Slot) {
		t.elsewhere = append(t.elsewhere, r.CheckMS)
	}
}

func (t *tally) interval(n int) float64 {
	return float64(t.slotDuration.Milliseconds()) / 5 * float64(n)
}

// covered counts the validators whose vote was covered within ms of the slot's start.
func (st *slotTally) covered(withinMS float64) int {
	n := 0
	for _, at := range st.coveredAt {
		if at > 0 && at < withinMS {
			n++
		}
	}
	return n
}

// twoThirdsAt is when two thirds of all votes were covered; false if they never were.
func (st *slotTally) twoThirdsAt() (float64, bool) {
	need := (2*len(st.coveredAt) + 2) / 3
	var at []float64
	for _, ms := range st.coveredAt {
		if ms > 0 {
			at = append(at, ms)
		}
	}
	if len(at) < need {
		return 0, false
	}
	return percentile(at, float64(need)/float64(len(at))), true
}

// summary closes the books.
func (t *tally) summary() Summary {
	s := Summary{
		Slots: int(t.last - t.first + 1), Validators: t.validators,
		AggregatesPublished: t.published, AggregatesVerified: t.verified,
		SlotDurationMS: t.slotDuration.Milliseconds(),
	}
	var slotEnd int
	var twoThirds []float64
	for slot := t.first; slot <= t.last; slot++ {
		s.VotesExpected += t.validators
		st := t.slots[slot]
		if st == nil {
			continue
		}
		s.VotesCovered += st.covered(t.interval(4))
		slotEnd += st.covered(t.interval(5))
		if at, ok := st.twoThirdsAt(); ok {
			twoThirds = append(twoThirds, at)
		}
	}
	s.Coverage = float64(s.VotesCovered) / float64(s.VotesExpected)
	s.CoverageSlotEnd = float64(slotEnd) / float64(s.VotesExpected)
	s.PublishMSp50, s.PublishMSp99 = percentile(t.publishMS, 0.5), percentile(t.publishMS, 0.99)
	s.CheckMSp50, s.CheckMSp99 = percentile(t.checkMS, 0.5), percentile(t.checkMS, 0.99)
	s.CheckMSp50Observer, s.CheckMSp50Aggregator = s.CheckMSp50, percentile(t.elsewhere, 0.5)
	s.TwoThirdsMSp50 = percentile(twoThirds, 0.5)
	return s
}
