package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// stuckCPU is the CPU that a job must use within Config.StuckAfter. A child's progress thread alone uses about 0.1 ms
// a frame, 1.2 ms in 3 s; a prover at the lowest priority among one busy thread a core still gets about 40 ms (by the
// kernel's weights, 15 to 1024).
const stuckCPU = 10 * time.Millisecond

// Prove makes one proof. The deadline of ctx is the job's hard deadline: when ctx ends, the child is killed (SIGTERM to
// its group, StopGrace, SIGKILL), reaped and started anew, and a proof that comes after that moment is dropped. A
// second caller waits for the first.
//
// The proof's claims are compared with job.Claim(); soundness is for a verifier to judge. Errors: *RefusedError when the
// job as it stands is at fault (Index names the raw signature or child); ErrClaimMismatch for a proof of something
// else; otherwise ErrUnavailable together with ErrTimeout, ErrStuck, ErrMemory, ErrCrashed, ErrProtocol or ctx.Err().
func (c *Client) Prove(ctx context.Context, job Job) (Result, error) {
	began := time.Now()
	c.metrics.running.Inc()
	r, err := c.prove(ctx, &job)
	c.metrics.running.Dec()
	wall := time.Since(began)
	c.metrics.observe("prove", wall, r.CPU, err)
	if err != nil {
		return Result{}, err
	}
	c.metrics.proof.Observe(float64(len(r.Proof)))
	r.Wall = wall
	return r, nil
}

func (c *Client) prove(ctx context.Context, job *Job) (Result, error) {
	if c.cfg.Role != RoleProve {
		return Result{}, &RefusedError{CodeUnsupported, -1, "this client is a verifier"}
	}
	select {
	case c.proving <- struct{}{}:
		defer func() { <-c.proving }()
	case <-ctx.Done():
		return Result{}, unavailable(ctxError(ctx))
	}
	p, call, err := c.beginJob(ctx, job)
	if err != nil {
		return Result{}, err
	}
	f, err := p.waitProof(ctx, call, job)
	if err != nil {
		return Result{}, unavailable(err)
	}
	if f.kind == kindError {
		return Result{}, p.answered(refusal(f))
	}
	r, err := decodeResult(f.body)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
		p.kill(err)
		return Result{}, unavailable(err)
	}
	defer f.release()
	p.served.Store(true)
	c.weigh(p)
	if len(r.proof) == 0 || len(r.proof) > p.caps.ProofBytesMax {
		return Result{}, fmt.Errorf("%w: a proof of %d bytes", ErrClaimMismatch, len(r.proof))
	}
	// A copy: the frame holds the entries too, and proofs are kept for slots.
	return Result{Proof: bytes.Clone(r.proof), Wait: call.wait, CPU: r.cpu}, r.matches(job.Claim())
}

// beginJob hands the job to the serving child, and to the one after it where that was taken out of use this moment.
func (c *Client) beginJob(ctx context.Context, job *Job) (*process, *call, error) {
	for {
		p, call, err := c.tryJob(ctx, job)
		if !errors.Is(err, errRecycled) {
			return p, call, err
		}
		if err := c.WaitReady(ctx); err != nil {
			return nil, nil, unavailable(err)
		}
	}
}

func (c *Client) tryJob(ctx context.Context, job *Job) (*process, *call, error) {
	p, err := c.serving()
	if err != nil {
		return nil, nil, err
	}
	if err := job.check(&p.caps); err != nil {
		return nil, nil, err
	}
	left := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	call, err := p.begin(ctx, kindProve, appendJob(p.buffers.newBody(job.size()), left, job), 0, true)
	if err == nil {
		return p, call, nil
	}
	if ctx.Err() != nil { // the child does not even read
		err = ctxError(ctx)
		p.kill(err)
	}
	return nil, nil, unavailable(err)
}

// waitProof waits for the end of a job under its deadlines and the rule for stuck children.
func (p *process) waitProof(ctx context.Context, c *call, job *Job) (frame, error) {
	watch := stuckWatch{limit: p.cfg.StuckAfter, since: time.Now()}
	tick := time.NewTicker(max(p.cfg.StuckAfter/12, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case f := <-c.reply:
			return f, nil
		case <-p.dying:
			return p.wait(ctx, c) // the answer may have come first
		case <-ctx.Done():
			err := ctxError(ctx)
			p.kill(err)
			return frame{}, err
		case now := <-tick.C:
			cpu := time.Duration(c.cpu.Load())
			var err error
			switch {
			case watch.isStuck(now, cpu):
				err = fmt.Errorf("%w: less than %s of CPU in %s", ErrStuck, stuckCPU, p.cfg.StuckAfter)
			case watch.isOverdue(now, cpu, job):
				err = fmt.Errorf("%w: overdue after %s of CPU", ErrTimeout, job.CPUMax)
			default:
				continue
			}
			p.kill(err)
			return frame{}, err
		}
	}
}

