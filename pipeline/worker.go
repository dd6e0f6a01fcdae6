package pipeline

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"aggnode/wire"
)

// stackInterval is the least time between two logged stacks: a fault that every
// message meets must not fill the disk.
const stackInterval = time.Minute

// worker is one of the goroutines that check. It owns its buffers.
type worker struct {
	p      *Pipeline
	items  []*Item
	batch  []*wire.SignedAttestation
	proofs []*wire.SignedAggregate
	asked  []*Item
	taken  []*Item // by the pool, and not ended yet
	out    []wire.Reason
	took   time.Time // when items were taken
}

func newWorker(p *Pipeline) *worker {
	return &worker{
		p:      p,
		items:  make([]*Item, 0, maxBatch),
		batch:  make([]*wire.SignedAttestation, 0, maxBatch),
		proofs: make([]*wire.SignedAggregate, 0, maxBatch),
		asked:  make([]*Item, 0, maxBatch),
		taken:  make([]*Item, 0, maxBatch),
		out:    make([]wire.Reason, 0, maxBatch),
	}
}

// runWorker takes work until ctx ends.
func (p *Pipeline) runWorker(ctx context.Context) {
	w := newWorker(p)
	for w.take() {
		w.process(ctx)
		w.putDown()
	}
}

// take waits for work; false when the pipeline stops.
func (w *worker) take() bool {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.stopping {
			return false
		}
		now := p.clock.Now()
		p.advanceLocked(now)
		p.expireLocked(now)
		if w.items = p.queue.take(w.items[:0]); len(w.items) > 0 {
			w.took = now
			for _, it := range w.items {
				it.owner = w
				p.metrics.wait[it.Class].observeLocked(now.Sub(it.Arrival))
				p.note("start", it)
			}
			p.wakeLocked()

			return true
		}
		p.idle++
		p.work.Wait()
		p.idle--
		p.letOthersQueueLocked()
	}
}

// letOthersQueueLocked lets what can run now run before the worker that was woken
// takes: votes come in bursts, and the goroutines of a burst stand in line behind
// the one whose vote woke the worker. Checked by sixteen they cost a third of what
// they do one by one. With nobody in line it takes a fraction of a microsecond.
func (p *Pipeline) letOthersQueueLocked() {
	p.mu.Unlock()
	runtime.Gosched()
	p.mu.Lock()
	p.waking = false
}

// putDown gives back what process did not pass on.
func (w *worker) putDown() {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.putDown(w.items)
	for _, it := range w.items {
		if it.heldBy(w) {
			p.finishLocked(it, wire.ReasonInternalError) // process left it without a reason
		}
	}
	clear(w.items)
	clear(w.asked)
	clear(w.taken)
	clear(w.batch)
	clear(w.proofs)
	p.wakeLocked() // a proof less on the workers may be room for one that waits
}

// process does what was taken. A panic in it ends the items at hand, not the
// worker.
func (w *worker) process(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			w.p.recovered(v, w, w.items...)
		}
	}()
	first := w.items[0]
	switch first.kind {
	case kindUnknown:
		panic("pipeline: item without content in a queue")
	case kindBlock:
		w.block(ctx, first)
	case kindAttestation:
		w.attestations(ctx, w.items)
	case kindAggregate:
		w.aggregates(ctx, w.items)
	}
}

// Work is one check of a worker: of a batch of votes, an aggregate or a block.
type Work struct {
	Class Class
	Wait  time.Duration // of its first item, from arrival until a worker took it
	Wall  time.Duration
	CPU   time.Duration // of the worker's thread; next to none where proofs are checked on another one
}

// meter takes what work on messages of the network took.
type meter interface {
	// Votes takes a batch of votes: how long the first one waited for a worker, and the wall and CPU time of the check.
	Votes(wait, wall, cpu time.Duration)
	// Aggregate takes the wall time of the check of an aggregate. Most of it may be spent in another process.
	Aggregate(wall time.Duration)
}

// Report tells a meter. Blocks are too rare to tell anything, and our own products wait for nobody.
func (w Work) Report(m meter) {
	switch w.Class {
	case ClassAttestation:
		m.Votes(w.Wait, w.Wall, w.CPU)
	case ClassAggregate:
		m.Aggregate(w.Wall)
	case ClassUnknown, ClassBlock, ClassLocal, classEnd:
	}
}

