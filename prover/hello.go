package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// progressEvery is the distance of progress frames asked of a child: often enough to see within a second that a job
// moves, at a cost of microseconds.
const progressEvery = 250 * time.Millisecond

// greet runs the hello: versions, role, set-up, agreement on known answers and, for the prove role, one measured job.
// The caller's ctx carries HelloTimeout.
func (p *process) greet(ctx context.Context) (Capabilities, error) {
	expected := expectations(p.cfg.Scheme)
	h := hello{
		versionMin: protocolVersion, versionMax: protocolVersion, role: p.cfg.Role,
		threads: uint16(p.cfg.Threads), calls: uint16(p.cfg.Calls), progress: progressEvery, scheme: p.cfg.Scheme,
	}
	for _, e := range expected {
		h.known = append(h.known, e.known)
	}
	f, err := p.roundTrip(ctx, kindHello, h.append(newBody(0)), 0)
	if err != nil {
		return Capabilities{}, fmt.Errorf("hello: %w", err)
	}
	if f.kind == kindError {
		return Capabilities{}, fmt.Errorf("hello: %w", refusal(f))
	}
	r, err := decodeReady(f.body)
	if err != nil {
		return Capabilities{}, fmt.Errorf("hello: %w: %w", ErrProtocol, err)
	}
	if err := r.check(p.cfg, expected); err != nil {
		return Capabilities{}, fmt.Errorf("hello of %s %s: %w", r.caps.Backend, r.caps.Revision, err)
	}
	if p.cfg.Role == RoleProve {
		wall, err := p.proveKnown(ctx, &r.caps)
		if err != nil {
			return Capabilities{}, fmt.Errorf("prove a known job at hello: %w", err)
		}
		r.caps.HelloProve = wall
	}
	return r.caps, nil
}

// check decides whether the child may serve.
func (r *ready) check(cfg *Config, expected []expectation) error {
	c := &r.caps
	switch {
	case r.version != protocolVersion:
		return &RefusedError{CodeVersion, -1, fmt.Sprintf("it speaks version %d, this program %d", r.version, protocolVersion)}
	case c.Backend == "" || c.Scheme == "":
		return fmt.Errorf("%w: it names no backend or no scheme", ErrProtocol)
	case cfg.Scheme != "" && c.Scheme != cfg.Scheme:
		return fmt.Errorf("%w: it is for %s, wanted %s", ErrSchemeMismatch, c.Scheme, cfg.Scheme)
	case c.PublicKeySize != PublicKeySize:
		return fmt.Errorf("%w: public keys of %d bytes, wanted %d", ErrSchemeMismatch, c.PublicKeySize, PublicKeySize)
	case c.SignatureSize < 1 || c.SignatureSize > maxSignatureSize:
		return fmt.Errorf("%w: signatures of %d bytes", ErrProtocol, c.SignatureSize)
	case c.ProofBytesMax < 1 || c.ProofBytesMax > maxProofSize:
		return fmt.Errorf("%w: proofs of up to %d bytes", ErrProtocol, c.ProofBytesMax)
	case cfg.Role == RoleProve && (c.MaxRaw < 2 || c.MinInputs > c.MaxRaw):
		return fmt.Errorf("%w: jobs of %d to %d raw signatures", ErrProtocol, c.MinInputs, c.MaxRaw)
	case len(r.verdicts) != len(expected):
		return fmt.Errorf("%w: %d verdicts on %d known answers", ErrProtocol, len(r.verdicts), len(expected))
	}
	knowsProof := false
	for i, e := range expected {
		want := verdictSkipped
		if e.scheme == c.Scheme {
			want = verdictRefused
			if e.sound {
				want = verdictAccepted
			}
			knowsProof = knowsProof || e.what == knownProof
			if e.what == knownSignature && e.sound && len(e.bytes) != c.SignatureSize {
				return fmt.Errorf("%w: %s signatures have %d bytes, it says %d", ErrSchemeMismatch, c.Scheme, len(e.bytes), c.SignatureSize)
			}
		}
		if got := r.verdicts[i]; got != want {
			return fmt.Errorf("%w: its verdict on %s of %s is %s, must be %s",
				ErrSchemeMismatch, e.name, e.scheme, verdictName(got), verdictName(want))
		}
	}
	if !knowsProof && (r.ownAccepted == 0 || r.ownRefused == 0) {
		return fmt.Errorf("%w: no known proof for scheme %s, and it checked none of its own (accepted %d, refused %d)",
			ErrSchemeMismatch, c.Scheme, r.ownAccepted, r.ownRefused)
	}
	return nil
}