// stuckWatch tells slow from stuck by the CPU that progress frames report. Frames that stop count as no CPU: a stopped
// process sends none.
type stuckWatch struct {
	limit time.Duration
	since time.Time
	cpu   time.Duration // at since
	first time.Duration // of the job's first frame: frames count from the start of the process
}

// isOverdue says whether a job has run too long by its own figures.
func (w *stuckWatch) isOverdue(now time.Time, cpu time.Duration, job *Job) bool {
	if w.first == 0 {
		w.first = cpu
	}
	return !job.Overdue.IsZero() && !now.Before(job.Overdue) && cpu-w.first >= job.CPUMax
}

func (w *stuckWatch) isStuck(now time.Time, cpu time.Duration) bool {
	if cpu-w.cpu >= stuckCPU {
		w.cpu, w.since = cpu, now
		return false
	}
	return now.Sub(w.since) >= w.limit
}

// ctxError is ErrTimeout for a passed deadline and the cause for a cancelled context.
func ctxError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	}
	return context.Cause(ctx)
}

// answered marks the process as one that serves, whatever it said, unless it broke the protocol.
func (p *process) answered(err error) error {
	if errors.Is(err, ErrProtocol) {
		p.kill(err)
		return unavailable(err)
	}
	p.served.Store(true)
	return err
}

// check refuses what the backend would refuse, before anything is sent.
func (j *Job) check(c *Capabilities) error {
	refuse := func(code Code, i int, format string, args ...any) error {
		return &RefusedError{Code: code, Index: i, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(j.Raw) > c.MaxRaw:
		return refuse(CodeTooManyRaw, -1, "%d raw signatures, limit %d", len(j.Raw), c.MaxRaw)
	case len(j.Children) > c.MaxChildren:
		return refuse(CodeTooManyChildren, -1, "%d children, limit %d", len(j.Children), c.MaxChildren)
	case len(j.Raw)+len(j.Children) < max(1, c.MinInputs):
		return refuse(CodeTooFewInputs, -1, "%d inputs, at least %d", len(j.Raw)+len(j.Children), max(1, c.MinInputs))
	}
	for i := range j.Raw {
		if len(j.Raw[i].PublicKey) != PublicKeySize {
			return refuse(CodeBadLength, i, "a public key of %d bytes, must be %d", len(j.Raw[i].PublicKey), PublicKeySize)
		}
		if len(j.Raw[i].Signature) != c.SignatureSize {
			return refuse(CodeBadLength, i, "a signature of %d bytes, must be %d", len(j.Raw[i].Signature), c.SignatureSize)
		}
	}
	keys := len(j.Raw)
	for i := range j.Children {
		ch := &j.Children[i]
		switch {
		case len(ch.Proof) == 0 || len(ch.Proof) > c.ProofBytesMax:
			return refuse(CodeBadLength, i, "a child's proof of %d bytes, limit %d", len(ch.Proof), c.ProofBytesMax)
		case ch.Claim.Message != j.Message || ch.Claim.Epoch != j.Epoch:
			return refuse(CodeBadChild, i, "a child over another message or epoch")
		case !ch.Claim.isWellFormed():
			return refuse(CodeBadChild, i, "a child whose signer set is empty, unsorted or cut")
		}
		keys += ch.Claim.Signers()
	}
	if size := j.size(); size > int(limits[kindProve]) {
		return refuse(CodeBadLength, -1, "a job of %d bytes, limit %d", size, limits[kindProve])
	}
	signers := j.Claim().Signers()
	switch {
	case c.MaxSigners > 0 && signers > c.MaxSigners:
		return refuse(CodeTooManyRaw, -1, "%d signers, limit %d", signers, c.MaxSigners)
	case !c.ChildrenMayOverlap && signers != keys:
		return refuse(CodeOverlap, -1, "inputs share a public key")
	}
	return nil
}

// size is the length in bytes of the job's prove body.
func (j *Job) size() int {
	n := 4 + 4 + MessageSize + 8 + 4
	for i := range j.Raw {
		n += len(j.Raw[i].PublicKey) + len(j.Raw[i].Signature)
	}
	for i := range j.Children {
		n += minClaimSize + len(j.Children[i].Claim.SignerSet) + 4 + len(j.Children[i].Proof)
	}
	return n
}

// isWellFormed says whether the signer set is a non-empty, strictly ascending list of whole keys.
func (c Claim) isWellFormed() bool {
	if len(c.SignerSet) == 0 || len(c.SignerSet)%PublicKeySize != 0 {
		return false
	}
	for i := 1; i < c.Signers(); i++ {
		if bytes.Compare(c.Key(i-1), c.Key(i)) >= 0 {
			return false
		}
	}
	return true
}