// measured calls check, which is for an item and those after it, and tells OnWork
// what it took. The worker keeps its thread meanwhile, so that what the kernel
// accounts to the thread is what the check did. It holds the thread for nothing
// else: a goroutine that sleeps on a thread of its own, for work or for the lock, is
// woken by two switches of threads. Workers that kept theirs all the time cost a
// vote 3 us more (Intel Xeon with AVX-512, 2026-12).
func (w *worker) measured(first *Item, check func()) {
	p := w.p
	if p.cfg.OnWork == nil {
		check()

		return
	}
	work := Work{Class: first.Class, Wait: w.took.Sub(first.Arrival)}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, cpu := p.clock.Now(), p.cfg.ThreadCPU()
	check()
	work.Wall, work.CPU = p.clock.Now().Sub(began), p.cfg.ThreadCPU()-cpu
	p.cfg.OnWork(work)
}

// block runs the admission rules, the signature check and the insertion.
func (w *worker) block(ctx context.Context, it *Item) {
	p := w.p
	root := it.Block.Block.HashTreeRoot(p.cfg.Profile)
	r := p.head.AdmitBlock(it.Block, root)
	if r == wire.ReasonNone {
		w.measured(it, func() { r = p.verifier.Block(ctx, it.Block) })
	}
	if r == wire.ReasonNone {
		r = p.head.InsertBlock(it.Block, root, it.Size)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r == wire.ReasonNone {
		p.creditLocked(it)
	}
	p.finishLocked(it, r)
}

// attestations checks a batch of votes over the same data: the data once, then
// each signature. Those that wait for a block are verified first and parked
// second, so that the park holds genuine votes only.
func (w *worker) attestations(ctx context.Context, batch []*Item) {
	p := w.p
	start := p.clock.Now()
	imports, r, missing := p.checkData(batch[0])
	share := p.clock.Now().Sub(start) / time.Duration(len(batch))
	if r != wire.ReasonNone && r != wire.ReasonUnknownHead {
		w.refuse(batch, r, share)

		return
	}
	w.pick(batch, share)
	if len(w.asked) > 0 {
		sctx, end := p.startCheck(ctx, w.asked[0])
		w.measured(batch[0], func() { p.verifier.Attestations(sctx, w.batch, w.out) })
		end()
		p.settleAttestations(w.asked, w.out)
	}
	for r == wire.ReasonUnknownHead {
		if p.parkAttestations(batch, missing, imports) {
			return
		}
		imports, r, missing = p.checkData(batch[0])
	}
	w.handOver(ctx, batch, r)
}

// handOver gives the verified votes of a batch to the pool, unless r ends them, and
// ends them in one turn at the lock, which all that submit stand in line for.
func (w *worker) handOver(ctx context.Context, batch []*Item, r wire.Reason) {
	p := w.p
	w.taken = w.taken[:0]
	defer func() { p.deliver(w.taken...) }() // also of those before a panic
	for _, it := range batch {
		if !it.verified {
			continue // ended already
		}
		if r != wire.ReasonNone {
			p.withdraw(it, r)

			continue
		}
		p.metrics.validAttestations.Inc()
		if p.sink.AddAttestation(ctx, it.Attestation, it.DataRoot) {
			w.taken = append(w.taken, it)

			continue
		}
		p.withdraw(it, wire.ReasonPoolFull)
		p.deliver(w.taken...) // the pool was waited for: the others have waited enough
		w.taken = w.taken[:0]
	}
}

// checkData asks the head view about the data of an item. The number of imports
// is read before, see enter.
func (p *Pipeline) checkData(it *Item) (imports uint64, r wire.Reason, missing wire.Root) {
	imports = p.imports.Load()
	r, missing = p.head.CheckData(it.data())

	return imports, r, missing
}

// refuse ends votes for their data. share is the time that the check of the data
// took for each.
func (w *worker) refuse(batch []*Item, r wire.Reason, share time.Duration) {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range batch {
		p.metrics.validationTime.observeLocked(it.screened + share)
		p.finishLocked(it, r)
	}
}

// pick collects the votes whose signatures are to be checked, and ends those
// that another worker made superfluous. share is as of refuse.
func (w *worker) pick(batch []*Item, share time.Duration) {
	p := w.p
	w.asked, w.batch = w.asked[:0], w.batch[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range batch {
		p.metrics.validationTime.observeLocked(it.screened + share)
		if it.verified {
			continue // it was parked
		}
		if r := p.dedupe.checkAttestation(it.Attestation.ValidatorIndex, it.Slot, it.DataRoot); r != wire.ReasonNone {
			p.finishLocked(it, r)

			continue
		}
		w.asked = append(w.asked, it)
		w.batch = append(w.batch, it.Attestation)
	}
	w.awaitAnswers()
	p.metrics.batch.Observe(float64(len(w.asked)))
}

// awaitAnswers makes room for an answer to each item asked about. A verifier that
// leaves one out proves nothing.
func (w *worker) awaitAnswers() {
	w.out = w.out[:len(w.asked)]
	for i := range w.out {
		w.out[i] = wire.ReasonInternalError
	}
}

// aggregates checks the proofs of a batch.
func (w *worker) aggregates(ctx context.Context, batch []*Item) {
	w.asked, w.proofs = w.asked[:0], w.proofs[:0]
	ends := make([]func(), 0, maxBatch)
	check := ctx
	for _, it := range batch {
		if !w.place(it) || !it.checkOnly && !w.p.stillNew(it) {
			continue
		}
		sctx, end := w.p.startCheck(ctx, it)
		if len(w.asked) == 0 {
			check = sctx
		}
		w.asked, w.proofs, ends = append(w.asked, it), append(w.proofs, it.Aggregate), append(ends, end)
	}
	if len(w.asked) == 0 {
		return
	}
	w.awaitAnswers()
	w.p.metrics.aggregateBatch.Observe(float64(len(w.asked)))
	w.measured(batch[0], func() { w.p.verifier.Aggregates(check, w.proofs, w.out) })
	for i, it := range w.asked {
		ends[i]()
		w.conclude(ctx, it, w.out[i])
	}
}

// place looks again for the blocks of an aggregate that had to wait for one; false
// where it goes no further now.
func (w *worker) place(it *Item) bool {
	p := w.p
	for it.unplaced {
		imports, r, missing := p.checkData(it)
		switch {
		case r == wire.ReasonNone:
			it.unplaced = false
		case r != wire.ReasonUnknownHead:
			w.finish(r, it)

			return false
		case p.parkAgain(it, missing, imports):
			return false
		}
	}

	return true
}

// conclude ends an aggregate with what its check showed, and gives a good one to
// the pool.
func (w *worker) conclude(ctx context.Context, it *Item, r wire.Reason) {
	p := w.p
	if r = p.settleAggregate(it, r); r != wire.ReasonNone || it.checkOnly {
		w.finish(r, it)

		return
	}
	if p.sink.AddAggregate(ctx, it.Aggregate, it.DataRoot) {
		p.deliver(it)
	} else {
		w.finish(wire.ReasonPoolFull, it)
	}
}

// startCheck starts the span of a check under that of its item, if it has one.
func (p *Pipeline) startCheck(ctx context.Context, it *Item) (context.Context, func()) {
	if it.span == nil {
		return ctx, func() {}
	}
	ctx, span := p.cfg.Tracer.Start(trace.ContextWithSpan(ctx, it.span), "check")

	return ctx, func() { span.End() }
}

// finish ends items that the worker holds.
func (w *worker) finish(r wire.Reason, items ...*Item) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	for _, it := range items {
		w.p.finishLocked(it, r)
	}
}

// heldBy tells whether an item is on a worker. One that was parked may have been
// released and taken by another meanwhile.
func (it *Item) heldBy(w *worker) bool { return it.state == stateRunning && it.owner == w }

// recovered ends the items that a panic hit, on a worker or, without one, before
// they were queued, and logs it.
func (p *Pipeline) recovered(v any, w *worker, items ...*Item) {
	p.logPanic(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range items {
		if it.state != stateNew && !it.heldBy(w) {
			continue // passed on before the panic
		}
		if it.kind == kindAttestation && it.verified {
			p.dedupe.forgetAttestation(it.Attestation.ValidatorIndex, it.Slot)
		}
		p.finishLocked(it, wire.ReasonInternalError)
	}
}

// logPanic logs a recovered panic, with the stack once in stackInterval. Every
// one is counted by the reason of the items that it ended.
func (p *Pipeline) logPanic(v any) {
	now := p.clock.Now()
	p.mu.Lock()
	due := p.lastStack.IsZero() || now.Sub(p.lastStack) >= stackInterval
	if due {
		p.lastStack = now
	}
	p.mu.Unlock()
	if due {
		p.log.Error("panic while checking", "panic", v, "stack", string(debug.Stack()))
	}
}
