package bundle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"aggnode/prover"
	"aggnode/xmss"
)

const (
	magic      = "aggb"
	version    = 1
	headerSize = 16
	// proofMax is the length in bytes of the proof field of the network's containers, 512 KiB.
	proofMax = 524288
	// maxChildren is a bound on the work of one job only: merging costs a copy.
	maxChildren = 16
	// batchSize is how many signatures are checked between two looks at ctx: about 2 ms of blake2s, 6 ms of keccak.
	batchSize = 64
)

// schemeByte is the scheme in the header; the numbers are this format's own.
func schemeByte(s xmss.Scheme) byte {
	if s == xmss.Keccak {
		return 2
	}
	return 1
}

// Backend makes and checks bundles of one scheme. Immutable and safe for concurrent use.
type Backend struct {
	scheme xmss.Scheme
	caps   prover.Capabilities
}

// New makes the backend of a scheme.
func New(scheme xmss.Scheme) *Backend {
	size := scheme.SignatureSize()
	most := (proofMax - headerSize) / size
	return &Backend{scheme: scheme, caps: prover.Capabilities{
		Backend: "bundle", Revision: fmt.Sprintf("bundle %d", version), Scheme: scheme.String(),
		PublicKeySize: xmss.PublicKeySize, SignatureSize: size,
		MaxChildren: maxChildren, MaxRaw: most, MaxSigners: most, MinInputs: 1, ProofBytesMax: proofMax,
		ChildrenMayOverlap: true, ProveMemory: 2 * proofMax, Threads: 1,
	}}
}

// Ready is always true.
func (b *Backend) Ready() bool { return true }

// WaitReady returns at once.
func (b *Backend) WaitReady(context.Context) error { return nil }

// Capabilities returns the limits of the format; always true.
func (b *Backend) Capabilities() (prover.Capabilities, bool) { return b.caps, true }

// Prove puts the signatures of job into a bundle, those of its children included, after checking every one. Errors:
// *prover.RefusedError, where Index names the raw signature or child at fault; otherwise ctx.Err() under
// prover.ErrUnavailable. Cost: the check of each signature.
func (b *Backend) Prove(ctx context.Context, job prover.Job) (prover.Result, error) {
	began := time.Now()
	switch {
	case len(job.Raw) > b.caps.MaxRaw:
		return prover.Result{}, refuse(prover.CodeTooManyRaw, -1, "%d raw signatures, limit %d", len(job.Raw), b.caps.MaxRaw)
	case len(job.Children) > b.caps.MaxChildren:
		return prover.Result{}, refuse(prover.CodeTooManyChildren, -1, "%d children, limit %d", len(job.Children), b.caps.MaxChildren)
	case len(job.Raw)+len(job.Children) == 0:
		return prover.Result{}, refuse(prover.CodeTooFewInputs, -1, "no inputs")
	}
	for i := range job.Raw {
		if len(job.Raw[i].PublicKey) != xmss.PublicKeySize || len(job.Raw[i].Signature) != b.caps.SignatureSize {
			return prover.Result{}, refuse(prover.CodeBadLength, i, "key of %d and signature of %d bytes, must be %d and %d",
				len(job.Raw[i].PublicKey), len(job.Raw[i].Signature), xmss.PublicKeySize, b.caps.SignatureSize)
		}
	}
	bad, err := b.checkAll(ctx, job.Epoch, job.Message, job.Raw)
	if err != nil {
		return prover.Result{}, err
	}
	if bad >= 0 {
		return prover.Result{}, refuse(prover.CodeBadSignature, bad, "raw signature %d does not verify", bad)
	}
	// Raw signatures go in first, so of two for one key the raw one stays: the choice does not change the claim.
	signatures := make(map[[xmss.PublicKeySize]byte][]byte, len(job.Raw))
	for i := range job.Raw {
		key := [xmss.PublicKeySize]byte(job.Raw[i].PublicKey)
		if signatures[key] == nil {
			signatures[key] = job.Raw[i].Signature
		}
	}
	for i := range job.Children {
		child := &job.Children[i]
		if child.Claim.Message != job.Message || child.Claim.Epoch != job.Epoch {
			return prover.Result{}, refuse(prover.CodeBadChild, i, "a child over another message or epoch")
		}
		raws, err := b.open(child.Claim, child.Proof)
		if err != nil {
			return prover.Result{}, refuse(prover.CodeBadChild, i, "%v", err)
		}
		bad, err := b.checkAll(ctx, job.Epoch, job.Message, raws)
		if err != nil {
			return prover.Result{}, err
		}
		if bad >= 0 {
			return prover.Result{}, refuse(prover.CodeBadChild, i, "signature %d does not verify", bad)
		}
		for _, r := range raws {
			if key := [xmss.PublicKeySize]byte(r.PublicKey); signatures[key] == nil {
				signatures[key] = r.Signature
			}
		}
	}
	claim := job.Claim()
	n := claim.Signers()
	if n > b.caps.MaxSigners {
		return prover.Result{}, refuse(prover.CodeTooManyRaw, -1, "%d signers, limit %d", n, b.caps.MaxSigners)
	}
	proof := make([]byte, 0, headerSize+n*b.caps.SignatureSize)
	proof = append(proof, magic...)
	proof = append(proof, version, schemeByte(b.scheme), 0, 0)
	proof = binary.LittleEndian.AppendUint32(proof, job.Epoch)
	proof = binary.LittleEndian.AppendUint32(proof, uint32(n))
	for i := range n {
		proof = append(proof, signatures[[xmss.PublicKeySize]byte(claim.Key(i))]...)
	}
	wall := time.Since(began)
	return prover.Result{Proof: proof, Wall: wall, CPU: wall}, nil // one goroutine: wall time bounds its CPU
}

