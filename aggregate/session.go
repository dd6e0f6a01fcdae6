package aggregate

import (
	"fmt"
	"log/slog"
	"time"

	"aggnode/wire"
)

// session is all aggregation of one slot. Owned by the aggregator's loop. A job keeps the session that it was started in:
// its result is told to that one, and is late news when another is open by then.
type session struct {
	slot  wire.Slot
	watch watch

	reason      SessionReason // of the last decision without a plan
	need, have  time.Duration // with SessionNoTime
	why         string        // with SessionProverUnavailable
	hasMaterial bool          // there was a job of value for the slot
	isHeld      bool          // a trigger had to wait for a job of an earlier session
	isNoTime    bool          // a decision ended for want of time
	jobs        int           // jobs over the slot's material that were started
	quorumAt    time.Time     // since when a job over the slot's own votes was due; zero before that
	toProver    time.Duration // from quorumAt to the prover taking the first such job
	toWire      time.Duration // from the first proof to its publication
	proofs      int           // of them passed the self-check
	outgoing    int           // of those wait for the network
	failed      JobOutcome    // of the last one that was not published

	published   int       // aggregates
	firstAt     time.Time // when the first was published
	width       int       // participants of the widest
	publishedAt time.Time // of the widest
	peers       int       // of the widest

	before *job // a job of an earlier slot that ended in this session, the last one
}

// note keeps what a decision over the slot's material said. It tells whether the session lacks time for the first time.
func (s *session) note(d *decision) (lacksTime bool) {
	s.hasMaterial = s.hasMaterial || d.hasMaterial
	if !d.hasMaterial && s.jobs == 0 {
		s.quorumAt = time.Time{}
	}
	if d.plan != nil {
		return false
	}
	if d.reason == SessionNoTime && (s.reason == SessionNoTime || s.reason == SessionProverUnavailable) {
		return false // the first figures, or the first cause, are the ones that say what was missing
	}
	s.reason, s.need, s.have = d.reason, d.need, d.have
	lacksTime = d.reason == SessionNoTime && !s.isNoTime
	s.isNoTime = s.isNoTime || lacksTime
	return lacksTime
}

// quorum notes since when a job over the slot's own votes is due. A decision that finds nothing to prove takes it back.
func (s *session) quorum(t trigger, due time.Time) {
	switch t {
	case triggerComplete, triggerBoundary, triggerQuiet, triggerLatest:
		if due.Before(s.watch.times.start) { // left over from the slot before
			due = s.watch.times.start
		}
		if s.quorumAt.IsZero() {
			s.quorumAt = due
		}
	case triggerNone, triggerChild, triggerPause, triggerFollowUp:
	}
}

// publish notes that an aggregate of the slot went out, toWire after its proof was made.
func (s *session) publish(width, peers int, at time.Time, toWire time.Duration) {
	if s.published++; s.published == 1 {
		s.firstAt, s.toWire = at, toWire
	}
	if width > s.width {
		s.width, s.peers, s.publishedAt = width, peers, at
	}
}

// verdict is the one reason of the slot. inFlight says that a job of the session has not ended.
func (s *session) verdict(inFlight bool) SessionReason {
	switch {
	case s.published > 0:
		return SessionProved
	case s.reason == SessionNotAggregator:
		return SessionNotAggregator
	case inFlight || s.outgoing > 0:
		return SessionStillProving
	case s.failed != JobUnknown:
		return SessionFailed
	case s.reason != SessionUnknown:
		return s.reason
	case s.isHeld:
		return SessionProverBusy
	}
	return SessionNoVotes
}

// explain is the reason as the slot line says it.
func (s *session) explain(r SessionReason) string {
	switch r {
	case SessionNoTime:
		return fmt.Sprintf("%s: need %.1f s, have %.1f s", r, s.need.Seconds(), s.have.Seconds())
	case SessionProverUnavailable:
		if s.why != "" {
			return fmt.Sprintf("%s: %s", r, s.why)
		}
	case SessionFailed:
		return s.failed.String()
	case SessionUnknown, SessionProved, SessionNotAggregator, SessionNoVotes, SessionSingleVote, SessionNothingNew,
		SessionQuarantined, SessionProverBusy, SessionStillProving:
	}
	return r.String()
}

// line is the attributes of the slot line.
func (s *session) line(r SessionReason, votes Progress) []slog.Attr {
	attrs := []slog.Attr{
		slog.Uint64("slot", uint64(s.slot)),
		slog.Int("votes", votes.Votes),
		slog.Int("expected", s.watch.expected),
	}
	if s.published > 0 {
		attrs = append(attrs,
			slog.Int("proved", s.width),
			slog.Int64("published_ms", s.publishedAt.Sub(s.watch.times.start).Milliseconds()),
			slog.Int("aggregates", s.published),
			slog.Int64("first_ms", s.firstAt.Sub(s.watch.times.start).Milliseconds()),
			slog.Int("peers", s.peers),
			slog.Int64("quorum_to_prover_ms", s.toProver.Milliseconds()),
			slog.Int64("proof_to_wire_ms", s.toWire.Milliseconds()))
	} else {
		attrs = append(attrs, slog.Int("proved", 0), slog.String("reason", s.explain(r)))
	}
	if j := s.before; j != nil {
		attrs = append(attrs, slog.Group("earlier",
			slog.Uint64("slot", uint64(j.slot())), slog.String("outcome", j.outcome.String()), slog.Int("proved", j.plan.width)))
	}
	return attrs
}

// timesOf returns the moments of a slot.
func timesOf(c clock, s wire.Slot) times {
	return times{
		start:    c.SlotStart(s),
		votes:    c.IntervalStart(s, 1),
		boundary: c.IntervalStart(s, 2),
		pause:    c.IntervalStart(s, 4),
		end:      c.SlotStart(s + 1),
		nextVote: c.IntervalStart(s+1, 1),
	}
}

// input fills in what a decision depends on by time: see planInput.
func (t *times) input(now time.Time, in *planInput) {
	in.now = now
	if now.Before(t.pause) {
		in.timely = t.pause.Add(-finishTime)
	}
	in.lateOwn = t.nextVote.Add(-finishTime)
	switch {
	case now.Before(t.votes):
		in.late = t.votes.Add(-finishTime)
	case !now.Before(t.pause):
		in.late = t.end.Add(-finishTime) // the end of slot+1 of the votes before
	}
}
