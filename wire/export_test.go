package wire

// What the tests of this package see of its inside.

// DecodeParticipants reads a bitlist.
var DecodeParticipants = decodeParticipants

// DecodeSingleMessage reads a SingleMessageAggregate.
var DecodeSingleMessage = decodeSingleMessage

// AppendSingleMessage writes a SingleMessageAggregate.
var AppendSingleMessage = appendSingleMessage

// DecodeAggregated reads an AggregatedAttestation.
var DecodeAggregated = decodeAggregated

// DecodeBody reads a BlockBody.
var DecodeBody = decodeBody

// DecodeBlockAlone reads a Block.
var DecodeBlockAlone = decodeBlock

// DecodeMultiMessage reads a MultiMessageAggregate.
var DecodeMultiMessage = decodeMultiMessage

// DecodeLooseAggregate reads a SignedAggregatedAttestation that may be empty.
var DecodeLooseAggregate = decodeAggregate

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
