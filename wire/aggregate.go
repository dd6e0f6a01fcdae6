package wire

import "fmt"

// Fixed parts in bytes of the containers of an aggregate (leanSpec
// containers/attestation.py and containers/aggregation.py).
const (
	aggregateFixed       = 2 * offsetSize                   // SingleMessageAggregate: two offsets
	signedAggregateFixed = AttestationDataSize + offsetSize // SignedAggregatedAttestation: data, one offset
)

// SignedAggregate is an aggregate as gossiped: attestation data, participants
// and the proof (leanSpec SignedAggregatedAttestation with its
// SingleMessageAggregate laid flat).
type SignedAggregate struct {
	Data         AttestationData
	Participants Participants
	// Proof has at most MaxProofSize bytes and may alias the bytes that the
	// aggregate was decoded from.
	Proof []byte
}

// DecodeAggregate reads an aggregate. The proof aliases b. An aggregate without
// a participant is ReasonEmptyParticipants.
func (p *Profile) DecodeAggregate(b []byte) (*SignedAggregate, error) {
	a, err := p.decodeAggregate(b)
	if err != nil {
		return nil, err
	}
	if a.Participants.IsEmpty() {
		return nil, &DecodeError{Reason: ReasonEmptyParticipants, Container: "SignedAggregatedAttestation", Detail: "no bit set"}
	}

	return a, nil
}

// decodeAggregate reads an aggregate that may have no participant.
func (p *Profile) decodeAggregate(b []byte) (*SignedAggregate, error) {
	outer, err := splitFields("SignedAggregatedAttestation", b, signedAggregateFixed, AttestationDataSize)
	if err != nil {
		return nil, err
	}
	participants, proof, err := p.decodeSingleMessage(outer[0])
	if err != nil {
		return nil, err
	}

	return &SignedAggregate{Data: decodeData(b), Participants: participants, Proof: proof}, nil
}

// decodeSingleMessage reads a SingleMessageAggregate: participants and proof.
func (p *Profile) decodeSingleMessage(b []byte) (Participants, []byte, error) {
	inner, err := splitFields("SingleMessageAggregate", b, aggregateFixed, 0, offsetSize)
	if err != nil {
		return Participants{}, nil, err
	}
	participants, err := decodeParticipants(inner[0], p.RegistryLimit)
	if err != nil {
		return Participants{}, nil, err
	}
	if len(inner[1]) > MaxProofSize {
		return Participants{}, nil, malformed("SingleMessageAggregate", "proof of %d bytes, at most %d allowed", len(inner[1]), MaxProofSize)
	}

	return participants, inner[1], nil
}

// EncodeAggregate returns the encoding of an aggregate with its participants in
// the shortest form. It fails when nobody takes part, when somebody past the
// profile's registry limit does, and when the proof is too long.
func (p *Profile) EncodeAggregate(a *SignedAggregate) ([]byte, error) {
	if a.Participants.IsEmpty() {
		return nil, fmt.Errorf("encode aggregate: no participants")
	}
	if err := p.checkParticipants(a.Participants); err != nil {
		return nil, fmt.Errorf("encode aggregate: %w", err)
	}
	if len(a.Proof) > MaxProofSize {
		return nil, fmt.Errorf("encode aggregate: proof of %d bytes, at most %d allowed", len(a.Proof), MaxProofSize)
	}
	bits := a.Participants.SSZ()
	dst := make([]byte, 0, signedAggregateFixed+aggregateFixed+len(bits)+len(a.Proof))
	dst = a.Data.AppendSSZ(dst)
	dst = appendOffset(dst, signedAggregateFixed)

	return appendSingleMessage(dst, bits, a.Proof), nil
}

// appendSingleMessage appends a SingleMessageAggregate.
func appendSingleMessage(dst, bits, proof []byte) []byte {
	dst = appendOffset(dst, aggregateFixed)
	dst = appendOffset(dst, aggregateFixed+len(bits))
	dst = append(dst, bits...)

	return append(dst, proof...)
}
