package wire

import "encoding/binary"

// Lengths in bytes of the fixed-size containers of a vote (leanSpec
// containers/attestation.py, containers/checkpoint.py).
const (
	checkpointSize      = 40
	AttestationDataSize = 128
	attestationHead     = 8 + AttestationDataSize // validator index and data, before the signature
)

// Checkpoint is a block root and the slot of that block.
type Checkpoint struct {
	Root Root
	Slot Slot
}

// AttestationData is what a vote says. It is comparable; equal values have
// equal roots.
type AttestationData struct {
	Slot   Slot
	Head   Checkpoint
	Target Checkpoint
	Source Checkpoint
}

// SignedAttestation is one validator's signed vote.
type SignedAttestation struct {
	ValidatorIndex ValidatorIndex
	Data           AttestationData
	// Signature has Profile.SignatureSize bytes and may alias the bytes that
	// the vote was decoded from.
	Signature []byte
}

// AppendSSZ appends the 40 bytes of the checkpoint.
func (c *Checkpoint) AppendSSZ(dst []byte) []byte {
	dst = append(dst, c.Root[:]...)

	return appendUint64(dst, uint64(c.Slot))
}

// HashTreeRoot returns the root of the checkpoint.
func (c *Checkpoint) HashTreeRoot() Root {
	slot := uint64Chunk(uint64(c.Slot))

	return hashPair(&c.Root, &slot)
}

// decodeCheckpoint reads the first 40 bytes of b, which must be there.
func decodeCheckpoint(b []byte) (c Checkpoint) {
	copy(c.Root[:], b)
	c.Slot = Slot(uint64At(b, 32))

	return c
}

// AppendSSZ appends the 128 bytes of the data.
func (d *AttestationData) AppendSSZ(dst []byte) []byte {
	dst = appendUint64(dst, uint64(d.Slot))
	dst = d.Head.AppendSSZ(dst)
	dst = d.Target.AppendSSZ(dst)

	return d.Source.AppendSSZ(dst)
}

// HashTreeRoot returns the data root, the message that validators sign. It
// costs six SHA-256 of 64 bytes and allocates nothing.
func (d *AttestationData) HashTreeRoot() DataRoot {
	head, target, source := d.Head.HashTreeRoot(), d.Target.HashTreeRoot(), d.Source.HashTreeRoot()
	slot := uint64Chunk(uint64(d.Slot))
	left, right := hashPair(&slot, &head), hashPair(&target, &source)

	return DataRoot(hashPair(&left, &right))
}

// DecodeAttestationData reads exactly 128 bytes.
func DecodeAttestationData(b []byte) (AttestationData, error) {
	if len(b) != AttestationDataSize {
		return AttestationData{}, malformed("AttestationData", "%d bytes, must be %d", len(b), AttestationDataSize)
	}

	return decodeData(b), nil
}

// decodeData reads the first 128 bytes of b, which must be there.
func decodeData(b []byte) AttestationData {
	return AttestationData{
		Slot:   Slot(binary.LittleEndian.Uint64(b)),
		Head:   decodeCheckpoint(b[8:]),
		Target: decodeCheckpoint(b[8+checkpointSize:]),
		Source: decodeCheckpoint(b[8+2*checkpointSize:]),
	}
}

// DecodeAttestation reads a vote of the profile's length. The signature aliases
// b. A length that is right for another known scheme is ReasonSchemeMismatch.
func (p *Profile) DecodeAttestation(b []byte) (*SignedAttestation, error) {
	if len(b) != attestationHead+p.SignatureSize {
		return nil, p.sizeError("SignedAttestation", len(b), len(b)-attestationHead)
	}

	return &SignedAttestation{
		ValidatorIndex: ValidatorIndex(uint64At(b, 0)),
		Data:           decodeData(b[8:]),
		Signature:      b[attestationHead:len(b):len(b)],
	}, nil
}

// EncodeAttestation returns the encoding of a vote. It fails when the signature
// does not have the profile's length.
func (p *Profile) EncodeAttestation(a *SignedAttestation) ([]byte, error) {
	if err := p.checkSignature(a.Signature); err != nil {
		return nil, err
	}
	dst := make([]byte, 0, attestationHead+len(a.Signature))
	dst = appendUint64(dst, uint64(a.ValidatorIndex))
	dst = a.Data.AppendSSZ(dst)

	return append(dst, a.Signature...), nil
}
