package aggregate

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"aggnode/prover"
	"aggnode/wire"
)

const (
	// hardSlack and hardFactor make a job overdue: twice the prediction and half a second.
	// ARCHITECTURE.md section 5 point 5.
	hardSlack  = 500 * time.Millisecond
	hardFactor = 2
)

// job is one proof in the making. The loop owns it; its goroutine reads id, plan, ctx and span, which do not change any
// more when it is started.
type job struct {
	id       uint64
	session  *session // in which it was planned
	trigger  trigger
	plan     *plan
	material uint64 // version of the pool that the plan was made on
	began    time.Time
	ends     time.Time // predicted, once it was started
	quorumAt time.Time // see session; zero but for the first job over the slot's own votes
	cancel   context.CancelFunc
	ctx      context.Context // request-scoped: lives as long as the job
	span     trace.Span
	waitSpan trace.Span

	wall     time.Duration // of the prover call
	provedAt time.Time
	proved   bool // the proof passed the self-check
	pooled   *Pooled
	outcome  JobOutcome // JobUnknown until it has ended
	err      error
}

// slot is the slot of the job's votes.
func (j *job) slot() wire.Slot { return j.plan.group.Data.Slot }

// grant is the answer of the budget.
type grant struct {
	job     *job
	release func()
	err     error
}

// publication is how a parcel ended.
type publication struct {
	parcel  *parcel
	outcome JobOutcome
	at      time.Time
	peers   int
	err     error // why it was given up
}

// plan acts on a trigger that is due: snapshot, decision, and a job if there is one to do.
func (a *Aggregator) plan(ctx context.Context, t trigger, due time.Time) {
	began := a.clock.Now()
	f, ok := a.takePlanned()
	if !ok {
		f, ok = a.find(ctx, began, a.checking)
	}
	if !ok {
		return
	}
	a.note(&f)
	if f.plan == nil {
		a.metrics.usefulSeconds.Add(a.supply.done(a.clock.Now()).Seconds())
		return
	}
	a.supply.want(due)
	if !a.prover.Ready() {
		a.unavailable()
		return
	}
	a.lastJob++
	j := &job{id: a.lastJob, session: a.session, trigger: t, plan: f.plan, material: f.snapshot.Version, began: began}
	j.ctx, j.cancel = context.WithCancel(ctx)
	a.traceJob(j, f.snapshot)
	a.running = j
	a.isBusy.Store(true)
	a.workers.Go(func() {
		release, err := a.budget.Acquire(j.ctx)
		a.grants <- grant{job: j, release: release, err: err}
	})
}

// note tells the session what was found for it.
func (a *Aggregator) note(f *finding) {
	if !f.ownWaits && a.session.note(&f.decision) {
		a.metrics.jobs[JobNoTime].Inc()
	}
}

// find takes a snapshot and looks for a job that is to start at a moment, with the proofs of the jobs under way counted as
// there; false when the pool has stopped.
func (a *Aggregator) find(ctx context.Context, start time.Time, underWay []*job) (finding, bool) {
	s := a.session
	began := a.clock.Now()
	snapshot, err := a.pool.Snapshot(ctx)
	if err != nil {
		return finding{}, false
	}
	now := a.clock.Now()
	progress, _ := a.pool.Progress(s.slot)
	in := planInput{
		slot: s.slot, limits: limitsOf(&a.cfg, a.capabilities()), cost: a.cost, bars: a.bars,
		ownWaits: !s.watch.mayPlanOwn(now, progress),
		isProbe:  a.noTime >= probeAfter && s.jobs == 0,
	}
	s.watch.times.input(start, &in)
	f := finding{slot: s.slot, decision: decide(snapshot.covering(underWay), in), snapshot: snapshot, ownWaits: in.ownWaits}
	a.metrics.observePhase(phaseSnapshot, now.Sub(began))
	a.metrics.observePhase(phasePlan, a.clock.Now().Sub(now))
	return f, true
}

// capabilities are those of the loaded prover. Before one was loaded they are enough to say whether there is material.
func (a *Aggregator) capabilities() prover.Capabilities {
	if caps, ok := a.prover.Capabilities(); ok {
		return caps
	}
	return prover.Capabilities{MaxChildren: defaultMaxChildren}
}

