package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aggnode/leanproof"
	"aggnode/prover"
)

// Native checks the proofs of lean-pq in this process, on the goroutine of the caller: 2 to 4 ms instead of the child's 15
// to 28 (Intel Xeon with AVX-512, 2026-12). It answers like a verifier child of the same version, but for one thing: claims
// are compared before the proof is checked, so a proof that is unsound and makes other claims is an ErrClaimMismatch here and
// an ErrBadProof there. Immutable; safe for concurrent use.
type Native struct {
	proofs    *leanproof.Verifier
	threadCPU func() time.Duration
}

// NewNative loads the verification key and runs the self-test: some 50 ms with carry-less multiplication, seconds without.
// threadCPU reads the CPU time of the calling thread; nil leaves the CPU time of verdicts at zero. An error says that this
// machine or build can not check natively, or that ctx has ended.
func NewNative(ctx context.Context, threadCPU func() time.Duration) (*Native, error) {
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
	return &Native{proofs: proofs, threadCPU: threadCPU}, nil
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
// epoch of the claim; the message does. When ctx ends the check stops at its next stage, with prover.ErrUnavailable. The CPU
// time of the verdict means something only while the calling goroutine is locked to its thread.
func (n *Native) Check(ctx context.Context, claim prover.Claim, proof []byte) (prover.Verdict, error) {
	began, cpu := time.Now(), n.threadCPU()
	err := n.check(ctx, claim, proof)
	return prover.Verdict{Wall: time.Since(began), CPU: n.threadCPU() - cpu}, err
}

// CheckBatch is Check of several proofs, which share a part of the work: of eight each takes four fifths of the time. The
// errors are those of the checks, in order; the verdict is what all of them cost.
func (n *Native) CheckBatch(ctx context.Context, checks []ProofCheck) (prover.Verdict, []error) {
	began, cpu := time.Now(), n.threadCPU()
	items := make([]leanproof.Item, len(checks))
	for i := range checks {
		items[i] = leanproof.Item{Proof: checks[i].Proof, Want: claims(checks[i].Claim)}
	}
	errs := n.proofs.VerifyBatch(ctx, items)
	for i := range errs {
		errs[i] = childError(errs[i])
	}
	return prover.Verdict{Wall: time.Since(began), CPU: n.threadCPU() - cpu}, errs
}

func (n *Native) check(ctx context.Context, claim prover.Claim, proof []byte) error {
	return childError(n.proofs.Verify(ctx, proof, claims(claim)))
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
