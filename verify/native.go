package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aggnode/leanproof"
	"aggnode/prover"
)

// Native checks the proofs of lean-pq in this process: 2 to 4 ms instead of the child's 15 to 28 (Intel Xeon with AVX-512,
// 2026-12). It answers like a verifier child of the same version, but for one thing: claims are compared before the proof is
// checked, so a proof that is unsound and makes other claims is an ErrClaimMismatch here and an ErrBadProof there. Immutable;
// safe for concurrent use.
type Native struct {
	proofs    *leanproof.Verifier
	threadCPU func() time.Duration
	compute   func(ctx context.Context, work func()) error
}

// NewNative loads the verification key and runs the self-test: some 50 ms with carry-less multiplication, seconds without.
// compute runs work that computes for milliseconds and returns when it has ended, or with an error when it was not run, as
// scheduler.Scheduler.Compute does; nil runs it on the goroutine that asks. threadCPU reads the CPU time of the calling thread;
// nil leaves the CPU time of verdicts at zero. An error says that this machine or build can not check natively, or that ctx
// has ended.
func NewNative(
	ctx context.Context, compute func(ctx context.Context, work func()) error, threadCPU func() time.Duration,
) (*Native, error) {
	proofs, err := leanproof.New()
	if err != nil {
		return nil, err
	}
	if err := proofs.SelfTest(ctx); err != nil {
		return nil, err
	}
	if threadCPU == nil {
		threadCPU = func() time.Duration { return 0 }
	}
	if compute == nil {
		compute = func(_ context.Context, work func()) error { work(); return nil }
	}
	return &Native{proofs: proofs, threadCPU: threadCPU, compute: compute}, nil
}

// Prover names the version of the prover whose proofs can be checked.
func (n *Native) Prover() string { return n.proofs.Prover() }

// Knows reports whether a prover that says this of itself at hello is that version.
func (n *Native) Knows(revision string) bool {
	return strings.ReplaceAll(revision, "_", "-") == n.proofs.Prover()
}

// Verify is Check without what it cost.
func (n *Native) Verify(ctx context.Context, claim prover.Claim, proof []byte) error {
	_, err := n.Check(ctx, claim, proof)
	return err
}

// Check answers whether proof makes exactly the claim, with the errors of prover.Client.Check. The proof does not show the
// epoch of the claim; the message does. When ctx ends the check stops at its next stage, with prover.ErrUnavailable. The wall
// time of the verdict is without what the check waited for compute; its CPU time means something only if compute locks
// goroutines to threads.
func (n *Native) Check(ctx context.Context, claim prover.Claim, proof []byte) (prover.Verdict, error) {
	v, errs := n.CheckBatch(ctx, []ProofCheck{{Claim: claim, Proof: proof}})
	return v, errs[0]
}

// CheckBatch is Check of several proofs, which share a part of the work: of eight each takes four fifths of the time. The
// errors are those of the checks, in order; the verdict is what all of them cost.
func (n *Native) CheckBatch(ctx context.Context, checks []ProofCheck) (v prover.Verdict, errs []error) {
	err := n.compute(ctx, func() {
		began, cpu := time.Now(), n.threadCPU()
		items := make([]leanproof.Item, len(checks))
		for i := range checks {
			items[i] = leanproof.Item{Proof: checks[i].Proof, Want: claims(checks[i].Claim)}
		}
		errs = n.proofs.VerifyBatch(ctx, items)
		v = prover.Verdict{Wall: time.Since(began), CPU: n.threadCPU() - cpu}
	})
	if err != nil { // it was not run
		errs = slices.Repeat([]error{err}, len(checks))
	}
	for i := range errs {
		errs[i] = childError(errs[i])
	}
	return v, errs
}

// claims lists a claim as a proof does: one line for each key. Both orders are those of the bytes. A signer set that is cut
// becomes no claims, which no proof makes.
func claims(c prover.Claim) leanproof.Claims {
	if len(c.SignerSet)%prover.PublicKeySize != 0 {
		return leanproof.Claims{}
	}
	out := make([]leanproof.Claim, c.Signers())
	for i := range out {
		out[i] = leanproof.Claim{PublicKey: [32]byte(c.Key(i)), Message: c.Message}
	}
	return leanproof.Claims{XMSS: out}
}

// childError turns an error of leanproof into what a verifier child would answer. For a child claims of another kind are
// other claims than expected.
func childError(err error) error {
	var refusal leanproof.Refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refusal): // ctx has ended
		return fmt.Errorf("%w: %w", prover.ErrUnavailable, err)
	case refusal == leanproof.ClaimMismatch || refusal == leanproof.OtherScheme || refusal == leanproof.DataRoots:
		return fmt.Errorf("%w: %w", prover.ErrClaimMismatch, refusal)
	}
	return fmt.Errorf("%w: %w", prover.ErrBadProof, refusal)
}