// unavailable notes that there is work, but no prover, and arranges another look.
func (a *Aggregator) unavailable() {
	s := a.session
	s.reason, s.why = SessionProverUnavailable, ""
	if a.cfg.WhyUnavailable != nil {
		if err := a.cfg.WhyUnavailable(); err != nil {
			s.why = err.Error()
		}
	}
	a.follow()
	a.notReady = a.clock.Now().Add(readyPoll)
}

// follow has the session look again, whatever the state of its votes.
func (a *Aggregator) follow() {
	if a.session != nil {
		a.session.watch.remember(a.clock.Now())
	}
}

// granted starts the job that waited for the budget, planned again if the pool has changed or time has run out.
func (a *Aggregator) granted(ctx context.Context, g grant) {
	j := g.job
	j.waitSpan.End()
	a.metrics.observePhase(phaseWait, a.clock.Now().Sub(j.began))
	if g.err != nil || j.ctx.Err() != nil {
		if g.release != nil {
			g.release()
		}
		j.err = g.err
		a.notReady = a.clock.Now().Add(readyPoll)
		a.end(j, JobCancelled)
		return
	}
	if a.session != j.session {
		j.session = a.session
		j.material = 0 // another session's clock and deadlines
	}
	_, version := a.pool.Progress(j.slot())
	isLate := !j.plan.isProbe && a.clock.Now().Add(j.plan.cost).After(j.plan.deadline)
	if version != j.material || isLate {
		f, ok := a.find(ctx, a.clock.Now(), a.checking)
		if !ok {
			g.release()
			a.end(j, JobCancelled)
			return
		}
		a.note(&f)
		switch {
		case f.plan == nil:
			g.release()
			if isLate {
				a.end(j, JobNoTime)
			} else {
				a.end(j, JobSuperseded)
			}
			return
		case f.plan.key != j.plan.key:
			a.planned = nil // it counted on the other plan
			a.metrics.jobs[JobSuperseded].Inc()
			endJobSpan(j, JobSuperseded)
			j.plan = f.plan
			a.traceJob(j, f.snapshot)
			j.waitSpan.End()
		}
		j.plan, j.material = f.plan, f.snapshot.Version
	}
	if s := j.session; j.slot() == s.slot {
		if s.jobs++; s.jobs == 1 {
			j.quorumAt = s.quorumAt
		}
		if now := a.clock.Now(); now.Before(s.watch.times.boundary) {
			a.metrics.early(s.watch.times.boundary.Sub(now))
		}
	}
	hard := a.hardDeadline(j.plan)
	input := j.plan.job(keyring{a.pool.registry})
	input.Overdue, input.CPUMax = a.overdue(j.plan)
	now := a.clock.Now()
	j.ends = now.Add(j.plan.cost)
	a.metrics.usefulSeconds.Add(a.supply.done(now).Seconds())
	a.workers.Go(func() { a.work(j, input, hard, g.release) })
}

// overdue is from when on the prover is killed unless it was starved: 2·prediction + 0.5 s, but not before the job's own
// soft deadline, for killing one that may still make it gains nothing. cpuMax is what tells starved from lost: twice the
// CPU that the job takes by the figures of hello. A child that was killed needs seconds of CPU at the same priority to
// start again, so on a machine that others keep busy a job that goes on is the shorter way to the next proof. A stuck
// child uses no CPU and is noticed by the prover's own watch.
func (a *Aggregator) overdue(p *plan) (at time.Time, cpuMax time.Duration) {
	at = a.clock.Now().Add(hardFactor*p.cost + hardSlack)
	if at.Before(p.deadline) {
		at = p.deadline
	}
	threads := 1
	if caps, ok := a.prover.Capabilities(); ok {
		threads = max(threads, caps.Threads)
	}
	return at, time.Duration(hardFactor*threads)*a.cost.atHello(len(p.raw), len(p.children)) + hardSlack
}

// hardDeadline is the end of slot+1: nobody waits for the proof any longer.
func (a *Aggregator) hardDeadline(p *plan) time.Time { return a.clock.SlotStart(p.group.Data.Slot + 2) }