func verdictName(v uint8) string {
	switch v {
	case verdictSkipped:
		return "skipped"
	case verdictAccepted:
		return "accepted"
	case verdictRefused:
		return "refused"
	}
	return fmt.Sprintf("%d", v)
}

// proveKnown proves a job of known signatures, or of signatures that the child makes where none are known.
func (p *process) proveKnown(ctx context.Context, caps *Capabilities) (time.Duration, error) {
	n := max(2, caps.MinInputs)
	job := Job{}
	if m, ok := materialOf(caps.Scheme); ok && n <= len(m.raw) {
		job = Job{Message: m.claim.Message, Epoch: m.claim.Epoch, Raw: m.raw}
	} else {
		var err error
		if job, err = p.sampleJob(ctx, caps, n, 1); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	r, err := p.request(ctx, kindProve, appendJob(newBody(0), p.cfg.HelloTimeout, &job))
	if err != nil {
		return 0, err
	}
	if len(r.proof) == 0 || len(r.proof) > caps.ProofBytesMax {
		return 0, fmt.Errorf("%w: a proof of %d bytes", ErrProtocol, len(r.proof))
	}
	return time.Since(began), r.matches(job.Claim())
}

// sampleJob has the child sign one message with n throw-away keys.
func (p *process) sampleJob(ctx context.Context, caps *Capabilities, n int, epoch uint32) (Job, error) {
	if !caps.Samples {
		return Job{}, &RefusedError{CodeUnsupported, -1, "no known signatures of scheme " + caps.Scheme + ", and it makes no samples"}
	}
	req := sampleRequest{count: uint32(n), epoch: epoch}
	copy(req.message[:], "aggnode: message of a sample job")
	f, err := p.roundTrip(ctx, kindSample, req.append(newBody(0)), 0)
	if err != nil {
		return Job{}, err
	}
	if f.kind == kindError {
		return Job{}, refusal(f)
	}
	raws, err := decodeSamples(f.body)
	if err != nil {
		return Job{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if len(raws) != n || len(raws[0].Signature) != caps.SignatureSize {
		return Job{}, fmt.Errorf("%w: %d samples, asked for %d of %d bytes", ErrProtocol, len(raws), n, caps.SignatureSize)
	}
	return Job{Message: req.message, Epoch: epoch, Raw: raws}, nil
}

// request sends a prove, verify or inspect body and decodes the answer.
func (p *process) request(ctx context.Context, k kind, body []byte) (result, error) {
	f, err := p.roundTrip(ctx, k, body, 0)
	if err != nil {
		return result{}, err
	}
	if f.kind == kindError {
		return result{}, refusal(f)
	}
	r, err := decodeResult(f.body)
	if err != nil {
		return result{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	r.frame = f
	return r, nil
}

// refusal decodes an error frame; a frame that does not decode is a protocol error.
func refusal(f frame) error {
	e, err := decodeRefusal(f.body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return e
}

// matches compares the claims that a proof makes with the wanted ones: equal, and nothing else.
func (r *result) matches(want Claim) error {
	if r.foreign != 0 {
		return fmt.Errorf("%w: %d claims of another kind", ErrClaimMismatch, r.foreign)
	}
	if got := len(r.entries) / entrySize; got != want.Signers() {
		return fmt.Errorf("%w: %d claims, wanted %d", ErrClaimMismatch, got, want.Signers())
	}
	for i := range want.Signers() {
		e := r.entries[i*entrySize : (i+1)*entrySize]
		if !bytes.Equal(e[:PublicKeySize], want.Key(i)) {
			return fmt.Errorf("%w: key %d differs", ErrClaimMismatch, i)
		}
		if !bytes.Equal(e[PublicKeySize:], want.Message[:]) {
			return fmt.Errorf("%w: message of key %d differs", ErrClaimMismatch, i)
		}
	}
	return nil
}

// isPermanent tells faults that a restart does not heal.
func isPermanent(err error) bool {
	var r *RefusedError
	if errors.As(err, &r) {
		return r.Code == CodeVersion || r.Code == CodeCPUUnsupported || r.Code == CodeBackendMissing
	}
	return errors.Is(err, ErrSchemeMismatch) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
}
