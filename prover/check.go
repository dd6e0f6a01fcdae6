package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Verdict is what a check cost inside the child that made it: its wall time and the CPU time of its thread. The
// difference is what the child waited for a processor. What the call took beyond Wall is transfer and waiting. Both are
// zero where the child gave no result.
type Verdict struct{ Wall, CPU time.Duration }

// Verify checks that proof makes exactly the given claim: no key more or less, no other message, nothing of another
// kind. nil means that it does. ErrBadProof and ErrClaimMismatch are about the bytes (a *RefusedError of another code
// is not); ErrUnavailable says that nothing was learnt. Cost: about 15 ms (lean-pq 0.7.0). When ctx ends first the call
// goes on inside the child, under CallTimeout.
func (c *Client) Verify(ctx context.Context, claim Claim, proof []byte) error {
	_, err := c.Check(ctx, claim, proof)
	return err
}

// Check is Verify with what it cost in the child.
func (c *Client) Check(ctx context.Context, claim Claim, proof []byte) (Verdict, error) {
	if !claim.isWellFormed() {
		return Verdict{}, fmt.Errorf("%w: the wanted signer set is empty, unsorted or cut", ErrClaimMismatch)
	}
	r, err := c.check(ctx, "verify", kindVerify, claim, proof, func(r *result) error { return r.matches(claim) })
	r.frame.release()
	return Verdict{Wall: r.wall, CPU: r.cpu}, err
}

// Inspect checks that proof is sound and lists what it claims, in the proof's order. It works where
// Capabilities.ClaimsInProof says so. Errors as Verify.
func (c *Client) Inspect(ctx context.Context, proof []byte) ([]Entry, error) {
	r, err := c.check(ctx, "inspect", kindInspect, Claim{}, proof, func(r *result) error {
		if r.foreign != 0 {
			return fmt.Errorf("%w: %d claims of another kind", ErrClaimMismatch, r.foreign)
		}
		return nil
	})
	defer r.frame.release()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(r.entries)/entrySize)
	for i := range entries {
		e := r.entries[i*entrySize : (i+1)*entrySize]
		entries[i] = Entry{PublicKey: bytes.Clone(e[:PublicKeySize])}
		copy(entries[i].Message[:], e[PublicKeySize:])
	}
	return entries, nil
}

const (
	// checkSends is how often a check is sent at most: beside a culprit, then alone, and once more should a check that
	// its caller left behind have been in the child that second time.
	checkSends = 3
	// checkTries bounds all rounds, those included in which the child died before the check was sent.
	checkTries = 8
	// gateSize is more than the checks that can be in flight: a check that must be alone takes all of it.
	gateSize = 1 << 20
)

// check asks one child and, where that child died through no proven fault of these bytes, another one. So a proof that
// hangs or crashes a verifier takes no honest check with it: after a crash with several checks in flight each of them
// is repeated alone, and the one that ends a child alone is the culprit.
func (c *Client) check(ctx context.Context, name string, k kind, claim Claim, proof []byte, judge func(*result) error) (result, error) {
	began := time.Now()
	c.metrics.running.Inc()
	defer c.metrics.running.Dec()
	req := request{deadline: c.cfg.CallTimeout, claim: claim, proof: proof}
	r, again, err := c.checkAmong(ctx, k, &req, 1)
	sends := 0
	for try := 1; again != retryNo && try < checkTries && ctx.Err() == nil; try++ {
		if again != retryUnsent {
			if sends++; sends == checkSends {
				break
			}
		}
		weight := int64(1)
		if again == retryAlone {
			weight = gateSize
		}
		c.metrics.retries.Inc()
		r, again, err = c.checkAmong(ctx, k, &req, weight)
	}
	if err == nil {
		err = judge(&r)
	}
	c.metrics.observe(name, time.Since(began), r.cpu, err)
	return r, err
}

// checkAmong is checkOnce among others, or alone where weight is gateSize.
func (c *Client) checkAmong(ctx context.Context, k kind, req *request, weight int64) (result, retry, error) {
	if err := c.gate.Acquire(ctx, weight); err != nil {
		return result{}, retryNo, unavailable(ctxError(ctx))
	}
	defer c.gate.Release(weight)
	return c.checkOnce(ctx, k, req)
}

type retry uint8

const (
	retryNo     retry = iota // answered, or this call is at fault
	retryUnsent              // the child died before the check was sent
	retryNow                 // another call was at fault
	retryAlone               // several calls were in flight when the child died
)

func (c *Client) checkOnce(ctx context.Context, k kind, req *request) (result, retry, error) {
	p, err := c.awaitServing(ctx)
	if err != nil {
		return result{}, retryNo, err
	}
	switch {
	case len(req.proof) == 0 || len(req.proof) > p.caps.ProofBytesMax:
		return result{}, retryNo, &RefusedError{
			CodeInvalidProof, -1,
			fmt.Sprintf("a proof of %d bytes, must be 1 to %d", len(req.proof), p.caps.ProofBytesMax),
		}
	case k == kindInspect && !p.caps.ClaimsInProof:
		return result{}, retryNo, &RefusedError{CodeUnsupported, -1, "proofs of " + p.caps.Backend + " do not list their claims"}
	case minClaimSize+8+len(req.claim.SignerSet)+len(req.proof) > int(limits[k]):
		return result{}, retryNo, &RefusedError{
			CodeBadLength, -1,
			fmt.Sprintf("a signer set of %d keys is too long", req.claim.Signers()),
		}
	}
	body := req.append(p.buffers.newBody(minClaimSize + len(req.claim.SignerSet) + len(req.proof) + 8))
	call, err := p.begin(ctx, k, body, c.cfg.CallTimeout, true)
	if err != nil {
		if ctx.Err() != nil {
			return result{}, retryNo, unavailable(ctxError(ctx))
		}
		return result{}, p.blame(nil), unavailable(err)
	}
	f, err := p.wait(ctx, call)
	if err != nil {
		if ctx.Err() != nil && !p.isDying() {
			return result{}, retryNo, unavailable(ctxError(ctx))
		}
		return result{}, p.blame(call), unavailable(err)
	}
	if f.kind == kindError {
		return result{}, retryNo, p.answered(refusal(f))
	}
	r, err := decodeResult(f.body)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
		p.kill(err)
		return result{}, retryNo, unavailable(err)
	}
	p.served.Store(true)
	r.frame = f
	return r, retryNo, nil
}

// blame decides whether a call that the child did not answer is asked again. A nil call was never sent.
func (p *process) blame(c *call) retry {
	cause := p.cause()
	if errors.Is(cause, errStopped) {
		return retryNo
	}
	var timeout *callTimeoutError
	switch {
	case c == nil:
		return retryUnsent
	case errors.As(cause, &timeout) && timeout.id == c.id:
		return retryNo
	case errors.As(cause, &timeout):
		return retryNow
	case p.callsLost() > 1:
		return retryAlone
	}
	return retryNo
}