// expires is when others stop to accept an aggregate of the slot.
func (a *Aggregator) expires(slot wire.Slot) time.Time {
	return a.clock.SlotStart(slot + aggregateWindow)
}

// finish takes the end of a prover call: the model learns, inputs at fault are barred, and the prover is free.
func (a *Aggregator) finish(r proof) {
	j, p := r.job, r.job.plan
	j.wall, j.provedAt, j.err = r.wall, r.ended, r.err
	a.supply.proved(&r)
	a.metrics.quorumToProver(j, r.accepted)
	switch r.outcome {
	case JobRefused:
		a.bar(j)
	case JobCrashed, JobTimedOut:
		if r.isBound {
			a.cost.observe(len(p.raw), len(p.children), r.wall, true)
		}
		if a.bars.addCrash(p.key, j.slot()) {
			a.log.Warn("job quarantined", "slot", uint64(j.slot()), "data_root", p.group.Root.Short(), "raw", len(p.raw),
				"children", len(p.children), "outcome", r.outcome.String())
		}
	case JobBadOutput:
		a.bars.quarantine(p.key, j.slot())
		a.setWhy("a proof failed the self-check: " + r.err.Error())
	case JobCancelled, JobSuperseded, JobLate, JobPublished, JobNoTime:
	case JobUnknown:
		a.cost.observe(len(p.raw), len(p.children), r.wall, false)
		a.checking = append(a.checking, j)
		a.release()
		return
	}
	a.notReady = r.accepted.Add(readyPoll) // what failed at once must not be tried in a tight loop
	a.end(j, r.outcome)
}

// bar takes the input that the prover named out of the next plans, or else the whole plan.
func (a *Aggregator) bar(j *job) {
	var refused *prover.RefusedError
	if !errors.As(j.err, &refused) {
		return
	}
	p := j.plan
	switch i := refused.Index; {
	case refused.Code == prover.CodeBadSignature && i >= 0 && i < len(p.raw):
		a.bars.addVote(p.group.Root, p.raw[i].Index, j.slot())
	case refused.Code == prover.CodeBadChild && i >= 0 && i < len(p.children):
		a.bars.addChild(p.children[i], j.slot())
	default:
		a.bars.quarantine(p.key, j.slot())
	}
}

// release frees the place of the one job. Whatever it left undone is looked at next.
func (a *Aggregator) release() {
	a.running = nil
	a.isBusy.Store(false)
	a.follow()
}

// settle tells the session, and the readiness if the session is over, whether the job made a proof.
func (a *Aggregator) settle(j *job) {
	s := j.session
	if j.slot() == s.slot {
		if j.proved {
			s.proofs++
		}
		if j.outcome == JobUnknown {
			s.outgoing++
		} else {
			s.failed = j.outcome
		}
	}
	switch {
	case j.proved:
		a.judge(true, "")
	case s != a.session && j.outcome != JobCancelled:
		a.judge(false, j.outcome.String())
	}
	if s != a.session && a.session != nil {
		a.session.before = j
	}
}

// end closes a job that has nothing to publish.
func (a *Aggregator) end(j *job, o JobOutcome) {
	j.outcome = o
	a.planned = nil // it counted on this proof
	a.release()
	a.settle(j)
	a.close(j, o)
}

// close counts the outcome: the one place where a job ends.
func (a *Aggregator) close(j *job, o JobOutcome) {
	j.outcome = o
	j.cancel()
	a.metrics.jobs[o].Inc()
	endJobSpan(j, o)
	level := a.log.Debug
	if o == JobCrashed || o == JobBadOutput || o == JobTimedOut || o == JobRefused {
		level = a.log.Warn // at most one for each start of the prover, which backs off
	}
	args := []any{
		"slot", uint64(j.slot()), "data_root", j.plan.group.Root.Short(), "trigger", j.trigger.String(),
		"raw", len(j.plan.raw), "children", len(j.plan.children), "outcome", o.String(), "duration_ms", j.wall.Milliseconds(),
	}
	if j.err != nil {
		args = append(args, "error", j.err)
	}
	level("job ended", args...)
}
