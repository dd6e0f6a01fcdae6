package aggregate

import "time"

// supply tells how much of the time in which the prover could have been proving it did not. Work exists from the moment a
// trigger is due, or the prover becomes free with a plan at hand, until the prover has taken the job or the plan is gone.
// Owned by the aggregator's loop.
type supply struct {
	since time.Time // counted up to here; zero while there is nothing to prove, or a proof is being made
	free  time.Time // when the prover ended its last call

	slots [ratioSlots]share // of the last slots, the running one first
}

// ratioSlots is over how many slots the busy ratio is taken: a minute with slots of 4 s.
const ratioSlots = 16

// share is how long the prover was busy in a time in which there was something to prove.
type share struct{ busy, useful time.Duration }

// proved counts a prover call that ended.
func (s *supply) proved(p *proof) {
	s.free = p.ended
	s.slots[0].busy += p.wall
	s.slots[0].useful += p.wall
}

// next begins a slot and returns the ratio over the last ones; false where there was nothing to prove.
func (s *supply) next() (ratio float64, ok bool) {
	var sum share
	for _, x := range s.slots {
		sum.busy, sum.useful = sum.busy+x.busy, sum.useful+x.useful
	}
	copy(s.slots[1:], s.slots[:])
	s.slots[0] = share{}
	if sum.useful <= 0 {
		return 0, false
	}
	return float64(sum.busy) / float64(sum.useful), true
}

// want notes that there has been work since a moment. What lies before the end of the last call is no idle time.
func (s *supply) want(since time.Time) {
	if !s.since.IsZero() {
		return
	}
	if since.Before(s.free) {
		since = s.free
	}
	s.since = since
}

// idle returns the time with work and without a proof since it was last asked.
func (s *supply) idle(now time.Time) time.Duration {
	if s.since.IsZero() || !now.After(s.since) {
		return 0
	}
	d := now.Sub(s.since)
	s.since = now
	s.slots[0].useful += d
	return d
}

// done ends the wait: a job was taken by the prover, or there is no work any more. It returns what idle would.
func (s *supply) done(now time.Time) time.Duration {
	d := s.idle(now)
	s.since = time.Time{}
	return d
}
