package pipeline

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"aggnode/wire"
)

// attestationSpans is how many votes there are to one span.
const attestationSpans = 64

// Enqueue puts an item that Screen returned where it waits for a worker, in
// microseconds, and Submit gets the outcome. Without it Submit does both. A burst
// that one goroutine enqueues is a batch to the worker that it wakes, and has its
// outcomes by the time that the goroutines which wait for them first run. ctx is
// that of the trace alone.
func (p *Pipeline) Enqueue(ctx context.Context, it *Item) {
	if it.enqueued {
		panic("pipeline: item enqueued twice")
	}
	it.enqueued = true
	it.answered.Add(1)
	if it.kind == kindUnknown || it.Class == ClassUnknown || it.Class >= classEnd {
		it.outcome = p.refuseNew(it, wire.ReasonInternalError)
		it.answered.Done()

		return
	}
	if p.isTraced(it) {
		p.startSpan(ctx, it)
	}
	p.place(it)
}

// Submit takes an item that Screen returned, and waits for its outcome: until a
// worker has it, it has to make room, its deadline comes or ctx ends. It never
// waits longer than the verdict deadline of the class.
func (p *Pipeline) Submit(ctx context.Context, it *Item) Outcome {
	if it.submitted {
		panic("pipeline: item submitted twice")
	}
	it.submitted = true
	if !it.enqueued {
		p.Enqueue(ctx, it)
	}
	p.await(ctx, it)
	if it.span != nil {
		endSpan(it)
	}

	return it.outcome // written before it was answered
}

// SubmitLocal takes a vote, an aggregate or a block of our own and waits as
// Submit does. It is checked like any other (invariant 5), recorded as verified
// and handed to the pool or the head view.
func (p *Pipeline) SubmitLocal(ctx context.Context, it *Item) Outcome {
	it.Class, it.Peer, it.kind = ClassLocal, "", it.content()
	switch it.kind {
	case kindUnknown:
	case kindBlock:
		it.Slot = it.Block.Block.Slot
		if it.Payload == nil {
			raw, err := p.cfg.Profile.EncodeBlock(it.Block)
			if err != nil {
				p.log.Error("encode own block", "slot", uint64(it.Slot), "error", err)

				return p.refuseNew(it, wire.ReasonMalformed)
			}
			it.Payload, it.Size = raw, len(raw)
		}
	case kindAttestation:
		it.Slot, it.DataRoot = it.Attestation.Data.Slot, it.Attestation.Data.HashTreeRoot()
		if uint64(it.Attestation.ValidatorIndex) >= uint64(p.cfg.Validators) {
			return p.refuseNew(it, wire.ReasonUnknownValidator)
		}
	case kindAggregate:
		it.Slot, it.DataRoot = it.Aggregate.Data.Slot, it.Aggregate.Data.HashTreeRoot()
		it.Size = len(it.Aggregate.Proof)
	}

	return p.Submit(ctx, it)
}

// CheckAggregate checks a proof that we made, before inbound ones, and hands it
// to nobody. ReasonNone: it is good, and known as verified from now on.
func (p *Pipeline) CheckAggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason {
	it := &Item{Aggregate: a, checkOnly: true}

	return p.SubmitLocal(ctx, it).Reason
}

// isTraced tells whether an item gets a span: an aggregate, and one vote in
// attestationSpans.
func (p *Pipeline) isTraced(it *Item) bool {
	switch it.kind {
	case kindUnknown, kindBlock:
	case kindAttestation:
		return p.sampled.Add(1)%attestationSpans == 0
	case kindAggregate:
		return true
	}

	return false
}

// startSpan gives an item its span, unless nobody records. It is in the trace of its
// data root, without a parent unless the caller has one.
func (p *Pipeline) startSpan(ctx context.Context, it *Item) {
	if !trace.SpanContextFromContext(ctx).IsValid() { // a self-check is below its job
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: wire.TraceID(p.cfg.Network, it.Slot, it.DataRoot), TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	_, span := p.cfg.Tracer.Start(ctx, it.kind.String())
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.Int64("slot", int64(it.Slot)), attribute.String("data_root", it.DataRoot.Short()),
		attribute.String("class", it.Class.String()), attribute.Int("size", it.Size))
	it.span = span
}

// endSpan ends the span of an item that has its outcome.
func endSpan(it *Item) {
	it.span.SetAttributes(attribute.String("verdict", it.outcome.Verdict.String()), attribute.String("reason", it.outcome.Reason.String()))
	it.span.End()
}

