package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// proverSession tests a child of the prove role.
func (t *conformance) proverSession(ctx context.Context) error {
	p, err := t.start(ctx, RoleProve, 1)
	if err != nil {
		return err
	}
	defer t.end(p)
	caps := &p.caps
	t.report.Capabilities = *caps
	t.say.line("     %s, %s, scheme %s: signatures of %d bytes, %d to %d raw, %d children; two signatures in %.2f s",
		caps.Backend, caps.Revision, caps.Scheme, caps.SignatureSize, caps.MinInputs, caps.MaxRaw, caps.MaxChildren, caps.HelloProve.Seconds())
	t.check(ctx, "ping is answered with the same bytes", t.cfg.CallTimeout, func(ctx context.Context) error { return p.ping(ctx, "aggnode") })

	if err := t.gather(ctx, p); err != nil {
		return err
	}
	var two result
	if !t.check(ctx, "a job of two raw signatures", t.jobTimeout(), func(ctx context.Context) (err error) {
		two, err = t.prove(ctx, p, t.sub(t.job.Raw[:2]))
		return err
	}) {
		return fmt.Errorf("%w: no proof to go on with", errNotConforming)
	}
	t.proof = bytes.Clone(two.proof)
	t.children(ctx, p)
	t.badJobs(ctx, p)
	t.check(ctx, "a job after all refusals", t.jobTimeout(), func(ctx context.Context) error {
		_, err := t.prove(ctx, p, t.sub(t.job.Raw[:2]))
		return err
	})
	t.check(ctx, "SIGTERM ends it within the grace time", 2*t.cfg.StopGrace+time.Second, func(ctx context.Context) error {
		began := time.Now()
		p.kill(errStopped)
		return within(ctx, p, began, t.cfg.StopGrace)
	})
	return nil
}

// gather gets raw signatures: known ones, or samples of the child where it needs more than are known.
func (t *conformance) gather(ctx context.Context, p *process) error {
	n := 2
	if p.caps.MinInputs > 1 && p.caps.MaxChildren > 0 {
		n = p.caps.MinInputs + 1 // a child alone takes MinInputs of them
	}
	if m, ok := materialOf(p.caps.Scheme); ok && n <= len(m.raw) {
		t.job = Job{Message: m.claim.Message, Epoch: m.claim.Epoch, Raw: m.raw}
		return nil
	}
	if !t.check(ctx, fmt.Sprintf("%d samples", n), 4*t.cfg.HelloTimeout, func(ctx context.Context) (err error) {
		t.job, err = p.sampleJob(ctx, &p.caps, n, 1)
		return err
	}) {
		return fmt.Errorf("%w: no signatures to go on with", errNotConforming)
	}
	return nil
}

// sub is the job over some of the raw signatures and children.
func (t *conformance) sub(raw []Raw, children ...Child) Job {
	return Job{Message: t.job.Message, Epoch: t.job.Epoch, Raw: raw, Children: children}
}

func (t *conformance) prove(ctx context.Context, p *process, job Job) (result, error) {
	c, err := p.begin(ctx, kindProve, appendJob(newBody(0), t.jobTimeout(), &job), 0, false)
	if err != nil {
		return result{}, err
	}
	f, err := p.wait(ctx, c)
	if err != nil {
		return result{}, err
	}
	if f.kind == kindError {
		return result{}, refusal(f)
	}
	r, err := decodeResult(f.body)
	switch {
	case err != nil:
		return result{}, err
	case len(r.proof) == 0 || len(r.proof) > p.caps.ProofBytesMax:
		return result{}, fmt.Errorf("a proof of %d bytes, it said at most %d", len(r.proof), p.caps.ProofBytesMax)
	}
	select {
	case <-c.started:
	default:
		return result{}, errors.New("no started frame before the result")
	}
	return r, r.matches(job.Claim())
}

