package verify

import (
	"context"
	"errors"
	"time"

	"aggnode/wire"
	"aggnode/xmss"
)

// scratch is the working memory of one batch. It keeps no item alive: release clears it.
type scratch struct {
	checks  []xmss.Check
	signers []wire.ValidatorIndex // of checks[i]
	answers []xmss.Answer
	index   []int // position in the batch of checks[i]
}

// add takes a check of a signature of a validator.
func (s *scratch) add(c xmss.Check, signer wire.ValidatorIndex) {
	s.checks, s.signers = append(s.checks, c), append(s.signers, signer)
}

func (s *scratch) release() {
	clear(s.checks)
	clear(s.answers)
	s.checks, s.signers, s.index = s.checks[:0], s.signers[:0], s.index[:0]
}

// resize makes answers as long as checks.
func (s *scratch) resize() {
	if cap(s.answers) < len(s.checks) {
		s.answers = make([]xmss.Answer, len(s.checks))
	}
	s.answers = s.answers[:len(s.checks)]
}

// Attestations checks the signatures of a batch and writes the reason of batch[i] to out[i], whatever the others hold;
// out must be at least as long as batch. The data may differ within a batch. ReasonNone means valid, otherwise:
// ReasonUnknownValidator, ReasonEarly (a slot beyond the last epoch of any key, which is outside every window),
// ReasonSchemeMismatch or ReasonMalformed (signature length), ReasonBadSignature, and when ctx has ended before the start
// ReasonExpired or ReasonStopping. Source: leanSpec containers/attestation.py; ARCHITECTURE.md section 3.
func (v *Verifier) Attestations(ctx context.Context, batch []*wire.SignedAttestation, out []wire.Reason) {
	out = out[:len(batch)]
	if reason, over := ended(ctx); over {
		for i := range out {
			out[i] = reason
		}
		v.metrics.attestation.countAll(out)
		return
	}
	s := v.scratch.Get().(*scratch)
	var root wire.DataRoot // of the vote before: the votes of a batch mostly agree
	for i, a := range batch {
		if i == 0 || a.Data != batch[i-1].Data {
			root = a.Data.HashTreeRoot()
		}
		c, reason := v.attestationCheck(a, root)
		out[i] = reason
		if reason == wire.ReasonNone {
			s.add(c, a.ValidatorIndex)
			s.index = append(s.index, i)
		}
	}
	v.run(s, &v.metrics.attestation)
	for n, i := range s.index {
		out[i] = signatureReason(s.answers[n].Err)
		if out[i] == wire.ReasonNone {
			v.metrics.attestationsValid.Inc()
		} else {
			v.metrics.attestationsInvalid.Inc()
		}
	}
	s.release()
	v.scratch.Put(s)
	v.metrics.attestation.countAll(out)
}

// attestationCheck prepares one check of a vote with that data root, or says why there is nothing to check.
func (v *Verifier) attestationCheck(a *wire.SignedAttestation, root wire.DataRoot) (xmss.Check, wire.Reason) {
	key, ok := v.registry.AttestationKey(a.ValidatorIndex)
	if !ok {
		return xmss.Check{}, wire.ReasonUnknownValidator
	}
	return v.check(a.ValidatorIndex, key, a.Data.Slot, root, a.Signature)
}

// check prepares the check of a validator's signature under key over a root.
func (v *Verifier) check(
	signer wire.ValidatorIndex, key xmss.PublicKey, slot wire.Slot, root [32]byte, signature []byte,
) (xmss.Check, wire.Reason) {
	if slot > maxEpoch {
		return xmss.Check{}, wire.ReasonEarly
	}
	if len(signature) != v.profile.SignatureSize {
		return xmss.Check{}, v.lengthReason(len(signature))
	}
	epoch := uint32(slot)
	return xmss.Check{
		PublicKey: key,
		Epoch:     epoch,
		Message:   root,
		Signature: signature,
		Known:     v.cache.Upper(signer, v.scheme.UpperKey(key, epoch)),
	}, wire.ReasonNone
}

// lengthReason tells a signature of another scheme from one that is none. Decoding refuses both already; an item that was
// not decoded is held to the same rule.
func (v *Verifier) lengthReason(size int) wire.Reason {
	for _, s := range []xmss.Scheme{xmss.Blake2s, xmss.Keccak} {
		if s != v.scheme && s.SignatureSize() == size {
			v.notice.schemeMismatch("signature", size)
			return wire.ReasonSchemeMismatch
		}
	}
	return wire.ReasonMalformed
}

// run verifies the prepared checks, keeps the upper parts of those that succeeded and records the time of each.
func (v *Verifier) run(s *scratch, kind *kindMetrics) {
	n := len(s.checks)
	if n == 0 {
		s.answers = s.answers[:0]
		return
	}
	s.resize()
	start := time.Now()
	v.scheme.VerifyBatch(s.checks, s.answers)
	each := (time.Since(start) / time.Duration(n)).Seconds()
	for range n {
		kind.observe(each)
	}
	kind.batch.Observe(float64(n))
	for i := range s.answers {
		if a := &s.answers[i]; a.Err == nil && a.Upper != nil {
			v.cache.AdmitUpper(s.signers[i], a.Upper)
		}
	}
}

// signatureReason maps the answer of the scheme. A keccak signature that names another epoch is as bad as a forged one.
func signatureReason(err error) wire.Reason {
	switch {
	case err == nil:
		return wire.ReasonNone
	case errors.Is(err, xmss.ErrLength):
		return wire.ReasonMalformed
	}
	return wire.ReasonBadSignature
}