// beginLocked counts an item in and sets its deadlines.
func (p *Pipeline) beginLocked(it *Item, now time.Time) {
	if it.Arrival.IsZero() {
		it.Arrival = now
	}
	it.screened = now.Sub(it.Arrival)
	it.answer, it.useful = p.deadlinesOf(it)
	p.advanceLocked(now)
	p.seq++
	it.seq = p.seq
	it.peer = p.peers.record(it.Peer, p.slot)
	it.peer.refs++
	p.inFlight[it.Class]++
	p.metrics.received[it.Class].Inc()
	p.note("arrive", it)
}

// deadlinesOf returns when the verdict on an item is due, and when its content
// is of no use any more.
func (p *Pipeline) deadlinesOf(it *Item) (answer, useful time.Time) {
	switch it.kind {
	case kindUnknown, kindBlock:
		// A block that comes late, after a partition say, is as good to the tree
		// as a new one: it gets a slot of time.
		useful = latest(p.clock.SlotStart(it.Slot+blockSlots), it.Arrival.Add(p.cfg.SlotDuration))

		return useful, useful
	case kindAttestation:
		useful = p.clock.SlotStart(it.Slot + attestationSlots)
		answer = it.Arrival.Add(2 * p.interval)
	case kindAggregate:
		useful = p.clock.SlotStart(it.Slot + aggregateSlots)
		answer = it.Arrival.Add(p.cfg.SlotDuration)
	}
	if it.Class == ClassLocal {
		useful = p.clock.SlotStart(it.Slot + attestationSlots) // end of its own slot+1
		if it.checkOnly {
			useful = latest(useful, it.Arrival.Add(p.cfg.SlotDuration)) // a late proof is judged all the same
		}

		return useful, useful
	}

	return earliest(answer, useful), useful
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}

	return a
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}

	return b
}

// place puts a new item where it waits. The checkpoints of aggregates are looked
// at here already: what names an unknown block must not take a place in the
// queue, and what contradicts itself none at all. Votes are verified first.
func (p *Pipeline) place(it *Item) {
	defer func() {
		if v := recover(); v != nil {
			p.recovered(v, nil, it)
		}
	}()
	if it.kind != kindAggregate || it.checkOnly {
		p.mu.Lock() // once: every vote comes by here
		defer p.mu.Unlock()
		now := p.clock.Now()
		p.beginLocked(it, now)
		p.enterLocked(it, now, wire.ReasonNone, wire.Root{}, 0)

		return
	}
	p.begin(it)
	for {
		imports, r, missing := p.checkData(it)
		if p.enter(it, r, missing, imports) {
			return
		}
	}
}

func (p *Pipeline) begin(it *Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beginLocked(it, p.clock.Now())
}

func (p *Pipeline) enter(it *Item, r wire.Reason, missing wire.Root, imports uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.enterLocked(it, p.clock.Now(), r, missing, imports)
}

// enterLocked queues an item, parks it or ends it. It answers false when blocks
// were imported since the head view was asked: the block may have come just before
// the item would have been parked, and nobody would call it again.
func (p *Pipeline) enterLocked(it *Item, now time.Time, r wire.Reason, missing wire.Root, imports uint64) bool {
	p.expireLocked(now)
	switch {
	case p.stopping:
		r = wire.ReasonStopping
	case r == wire.ReasonNone:
		r = p.newnessLocked(it, now)
	case r == wire.ReasonUnknownHead:
		if imports != p.imports.Load() {
			return false
		}
		p.parkLocked(it, missing, now)

		return true
	}
	if r != wire.ReasonNone {
		p.finishLocked(it, r)

		return true
	}
	p.setDueLocked(it, it.answer)
	p.pushLocked(it)
	p.wakeLocked()

	return true
}

// newnessLocked says whether an item is still worth a place: it is in time and
// nothing that verified meanwhile covers it.
func (p *Pipeline) newnessLocked(it *Item, now time.Time) wire.Reason {
	if !now.Before(it.useful) {
		return wire.ReasonStale
	}
	switch it.kind {
	case kindUnknown, kindBlock:
		return wire.ReasonNone
	case kindAttestation:
		return p.dedupe.checkAttestation(it.Attestation.ValidatorIndex, it.Slot, it.DataRoot)
	case kindAggregate:
		if it.checkOnly {
			return wire.ReasonNone
		}

		return p.dedupe.checkAggregate(it.Slot, it.DataRoot, it.Aggregate.Participants)
	}

	return wire.ReasonNone
}

// refuseNew counts and ends an item that does not get as far as a queue.
func (p *Pipeline) refuseNew(it *Item, r wire.Reason) Outcome {
	class := it.Class
	if class == ClassUnknown || class >= classEnd {
		class = ClassLocal // a caller of ours made it
	}
	p.screenedOut(class, it.kind, it.Peer, r)

	return outcomeOf(r)
}
