package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the signature schemes that profiles use. Package xmss implements
// them under the same names.
const (
	SchemeBlake2s = "blake2s"
	SchemeKeccak  = "keccak"
)

// Envelope is the type of the proof field of a SignedBlock.
type Envelope uint8

// The envelopes.
const (
	// EnvelopeUnknown is the zero value and names no envelope.
	EnvelopeUnknown Envelope = iota
	// EnvelopeMerged is one proof of all attestations and the proposer's
	// signature together (leanSpec MultiMessageAggregate).
	EnvelopeMerged
	// EnvelopePair is the proposer's raw signature followed by the proof of the
	// attestations (BlockProof of ethlambda).
	EnvelopePair
)

// String returns the name of the envelope.
func (e Envelope) String() string {
	switch e {
	case EnvelopeUnknown:
		return "unknown"
	case EnvelopeMerged:
		return "merged"
	case EnvelopePair:
		return "pair"
	}

	return "invalid"
}

// Profile is one line of the network: the sizes of keys and signatures, the
// block envelope and what the line allows. It is immutable and passed by
// pointer. The name comes from configuration and is never guessed from lengths.
type Profile struct {
	// Name is "devnet5", "lean-pq" or "local".
	Name string
	// Scheme is the signature scheme, SchemeBlake2s or SchemeKeccak.
	Scheme string
	// PublicKeySize and SignatureSize are lengths in bytes.
	PublicKeySize, SignatureSize int
	// Envelope is the proof type of blocks.
	Envelope Envelope
	// RegistryLimit is the list limit of validators, of bits in participants and
	// of attestations in a block body (leanSpec VALIDATOR_REGISTRY_LIMIT), 1 to
	// MaxRegistryLimit. Roots depend on it, encodings do not.
	RegistryLimit int
	// MaxAttestationsData is the largest number of attestations that a block of
	// ours carries (leanSpec MAX_ATTESTATIONS_DATA). A received block may carry
	// up to RegistryLimit.
	MaxAttestationsData int
	// AllowsBundle tells whether proofs of the embedded backend, which are the
	// signatures themselves, may travel on this line.
	AllowsBundle bool
	// HoldUntilInterval2 keeps aggregates that are ready early until interval 2.
	HoldUntilInterval2 bool
}

// schemeSizes are the key and signature lengths in bytes of a scheme
// (schemes of leanVM at the revisions that the profiles name).
type schemeSizes struct{ publicKey, signature int }

var schemes = map[string]schemeSizes{
	SchemeBlake2s: {publicKey: 32, signature: 1208},
	SchemeKeccak:  {publicKey: 32, signature: 2404},
}

// knownSignatureSizes are the signature lengths in bytes of all schemes that a
// peer may run: blake2s, lean-multisig, keccak and the leanSig of devnet-4. A
// message of one of the others is told apart from plain garbage.
var knownSignatureSizes = []int{1208, 1212, 2404, 2536}

// profileSpec is a profile before its scheme is chosen; the first scheme is the
// default.
type profileSpec struct {
	name        string
	schemes     []string
	envelope    Envelope
	allowBundle bool
}

// profileLocal is the profile of networks that nobody else runs.
const profileLocal = "local"

var profileSpecs = []profileSpec{
	{name: "devnet5", schemes: []string{SchemeBlake2s}, envelope: EnvelopeMerged},
	{name: "lean-pq", schemes: []string{SchemeKeccak}, envelope: EnvelopePair},
	{name: profileLocal, schemes: []string{SchemeBlake2s, SchemeKeccak}, envelope: EnvelopePair, allowBundle: true},
}

// defaultMaxAttestationsData is MAX_ATTESTATIONS_DATA of devnet-5 (leanSpec
// config.py).
const defaultMaxAttestationsData = 8

// ProfileNames returns the names of all profiles.
func ProfileNames() []string {
	names := make([]string, len(profileSpecs))
	for i, s := range profileSpecs {
		names[i] = s.name
	}

	return names
}

// LookupProfile returns the profile of that name with the scheme, or with the
// profile's first scheme when scheme is empty. The errors name what would have
// been right.
func LookupProfile(name, scheme string) (*Profile, error) {
	i := slices.IndexFunc(profileSpecs, func(s profileSpec) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown profile %q: must be one of %s", name, strings.Join(ProfileNames(), ", "))
	}
	spec := &profileSpecs[i]
	if scheme == "" {
		scheme = spec.schemes[0]
	}
	if !slices.Contains(spec.schemes, scheme) {
		return nil, fmt.Errorf("profile %q has no scheme %q: must be %s", name, scheme, strings.Join(spec.schemes, " or "))
	}
	size := schemes[scheme]

	return &Profile{
		Name:                name,
		Scheme:              scheme,
		PublicKeySize:       size.publicKey,
		SignatureSize:       size.signature,
		Envelope:            spec.envelope,
		RegistryLimit:       DefaultRegistryLimit,
		MaxAttestationsData: defaultMaxAttestationsData,
		AllowsBundle:        spec.allowBundle,
	}, nil
}

// WithEnvelope returns a copy of the profile with another block envelope:
// networks of the devnet5 profile exist with both.
func (p *Profile) WithEnvelope(e Envelope) *Profile {
	c := *p
	c.Envelope = e

	return &c
}

// WithRegistryLimit returns a copy of the profile with another registry limit.
// It fails outside 1 to MaxRegistryLimit, and on any profile but "local": the
// limit of the others is part of their roots.
func (p *Profile) WithRegistryLimit(n int) (*Profile, error) {
	switch {
	case n < 1 || n > MaxRegistryLimit:
		return nil, fmt.Errorf("registry limit %d: must be 1 to %d", n, MaxRegistryLimit)
	case p.Name != profileLocal && n != p.RegistryLimit:
		return nil, fmt.Errorf("registry limit %d: that of profile %q is %d", n, p.Name, p.RegistryLimit)
	}
	c := *p
	c.RegistryLimit = n

	return &c, nil
}

// sizeError returns the error for a container of the wrong length, the
// signature in it being signature bytes long.
func (p *Profile) sizeError(container string, size, signature int) *DecodeError {
	if slices.Contains(knownSignatureSizes, signature) && signature != p.SignatureSize {
		return &DecodeError{
			Reason:    ReasonSchemeMismatch,
			Container: container,
			Detail:    fmt.Sprintf("signature of %d bytes belongs to another scheme than %s with %d", signature, p.Scheme, p.SignatureSize),
		}
	}

	return malformed(container, "%d bytes, no signature of %d bytes fits", size, p.SignatureSize)
}

// checkSignature refuses a signature to encode that has the wrong length.
func (p *Profile) checkSignature(sig []byte) error {
	if len(sig) != p.SignatureSize {
		return fmt.Errorf("signature of %d bytes, profile %s has %d", len(sig), p.Name, p.SignatureSize)
	}

	return nil
}
