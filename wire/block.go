package wire

import "fmt"

// Fixed parts in bytes of the containers of a block (leanSpec
// containers/block.py).
const (
	aggregatedFixed  = offsetSize + AttestationDataSize // AggregatedAttestation
	bodyFixed        = offsetSize                       // BlockBody
	blockFixed       = 8 + 8 + 32 + 32 + offsetSize     // Block
	signedBlockFixed = 2 * offsetSize                   // SignedBlock, BlockBodyProof
	multiFixed       = offsetSize                       // MultiMessageAggregate
)

// AggregatedAttestation is an entry of a block body: who voted for what. The
// proof is elsewhere.
type AggregatedAttestation struct {
	Participants Participants
	Data         AttestationData
}

// BlockBody is the content of a block.
type BlockBody struct {
	Attestations []AggregatedAttestation
}

// Block is a block without its proof.
type Block struct {
	Slot          Slot
	ProposerIndex ValidatorIndex
	ParentRoot    Root
	StateRoot     Root
	Body          BlockBody
}

// SignedBlock is a block as gossiped, in the envelope of the profile.
type SignedBlock struct {
	Block Block
	// ProposerSignature is the raw signature of the pair envelope, of
	// Profile.SignatureSize bytes, and nil in the merged envelope.
	ProposerSignature []byte
	// Proof is the attestations' proof (pair; empty when the body is) or the
	// proof of attestations and proposer together (merged). At most
	// MaxProofSize bytes.
	Proof []byte
}

// HashTreeRoot returns the root of the entry under the profile's limits.
func (a *AggregatedAttestation) HashTreeRoot(p *Profile) Root {
	bits, data := a.Participants.HashTreeRoot(p), Root(a.Data.HashTreeRoot())

	return hashPair(&bits, &data)
}

// HashTreeRoot returns the body root under the profile's limits, which the body
// must keep: it was decoded with the profile, or can be encoded with it.
func (b *BlockBody) HashTreeRoot(p *Profile) Root {
	roots := make([]Root, len(b.Attestations))
	for i := range b.Attestations {
		roots[i] = b.Attestations[i].HashTreeRoot(p)
	}

	return mixInLength(merkleize(roots, depthOf(p.RegistryLimit)), uint64(len(roots)))
}

// HashTreeRoot returns the block root: what the proposer signs and what
// checkpoints name. The body must keep the profile's limits.
func (b *Block) HashTreeRoot(p *Profile) Root {
	h := b.Header(p)

	return h.HashTreeRoot()
}

// Header returns the block's header, which has the same root.
func (b *Block) Header(p *Profile) BlockHeader {
	return BlockHeader{
		Slot:          b.Slot,
		ProposerIndex: b.ProposerIndex,
		ParentRoot:    b.ParentRoot,
		StateRoot:     b.StateRoot,
		BodyRoot:      b.Body.HashTreeRoot(p),
	}
}

// AppendSSZ appends the encoding of the block. Bitlists keep the length that
// they were decoded with, because the root depends on it.
func (b *Block) AppendSSZ(dst []byte) []byte {
	dst = appendUint64(dst, uint64(b.Slot))
	dst = appendUint64(dst, uint64(b.ProposerIndex))
	dst = append(dst, b.ParentRoot[:]...)
	dst = append(dst, b.StateRoot[:]...)
	dst = appendOffset(dst, blockFixed)

	return b.Body.AppendSSZ(dst)
}

// AppendSSZ appends the encoding of the body.
func (b *BlockBody) AppendSSZ(dst []byte) []byte {
	dst = appendOffset(dst, bodyFixed)
	off := offsetSize * len(b.Attestations)
	for i := range b.Attestations {
		dst = appendOffset(dst, off)
		off += aggregatedFixed + b.Attestations[i].Participants.receivedSize()
	}
	for i := range b.Attestations {
		a := &b.Attestations[i]
		dst = appendOffset(dst, aggregatedFixed)
		dst = a.Data.AppendSSZ(dst)
		dst = a.Participants.AppendReceived(dst)
	}

	return dst
}

// DecodeBlock reads a block in the envelope of the profile. Signature and proof
// alias b. An attestation without a participant is ReasonEmptyParticipants, a
// proposer signature of another known scheme's length ReasonSchemeMismatch.
func (p *Profile) DecodeBlock(b []byte) (*SignedBlock, error) {
	sb, err := p.decodeSignedBlock(b)
	if err != nil {
		return nil, err
	}
	for i := range sb.Block.Body.Attestations {
		if sb.Block.Body.Attestations[i].Participants.IsEmpty() {
			return nil, &DecodeError{Reason: ReasonEmptyParticipants, Container: "SignedBlock", Detail: fmt.Sprintf("attestation %d has no bit set", i)}
		}
	}

	return sb, nil
}

// decodeSignedBlock reads a block whose attestations may have no participant.
func (p *Profile) decodeSignedBlock(b []byte) (*SignedBlock, error) {
	fields, err := splitFields("SignedBlock", b, signedBlockFixed, 0, offsetSize)
	if err != nil {
		return nil, err
	}
	var sb SignedBlock
	if sb.Block, err = p.decodeBlock(fields[0]); err != nil {
		return nil, err
	}
	proof := fields[1]
	switch p.Envelope {
	case EnvelopeMerged:
	case EnvelopePair:
		if sb.ProposerSignature, proof, err = p.splitPair(proof); err != nil {
			return nil, err
		}
	case EnvelopeUnknown:
		return nil, fmt.Errorf("profile %q has no block envelope", p.Name)
	}
	if sb.Proof, err = decodeMultiMessage(proof); err != nil {
		return nil, err
	}

	return &sb, nil
}

