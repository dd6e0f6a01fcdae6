package wire

// What the tests of this package see of its inside.

// DecodeParticipants reads a bitlist of at most DefaultRegistryLimit bits.
func DecodeParticipants(b []byte) (Participants, error) {
	return decodeParticipants(b, DefaultRegistryLimit)
}

// DecodeParticipants reads a bitlist of at most RegistryLimit bits.
func (p *Profile) DecodeParticipants(b []byte) (Participants, error) {
	return decodeParticipants(b, p.RegistryLimit)
}

// DecodeSingleMessage reads a SingleMessageAggregate.
func (p *Profile) DecodeSingleMessage(b []byte) (Participants, []byte, error) {
	return p.decodeSingleMessage(b)
}

// AppendSingleMessage writes a SingleMessageAggregate.
var AppendSingleMessage = appendSingleMessage

// DecodeAggregated reads an AggregatedAttestation.
func (p *Profile) DecodeAggregated(b []byte) (AggregatedAttestation, error) {
	return p.decodeAggregated(b)
}

// DecodeBody reads a BlockBody.
func (p *Profile) DecodeBody(b []byte) (BlockBody, error) { return p.decodeBody(b) }

// DecodeBlockAlone reads a Block.
func (p *Profile) DecodeBlockAlone(b []byte) (Block, error) { return p.decodeBlock(b) }

// DecodeMultiMessage reads a MultiMessageAggregate.
var DecodeMultiMessage = decodeMultiMessage

// DecodeLooseAggregate reads a SignedAggregatedAttestation that may be empty.
func (p *Profile) DecodeLooseAggregate(b []byte) (*SignedAggregate, error) {
	return p.decodeAggregate(b)
}

// BitlistLen returns the length in bits of a bitlist.
var BitlistLen = bitlistLen

// AppendFrames and ReadFrames are the framed snappy form.
var (
	AppendFrames = appendFrames
	ReadFrames   = readFrames
)

// DecodeValidators reads the list of a state.
func (p *Profile) DecodeValidators(b []byte) ([]Validator, error) { return p.decodeValidators(b) }

// DecodeValidator reads one of them.
func (p *Profile) DecodeValidator(b []byte) Validator { return p.decodeValidator(b) }

// DecodeLooseBlock reads a SignedBlock with empty participants.
func (p *Profile) DecodeLooseBlock(b []byte) (*SignedBlock, error) { return p.decodeSignedBlock(b) }

// MessageIDOf is MessageID for a content and domain that are given.
func MessageIDOf(domain [4]byte, topic string, content []byte) (id [MessageIDSize]byte) {
	s := idScratches.New().(*idScratch) //nolint:forcetypeassert // the pool makes nothing else
	copy(id[:], s.digest(domain, topic, content))

	return id
}
