package aggregate

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// publishRetry is how long a parcel waits after the network refused it.
const publishRetry = 250 * time.Millisecond

var errExpired = errors.New("nobody accepts an aggregate of that slot any more")

// publishAll hands checked aggregates to the network until ctx ends. A network that takes long delays this goroutine
// and nothing else.
func (a *Aggregator) publishAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, next := a.outbox.take(a.clock.Now())
		if p == nil {
			var later <-chan time.Time
			if !next.IsZero() {
				timer.Reset(max(next.Sub(a.clock.Now()), time.Millisecond))
				later = timer.C
			}
			select {
			case <-ctx.Done():
				return
			case <-a.outbox.wake:
			case <-later:
			}
			continue
		}
		for _, done := range a.publish(ctx, p) {
			select {
			case a.sent <- done:
			case <-ctx.Done():
				a.unsent = append(a.unsent, done)
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// publish tries once. It returns the parcels that ended by it: none when this one went back to wait for another try.
func (a *Aggregator) publish(ctx context.Context, p *parcel) []publication {
	if !a.clock.Now().Before(p.expires) {
		return []publication{{parcel: p, outcome: JobLate, err: errExpired}}
	}
	ctx, span := a.tracer.Start(trace.ContextWithSpan(ctx, p.job.span), "publish")
	began := a.clock.Now()
	peers, err := a.publisher.PublishAggregate(ctx, p.job.pooled.Aggregate)
	endSpan(span, err)
	now := a.clock.Now()
	a.metrics.observePhase(phasePublish, now.Sub(began))
	if err == nil {
		return []publication{{parcel: p, outcome: JobPublished, at: now, peers: peers}}
	}
	a.metrics.publishErrors.Inc()
	a.log.Debug("publish aggregate", "slot", uint64(p.job.slot()), "error", err)
	p.notBefore = now.Add(publishRetry)
	superseded, over := a.outbox.put(p)
	var ended []publication
	for _, q := range superseded {
		ended = append(ended, publication{parcel: q, outcome: JobSuperseded})
	}
	for _, q := range over {
		ended = append(ended, publication{parcel: q, outcome: JobLate, err: err})
	}
	return ended
}

// published closes the job of a parcel, however that ended.
func (a *Aggregator) published(p publication) {
	j := p.parcel.job
	a.metrics.outbox.Set(float64(a.outbox.len()))
	s := j.session
	isOwn := j.slot() == s.slot
	if isOwn {
		s.outgoing--
	}
	switch {
	case p.outcome != JobPublished:
		j.err = p.err
		if isOwn {
			s.failed = p.outcome
		}
	default:
		ready := j.provedAt
		if held := a.heldUntil(j); ready.Before(held) {
			ready = held
		}
		toWire := p.at.Sub(ready)
		a.metrics.toWire.Observe(toWire.Seconds())
		j.span.SetAttributes(attribute.Int64("proof_to_wire_ms", toWire.Milliseconds()))
		a.metrics.published(j, p, a.cfg.Committees, a.clock.SlotStart(j.slot()))
		if isOwn {
			s.publish(j.plan.width, p.peers, p.at, toWire)
		}
	}
	a.close(j, p.outcome)
}