// splitPair takes a BlockProof apart: the raw proposer signature and the bytes
// of the MultiMessageAggregate.
func (p *Profile) splitPair(b []byte) (signature, proof []byte, err error) {
	fixed := p.SignatureSize + offsetSize
	fields, err := splitFields("BlockProof", b, fixed, p.SignatureSize)
	if err == nil {
		return b[:p.SignatureSize:p.SignatureSize], fields[0], nil
	}
	for _, n := range knownSignatureSizes {
		if n == p.SignatureSize {
			continue
		}
		if _, other := splitFields("BlockProof", b, n+offsetSize, n); other == nil {
			return nil, nil, p.sizeError("BlockProof", len(b), n)
		}
	}

	return nil, nil, err
}

// decodeMultiMessage reads a MultiMessageAggregate: one proof.
func decodeMultiMessage(b []byte) ([]byte, error) {
	fields, err := splitFields("MultiMessageAggregate", b, multiFixed, 0)
	if err != nil {
		return nil, err
	}
	if len(fields[0]) > MaxProofSize {
		return nil, malformed("MultiMessageAggregate", "proof of %d bytes, at most %d allowed", len(fields[0]), MaxProofSize)
	}

	return fields[0], nil
}

// decodeBlock reads a block.
func (p *Profile) decodeBlock(b []byte) (Block, error) {
	fields, err := splitFields("Block", b, blockFixed, blockFixed-offsetSize)
	if err != nil {
		return Block{}, err
	}
	block := Block{
		Slot:          Slot(uint64At(b, 0)),
		ProposerIndex: ValidatorIndex(uint64At(b, 8)),
		ParentRoot:    Root(b[16:48]),
		StateRoot:     Root(b[48:80]),
	}
	block.Body, err = p.decodeBody(fields[0])

	return block, err
}

// decodeBody reads a block body.
func (p *Profile) decodeBody(b []byte) (BlockBody, error) {
	fields, err := splitFields("BlockBody", b, bodyFixed, 0)
	if err != nil {
		return BlockBody{}, err
	}
	items, err := splitList("BlockBody", fields[0], p.RegistryLimit, aggregatedFixed+1)
	if err != nil || len(items) == 0 {
		return BlockBody{}, err
	}
	body := BlockBody{Attestations: make([]AggregatedAttestation, len(items))}
	for i, item := range items {
		if body.Attestations[i], err = p.decodeAggregated(item); err != nil {
			return BlockBody{}, err
		}
	}

	return body, nil
}

// decodeAggregated reads an AggregatedAttestation.
func (p *Profile) decodeAggregated(b []byte) (AggregatedAttestation, error) {
	fields, err := splitFields("AggregatedAttestation", b, aggregatedFixed, 0)
	if err != nil {
		return AggregatedAttestation{}, err
	}
	participants, err := decodeParticipants(fields[0], p.RegistryLimit)
	if err != nil {
		return AggregatedAttestation{}, err
	}

	return AggregatedAttestation{Participants: participants, Data: decodeData(b[offsetSize:])}, nil
}

// EncodeBlock returns the encoding of a block in the envelope of the profile.
// It fails when the proof is too long, when the body is past the profile's
// registry limit, when a proposer signature is missing or has the wrong length
// (pair), or when there is one (merged).
func (p *Profile) EncodeBlock(sb *SignedBlock) ([]byte, error) {
	if len(sb.Proof) > MaxProofSize {
		return nil, fmt.Errorf("encode block: proof of %d bytes, at most %d allowed", len(sb.Proof), MaxProofSize)
	}
	attestations := sb.Block.Body.Attestations
	if n := len(attestations); n > p.RegistryLimit {
		return nil, fmt.Errorf("encode block: %d attestations, at most %d allowed", n, p.RegistryLimit)
	}
	for i := range attestations {
		if err := p.checkParticipants(attestations[i].Participants); err != nil {
			return nil, fmt.Errorf("encode block: attestation %d: %w", i, err)
		}
	}
	dst := make([]byte, signedBlockFixed, signedBlockFixed+blockFixed+bodyFixed+p.SignatureSize+multiFixed+len(sb.Proof))
	dst = sb.Block.AppendSSZ(dst)
	proofAt := len(dst)
	switch p.Envelope {
	case EnvelopeMerged:
		if sb.ProposerSignature != nil {
			return nil, fmt.Errorf("encode block: the merged envelope of profile %s carries no proposer signature", p.Name)
		}
	case EnvelopePair:
		if err := p.checkSignature(sb.ProposerSignature); err != nil {
			return nil, fmt.Errorf("encode block: %w", err)
		}
		dst = append(dst, sb.ProposerSignature...)
		dst = appendOffset(dst, p.SignatureSize+offsetSize)
	case EnvelopeUnknown:
		return nil, fmt.Errorf("encode block: profile %q has no block envelope", p.Name)
	}
	dst = appendOffset(dst, multiFixed)
	dst = append(dst, sb.Proof...)
	appendOffset(appendOffset(dst[:0], signedBlockFixed), proofAt)

	return dst, nil
}