// Verify checks every signature of proof against claim on the calling goroutine. Errors as prover.Client.Verify; ctx is
// looked at between batches.
func (b *Backend) Verify(ctx context.Context, claim prover.Claim, proof []byte) error {
	raws, err := b.open(claim, proof)
	if err != nil {
		return err
	}
	bad, err := b.checkAll(ctx, claim.Epoch, claim.Message, raws)
	if err != nil {
		return err
	}
	if bad >= 0 {
		return refuse(prover.CodeInvalidProof, bad, "signature %d does not verify", bad)
	}
	return nil
}

// Inspect is refused: a bundle does not hold its keys.
func (b *Backend) Inspect(context.Context, []byte) ([]prover.Entry, error) {
	return nil, refuse(prover.CodeUnsupported, -1, "a bundle does not list its claims")
}

// open takes a proof apart and pairs its signatures, as views, with the keys of the claim. The signatures are not
// checked. Every fault is of the bytes.
func (b *Backend) open(claim prover.Claim, proof []byte) ([]prover.Raw, error) {
	size := b.caps.SignatureSize
	switch {
	case len(proof) < headerSize || len(proof) > proofMax:
		return nil, refuse(prover.CodeInvalidProof, -1, "a bundle of %d bytes, must be %d to %d", len(proof), headerSize, proofMax)
	case !bytes.Equal(proof[:4], []byte(magic)) || proof[4] != version || proof[6]|proof[7] != 0:
		return nil, refuse(prover.CodeInvalidProof, -1, "no bundle of version %d", version)
	case proof[5] != schemeByte(b.scheme):
		return nil, refuse(prover.CodeInvalidProof, -1, "a bundle of scheme number %d, must be %d", proof[5], schemeByte(b.scheme))
	}
	epoch, n := binary.LittleEndian.Uint32(proof[8:]), binary.LittleEndian.Uint32(proof[12:])
	switch {
	case int64(len(proof)) != headerSize+int64(n)*int64(size):
		return nil, refuse(prover.CodeInvalidProof, -1, "%d bytes for %d signatures", len(proof), n)
	case epoch != claim.Epoch || int(n) != claim.Signers() || n == 0:
		return nil, fmt.Errorf("%w: epoch %d and %d signers, wanted %d and %d", prover.ErrClaimMismatch, epoch, n, claim.Epoch, claim.Signers())
	case len(claim.SignerSet)%xmss.PublicKeySize != 0:
		return nil, fmt.Errorf("%w: a signer set of %d bytes", prover.ErrClaimMismatch, len(claim.SignerSet))
	}
	raws := make([]prover.Raw, n)
	for i := range raws {
		if i > 0 && bytes.Compare(claim.Key(i-1), claim.Key(i)) >= 0 {
			return nil, fmt.Errorf("%w: the wanted signer set is not in order", prover.ErrClaimMismatch)
		}
		at := headerSize + i*size
		raws[i] = prover.Raw{PublicKey: claim.Key(i), Signature: proof[at : at+size : at+size]}
	}
	return raws, nil
}

// checkAll returns the position of the first signature that does not verify, -1 if all do.
func (b *Backend) checkAll(ctx context.Context, epoch uint32, message [xmss.MessageSize]byte, raws []prover.Raw) (int, error) {
	var checks [batchSize]xmss.Check
	var answers [batchSize]xmss.Answer
	for start := 0; start < len(raws); start += batchSize {
		if err := ctx.Err(); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: %w", prover.ErrTimeout, err)
			}
			return -1, fmt.Errorf("%w: %w", prover.ErrUnavailable, err)
		}
		batch := raws[start:min(start+batchSize, len(raws))]
		for i, r := range batch {
			checks[i] = xmss.Check{PublicKey: xmss.PublicKey(r.PublicKey), Epoch: epoch, Message: message, Signature: r.Signature}
		}
		b.scheme.VerifyBatch(checks[:len(batch)], answers[:len(batch)])
		for i := range batch {
			if answers[i].Err != nil {
				return start + i, nil
			}
		}
	}
	return -1, nil
}

func refuse(code prover.Code, index int, format string, args ...any) error {
	return &prover.RefusedError{Code: code, Index: index, Text: fmt.Sprintf(format, args...)}
}