func (t *conformance) children(ctx context.Context, p *process) {
	const name = "a job of one raw signature and one child"
	if p.caps.MaxChildren == 0 {
		t.skip(name, "it takes no children")
		return
	}
	// The first MinInputs signatures, at least one, become the child, the next one stays raw.
	n := max(1, p.caps.MinInputs)
	leaf := t.sub(t.job.Raw[:n])
	child := Child{Claim: leaf.Claim(), Proof: t.proof}
	if n != 2 {
		if !t.check(ctx, fmt.Sprintf("a job of %d raw signatures", n), t.jobTimeout(), func(ctx context.Context) error {
			r, err := t.prove(ctx, p, leaf)
			child.Proof = bytes.Clone(r.proof)
			return err
		}) {
			return
		}
	}
	t.check(ctx, name, t.jobTimeout(), func(ctx context.Context) error {
		_, err := t.prove(ctx, p, t.sub(t.job.Raw[n:n+1], child))
		return err
	})
	if p.caps.ChildrenMayOverlap {
		t.check(ctx, "a child that covers the raw signature", t.jobTimeout(), func(ctx context.Context) error {
			_, err := t.prove(ctx, p, t.sub(t.job.Raw[:n+1], child))
			return err
		})
	}
	t.check(ctx, "a child whose proof is altered is refused and named", t.jobTimeout(), func(ctx context.Context) error {
		bad := Child{Claim: child.Claim, Proof: flipBit(child.Proof, len(child.Proof)/2)}
		_, err := t.prove(ctx, p, t.sub(t.job.Raw[n:n+1], bad))
		return refused(err, 0, CodeBadChild)
	})
	t.check(ctx, "a child with a claim that it does not make is refused and named", t.jobTimeout(), func(ctx context.Context) error {
		other := Child{Claim: child.Claim, Proof: child.Proof}
		other.Claim.SignerSet = flipBit(child.Claim.SignerSet, len(child.Claim.SignerSet)-1)
		_, err := t.prove(ctx, p, t.sub(t.job.Raw[n:n+1], other))
		return refused(err, 0, CodeBadChild)
	})
}

// badJobs sends what must be refused. Everything goes past the checks of this side, to the child itself.
func (t *conformance) badJobs(ctx context.Context, p *process) {
	refuse := func(name string, job Job, index int, codes ...Code) {
		t.check(ctx, name, t.jobTimeout(), func(ctx context.Context) error {
			_, err := t.prove(ctx, p, job)
			return refused(err, index, codes...)
		})
	}
	size := p.caps.SignatureSize
	altered := t.sub(slices.Clone(t.job.Raw[:2]))
	altered.Raw[1].Signature = flipBit(altered.Raw[1].Signature, size/2)
	refuse("the second of two signatures altered: refused and named", altered, 1, CodeBadSignature)
	swapped := t.sub(slices.Clone(t.job.Raw[:2]))
	swapped.Raw[0].PublicKey, swapped.Raw[1].PublicKey = t.job.Raw[1].PublicKey, t.job.Raw[0].PublicKey
	refuse("two signatures under each other's key: refused and named", swapped, 0, CodeBadSignature)
	other := t.sub(t.job.Raw[:2])
	other.Message[0] ^= 1
	refuse("signatures of another message: refused and named", other, 0, CodeBadSignature)
	late := t.sub(t.job.Raw[:2])
	late.Epoch++
	refuse("signatures of another epoch: refused and named", late, 0, CodeBadSignature)
	short := t.sub(slices.Clone(t.job.Raw[:2]))
	for i := range short.Raw {
		short.Raw[i].Signature = short.Raw[i].Signature[:size-1]
	}
	refuse("signatures one byte short: refused", short, -1, CodeBadLength, CodeBadSignature)
	refuse("no inputs: refused", t.sub(nil), -1, CodeTooFewInputs)
	if n := p.caps.MaxRaw + 1; n*(PublicKeySize+size) < int(limits[kindProve])/2 {
		refuse("one raw signature more than it takes: refused", t.sub(slices.Repeat(t.job.Raw[:1], n)), -1, CodeTooManyRaw, CodeOverlap)
	}
	two := t.sub(t.job.Raw[:2])
	child := Child{Claim: two.Claim(), Proof: t.proof}
	if n := p.caps.MaxChildren + 1; n <= 64 {
		refuse("one child more than it takes: refused", t.sub(nil, slices.Repeat([]Child{child}, n)...), -1, CodeTooManyChildren)
	}
	t.check(ctx, "a check asked of a prover is answered or refused", t.cfg.CallTimeout+t.jobTimeout(), func(ctx context.Context) error {
		req := request{claim: child.Claim, proof: t.proof}
		r, err := p.request(ctx, kindVerify, req.append(newBody(0)))
		if err != nil {
			return refused(err, -1, CodeUnsupported)
		}
		return r.matches(child.Claim)
	})
	t.check(ctx, "a body that does not decode is refused", t.jobTimeout(), func(ctx context.Context) error {
		_, err := p.request(ctx, kindProve, append(newBody(100), bytes.Repeat([]byte{0xff}, 100)...))
		return refused(err, -1, CodeBadFrame)
	})
}

// ping checks that the answer holds the same bytes.
func (p *process) ping(ctx context.Context, text string) error {
	f, err := p.roundTrip(ctx, kindPing, append(newBody(len(text)), text...), 0)
	if err != nil {
		return err
	}
	if string(f.body) != text {
		return fmt.Errorf("%w: pong %q", ErrProtocol, f.body)
	}
	return nil
}

// within waits for the end of a process and checks how long it took.
func within(ctx context.Context, p *process, began time.Time, limit time.Duration) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if took := time.Since(began); took > limit {
		return fmt.Errorf("it took %s, limit %s", took.Round(time.Millisecond), limit)
	}
	return nil
}
