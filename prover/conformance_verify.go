package prover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// conformanceCalls is how many checks the verifier of the test serves at once.
const conformanceCalls = 4

// verifierSession tests a child of the verify role.
func (t *conformance) verifierSession(ctx context.Context) error {
	p, err := t.start(ctx, RoleVerify, conformanceCalls)
	if err != nil {
		return err
	}
	defer t.end(p)
	two := t.sub(t.job.Raw[:2])
	claim := two.Claim()
	verify := func(ctx context.Context, c Claim, proof []byte) error {
		req := request{deadline: t.cfg.CallTimeout, claim: c, proof: proof}
		r, err := p.request(ctx, kindVerify, req.append(newBody(0)))
		if err != nil {
			return err
		}
		return r.matches(c)
	}
	// A proof that makes another claim may be refused by the child or told apart by what it lists.
	notAccepted := func(err error) error {
		if errors.Is(err, ErrClaimMismatch) {
			return nil
		}
		return refused(err, -1, CodeInvalidProof)
	}
	long := 10 * t.cfg.CallTimeout

	t.check(ctx, "a sound proof is accepted", long, func(ctx context.Context) error { return verify(ctx, claim, t.proof) })
	const places = 24
	place := func(i int) int { return i * (len(t.proof) - 1) / (places - 1) }
	t.check(ctx, "altered proofs are refused", 4*long, func(ctx context.Context) error {
		for i := range places {
			at := place(i)
			if err := notAccepted(verify(ctx, claim, flipBit(t.proof, at))); err != nil {
				return fmt.Errorf("bit 0 of byte %d changed: %w", at, err)
			}
		}
		return nil
	})
	t.check(ctx, "proofs of 0 to 64 bytes, one byte short, one byte more and all zero are refused", 4*long, func(ctx context.Context) error {
		bad := [][]byte{t.proof[:len(t.proof)-1], append(bytes.Clone(t.proof), 0), make([]byte, len(t.proof))}
		for n := range 65 {
			bad = append(bad, t.proof[:min(n, len(t.proof)-1)], make([]byte, n))
		}
		for _, b := range bad {
			if err := notAccepted(verify(ctx, claim, b)); err != nil {
				return fmt.Errorf("proof of %d bytes: %w", len(b), err)
			}
		}
		return nil
	})
	t.check(ctx, "a sound proof for other claims is not accepted", 2*long, func(ctx context.Context) error {
		fewer, more, other := claim, claim, claim
		fewer.SignerSet = claim.SignerSet[:PublicKeySize]
		more.SignerSet = NewSignerSet([][]byte{claim.Key(0), claim.Key(1), bytes.Repeat([]byte{7}, PublicKeySize)})
		other.Message[31] ^= 1
		for name, c := range map[string]Claim{"one key less": fewer, "one key more": more, "another message": other} {
			if err := notAccepted(verify(ctx, c, t.proof)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	t.check(ctx, "inspect lists the claims or is refused as unsupported", long, func(ctx context.Context) error {
		req := request{proof: t.proof}
		r, err := p.request(ctx, kindInspect, req.append(newBody(0)))
		if !p.caps.ClaimsInProof {
			return refused(err, -1, CodeUnsupported)
		}
		if err != nil {
			return err
		}
		return r.matches(claim)
	})
	t.check(ctx, fmt.Sprintf("%d checks at once, sound and altered", 4*conformanceCalls), 4*long, func(ctx context.Context) error {
		var wg sync.WaitGroup
		errs := make([]error, 4*conformanceCalls)
		for i := range errs {
			wg.Go(func() {
				if i%2 == 0 {
					errs[i] = verify(ctx, claim, t.proof)
					return
				}
				at := place(i) // where it was refused alone
				if err := notAccepted(verify(ctx, claim, flipBit(t.proof, at))); err != nil {
					errs[i] = fmt.Errorf("bit 0 of byte %d of %d changed: %w", at, len(t.proof), err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	t.check(ctx, "a job asked of a verifier is refused", long, func(ctx context.Context) error {
		_, err := p.request(ctx, kindProve, appendJob(newBody(0), 0, &two))
		return refused(err, -1, CodeUnsupported)
	})
	t.check(ctx, "a body that does not decode is refused", long, func(ctx context.Context) error {
		_, err := p.request(ctx, kindVerify, append(newBody(100), bytes.Repeat([]byte{0xff}, 100)...))
		return refused(err, -1, CodeBadFrame)
	})
	t.check(ctx, "bye is answered, and ends it with code 0", 2*t.cfg.StopGrace+time.Second, func(ctx context.Context) error {
		if _, err := p.roundTrip(ctx, kindBye, newBody(0), 0); err != nil {
			return err
		}
		if err := within(ctx, p, time.Now(), t.cfg.StopGrace); err != nil {
			return err
		}
		var crash *CrashError
		if err := p.cause(); !errors.As(err, &crash) || crash.Signal != 0 || crash.Exit != 0 {
			return fmt.Errorf("it ended otherwise: %w", err)
		}
		return nil
	})
	return nil
}

// endOfInput tests that a child does not outlive its input, not even in the middle of its set-up: it ends by itself, at the
// latest when native code that can not be interrupted is through (py_lean_multisig 0.4.0 takes 1 to 11 s for its keys and lets
// no other thread of Python run meanwhile). A node does not wait for that; it kills the child after Config.StopGrace.
func (t *conformance) endOfInput(ctx context.Context) error {
	cfg := t.cfg
	cfg.Role, cfg.Calls = RoleVerify, 1
	cfg.StopGrace = cfg.HelloTimeout + time.Second // killed after the check has failed
	p, err := startProcess(ctx, t.forker, &cfg)
	if err != nil {
		return err
	}
	defer t.end(p)
	h := hello{versionMin: protocolVersion, versionMax: protocolVersion, role: RoleVerify, calls: 1, progress: progressEvery}
	c, err := p.begin(ctx, kindHello, h.append(newBody(0)), 0, false)
	if err != nil {
		return err
	}
	t.check(ctx, "the end of its input ends it during set-up", t.cfg.HelloTimeout, func(ctx context.Context) error {
		select {
		case <-c.started:
		case <-p.dying:
			return p.cause()
		case <-ctx.Done():
			return ctx.Err()
		}
		p.shutdown()
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("it does not end by itself: %w", ctx.Err())
		}
	})
	return nil
}

// brokenFrames sends headers that are not the protocol to children that have not even had a hello.
func (t *conformance) brokenFrames(ctx context.Context) error {
	header := func(size uint32, k kind, reserved byte) []byte {
		b := newBody(0)
		seal(b, k, 1)
		binary.LittleEndian.PutUint32(b, size)
		b[6] = reserved
		return b
	}
	for _, bad := range []struct {
		name  string
		bytes []byte
	}{
		{"a frame of 4 GiB ends it", header(1<<32-1, kindHello, 0)},
		{"a frame of a kind that does not exist ends it", header(0, 0x7f, 0)},
		{"a frame with reserved bytes ends it", header(0, kindPing, 1)},
	} {
		cfg := t.cfg
		cfg.Role, cfg.Calls = RoleVerify, 1
		p, err := startProcess(ctx, t.forker, &cfg)
		if err != nil {
			return err
		}
		t.check(ctx, bad.name, t.cfg.HelloTimeout, func(ctx context.Context) error {
			select {
			case p.outbox <- bad.bytes:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-p.done:
			case <-ctx.Done():
				return errors.New("it went on waiting")
			}
			var crash *CrashError
			if err := p.cause(); !errors.As(err, &crash) || crash.Signal != 0 {
				return fmt.Errorf("it did not exit by itself: %w", err)
			}
			return nil
		})
		t.end(p)
	}
	return nil
}

// clientSession tests what a node does: a job past its deadline is killed, and the next one is served.
func (t *conformance) clientSession(ctx context.Context) error {
	cfg := t.cfg
	cfg.Role, cfg.Calls, cfg.Registerer = RoleProve, 1, nil
	c, err := New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { cancel(); <-done }()

	job, pid := t.sub(t.job.Raw[:2]), 0
	const name = "a job past its deadline is killed and leaves no process"
	deadline := max(t.report.Capabilities.HelloProve/10, time.Millisecond)
	if t.report.Capabilities.HelloProve < 10*time.Millisecond {
		t.skip(name, "its jobs are done before a deadline can pass")
		return nil
	}
	t.check(ctx, name, 2*t.cfg.HelloTimeout, func(ctx context.Context) error {
		if err := c.WaitReady(ctx); err != nil {
			return err
		}
		pid = c.Stats().PID
		short, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		switch _, err := c.Prove(short, job); {
		case err == nil:
			return fmt.Errorf("a job was done in %s, at hello it took %s", deadline, t.report.Capabilities.HelloProve)
		case !errors.Is(err, ErrTimeout) || !errors.Is(err, ErrUnavailable):
			return fmt.Errorf("the job ended with: %w", err)
		}
		for syscall.Kill(-pid, 0) == nil {
			if waitFor(ctx.Done(), 10*time.Millisecond) {
				return fmt.Errorf("process group %d is still there", pid)
			}
		}
		return nil
	})
	t.check(ctx, "the next job is served by a new process", 2*t.cfg.HelloTimeout, func(ctx context.Context) error {
		if err := c.WaitReady(ctx); err != nil {
			return err
		}
		if now := c.Stats().PID; now == pid {
			return fmt.Errorf("the same process %d", now)
		}
		_, err := c.Prove(ctx, job)
		return err
	})
	return nil
}
