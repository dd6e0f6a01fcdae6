package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/wire/wiretest"
)

// own decodes b with the code under test and encodes it again; root is nil where
// the project never hashes the container.
type own func(b []byte) (again []byte, root *wire.Root, err error)

// sszType is how a type of the fixtures is checked: by the library always, and
// by our own code where the type is one of ours.
type sszType struct {
	oracle oracle
	own    own
}

var fixtureProfile = wiretest.Profile()

// sszTypes has a row for each type name in the fixtures.
var sszTypes = map[string]sszType{
	"Boolean":               {oracle: container[sszBool]},
	"Uint8":                 {oracle: container[sszUint8]},
	"Uint16":                {oracle: container[sszUint16]},
	"Uint32":                {oracle: container[sszUint32]},
	"Uint64":                {oracle: container[sszUint64]},
	"Fp":                    {oracle: container[sszUint32]},
	"Bytes4":                {oracle: container[sszBytes4]},
	"Bytes32":               {oracle: container[sszBytes32]},
	"Bytes52":               {oracle: container[sszBytes52]},
	"Bytes64":               {oracle: container[sszBytes64]},
	"AttestationSubnets":    {oracle: container[sszBits64]},
	"SampleBitvector8":      {oracle: container[sszBits8]},
	"SampleBitvector64":     {oracle: container[sszBits64]},
	"BoundaryBitvector1":    {oracle: container[sszBits1]},
	"BoundaryBitvector7":    {oracle: container[sszBits7]},
	"BoundaryBitvector9":    {oracle: container[sszBits9]},
	"BoundaryBitvector255":  {oracle: container[sszBits255]},
	"BoundaryBitvector256":  {oracle: container[sszBits256]},
	"BoundaryBitvector257":  {oracle: container[sszBits257]},
	"DecodeBitvector16":     {oracle: container[sszBits16]},
	"SampleUint16Vector3":   {oracle: container[sszUint16x3]},
	"SampleUint64Vector4":   {oracle: container[sszUint64x4]},
	"BoundaryBitlist256":    {oracle: bareList[sszBitlist256]},
	"SampleBitlist16":       {oracle: bareList[sszBitlist16]},
	"DecodeBitlist8":        {oracle: bareList[sszBitlist8], own: ownBitlist8},
	"SmokeBitlist8":         {oracle: bareList[sszBitlist8], own: ownBitlist8},
	"ByteList512KiB":        {oracle: bareList[sszByteList]},
	"SampleUint32List16":    {oracle: bareList[sszUint32s]},
	"BoundaryUint64List32":  {oracle: bareList[sszUint64s]},
	"SampleBytes32List8":    {oracle: bareList[sszBytes32s]},
	"PublicKey":             {oracle: container[sszPublicKey]},
	"HashTreeOpening":       {oracle: container[sszOpening]},
	"HashTreeLayer":         {oracle: container[sszLayer]},
	"Signature":             {oracle: container[sszSignature]},
	"Config":                {oracle: container[sszConfig]},
	"Attestation":           {oracle: container[sszAttestation], own: ownAttestation},
	"AttestationData":       {oracle: container[sszData], own: ownData},
	"Checkpoint":            {oracle: container[sszCheckpoint], own: ownCheckpoint},
	"SignedAttestation":     {oracle: container[sszSignedFixture], own: ownSignedAttestation},
	"AggregatedAttestation": {oracle: container[sszAggregated], own: ownAggregated},

	"SingleMessageAggregate":      {oracle: container[sszSingle], own: ownSingleMessage},
	"MultiMessageAggregate":       {oracle: container[sszMulti], own: ownMultiMessage},
	"SignedAggregatedAttestation": {oracle: container[sszSignedAggregate], own: ownSignedAggregate},
	"Block":                       {oracle: container[sszBlock], own: ownBlock},
	"BlockBody":                   {oracle: container[sszBody], own: ownBody},
	"BlockHeader":                 {oracle: container[sszHeader], own: ownHeader},
	"SignedBlock":                 {oracle: container[sszSignedBlock], own: ownSignedBlock},
	"Validator":                   {oracle: container[sszValidator], own: ownValidator},
	"Validators":                  {oracle: bareList[sszValidators], own: ownValidators},
	"State":                       {oracle: container[sszState], own: ownState},
	"Status":                      {oracle: container[sszStatus], own: ownStatus},
	"BlocksByRootRequest":         {oracle: container[sszBlocksByRoot], own: ownBlocksByRoot},
}

// sszSignedFixture is a signed attestation whose signature is hashed as the
// container that it is on devnet-4.
type sszSignedFixture struct {
	ValidatorIndex uint64
	Data           sszData
	Signature      *sszFixedSignature
}

// sszFixedSignature has the bytes of sszSignature but counts as of fixed size.
type sszFixedSignature struct {
	Bytes []byte `ssz-size:"424"`
}

// sszFixture is the content of a file of the family.
type sszFixture struct {
	TypeName        string       `json:"typeName"`
	Serialized      wiretest.Hex `json:"serialized"`
	Root            wiretest.Hex `json:"root"`
	RejectionReason string       `json:"rejectionReason"`
	RawBytes        wiretest.Hex `json:"rawBytes"`
}

// TestSSZFixtures runs every file of the ssz family and fails on a type that has
// no row.
func TestSSZFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range wiretest.Family(t, "ssz") {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			var c sszFixture
			f.Decode(t, &c)
			typ, ok := sszTypes[c.TypeName]
			require.True(t, ok, "no row for the type %s", c.TypeName)
			if c.RejectionReason != "" {
				if typ.own != nil {
					_, _, err := typ.own(c.RawBytes)
					requireReason(t, wire.ReasonMalformed, err)
				} else {
					_, _, err := typ.oracle(oracleFor(fixtureProfile), c.RawBytes)
					require.Error(t, err)
				}

				return
			}
			root := wire.Root(c.Root)
			if c.TypeName == "SignedAttestation" {
				requireOracle(t, fixtureProfile, typ.oracle, c.Serialized, nil)
			} else {
				requireOracle(t, fixtureProfile, typ.oracle, c.Serialized, &root)
			}
			if typ.own == nil {
				return
			}
			again, r, err := typ.own(c.Serialized)
			require.NoError(t, err)
			require.Equal(t, []byte(c.Serialized), again)
			if r != nil {
				require.Equal(t, root, *r)
			}
		})
	}
}

// requireReason checks that err is a DecodeError with the reason.
func requireReason(t testing.TB, want wire.Reason, err error) {
	t.Helper()
	var de *wire.DecodeError
	require.ErrorAs(t, err, &de)
	require.Equal(t, want, de.Reason, err.Error())
}

func ownBitlist8(b []byte) ([]byte, *wire.Root, error) {
	_, err := wire.BitlistLen(b, 8)

	return b, nil, err
}

func ownCheckpoint(b []byte) ([]byte, *wire.Root, error) {
	// A checkpoint travels inside other containers only.
	d, err := wire.DecodeAttestationData(append(append(make([]byte, 8), b...), make([]byte, 80)...))
	if err != nil {
		return nil, nil, err
	}
	root := d.Head.HashTreeRoot()

	return d.Head.AppendSSZ(nil), &root, nil
}

func ownData(b []byte) ([]byte, *wire.Root, error) {
	d, err := wire.DecodeAttestationData(b)
	if err != nil {
		return nil, nil, err
	}
	root := wire.Root(d.HashTreeRoot())

	return d.AppendSSZ(nil), &root, nil
}

func ownAttestation(b []byte) ([]byte, *wire.Root, error) {
	// An attestation travels with its signature only.
	again, _, err := ownSignedAttestation(append(append([]byte(nil), b...), make([]byte, fixtureProfile.SignatureSize)...))
	if err != nil {
		return nil, nil, err
	}

	return again[:len(again)-fixtureProfile.SignatureSize], nil, nil
}

func ownSignedAttestation(b []byte) ([]byte, *wire.Root, error) {
	a, err := fixtureProfile.DecodeAttestation(b)
	if err != nil {
		return nil, nil, err
	}
	again, err := fixtureProfile.EncodeAttestation(a)

	return again, nil, err
}

func ownAggregated(b []byte) ([]byte, *wire.Root, error) {
	a, err := fixtureProfile.DecodeAggregated(b)
	if err != nil {
		return nil, nil, err
	}
	root := a.HashTreeRoot(fixtureProfile)
	body := wire.BlockBody{Attestations: []wire.AggregatedAttestation{a}}

	return body.AppendSSZ(nil)[8:], &root, nil
}

func ownSingleMessage(b []byte) ([]byte, *wire.Root, error) {
	participants, proof, err := fixtureProfile.DecodeSingleMessage(b)
	if err != nil {
		return nil, nil, err
	}

	return wire.AppendSingleMessage(nil, participants.SSZ(), proof), nil, nil
}

func ownMultiMessage(b []byte) ([]byte, *wire.Root, error) {
	proof, err := wire.DecodeMultiMessage(b)

	return append([]byte{4, 0, 0, 0}, proof...), nil, err
}

func ownSignedAggregate(b []byte) ([]byte, *wire.Root, error) {
	a, err := fixtureProfile.DecodeAggregate(b)
	if err != nil {
		return nil, nil, err
	}
	again, err := fixtureProfile.EncodeAggregate(a)

	return again, nil, err
}

func ownBody(b []byte) ([]byte, *wire.Root, error) {
	body, err := fixtureProfile.DecodeBody(b)
	if err != nil {
		return nil, nil, err
	}
	root := body.HashTreeRoot(fixtureProfile)

	return body.AppendSSZ(nil), &root, nil
}

func ownBlock(b []byte) ([]byte, *wire.Root, error) {
	block, err := fixtureProfile.DecodeBlockAlone(b)
	if err != nil {
		return nil, nil, err
	}
	root := block.HashTreeRoot(fixtureProfile)

	return block.AppendSSZ(nil), &root, nil
}

func ownHeader(b []byte) ([]byte, *wire.Root, error) {
	h, err := wire.DecodeBlockHeader(b)
	if err != nil {
		return nil, nil, err
	}
	root := h.HashTreeRoot()

	return h.AppendSSZ(nil), &root, nil
}

func ownSignedBlock(b []byte) ([]byte, *wire.Root, error) {
	sb, err := fixtureProfile.DecodeBlock(b)
	if err != nil {
		return nil, nil, err
	}
	again, err := fixtureProfile.EncodeBlock(sb)

	return again, nil, err
}

func ownValidator(b []byte) ([]byte, *wire.Root, error) {
	v := fixtureProfile.DecodeValidator(b)
	root := v.HashTreeRoot()
	again, err := encodeValidators(fixtureProfile, []wire.Validator{v})

	return again, &root, err
}

func ownValidators(b []byte) ([]byte, *wire.Root, error) {
	validators, err := fixtureProfile.DecodeValidators(b)
	if err != nil {
		return nil, nil, err
	}
	again, err := encodeValidators(fixtureProfile, validators)

	return again, nil, err
}

// encodeValidators returns the registry as it is inside a state without any
// other list.
func encodeValidators(p *wire.Profile, validators []wire.Validator) ([]byte, error) {
	b, err := p.EncodeState(p.GenesisState(0, validators))
	if err != nil {
		return nil, err
	}

	return b[229 : len(b)-1], nil // the fixed part and two empty bitlists
}

func ownState(b []byte) ([]byte, *wire.Root, error) {
	s, err := fixtureProfile.DecodeState(b)
	if err != nil {
		return nil, nil, err
	}
	root, err := s.HashTreeRoot(fixtureProfile)
	if err != nil {
		return nil, nil, err
	}
	again, err := fixtureProfile.EncodeState(s)

	return again, &root, err
}

func ownStatus(b []byte) ([]byte, *wire.Root, error) {
	s, err := wire.DecodeStatus(b)

	return s.AppendSSZ(nil), nil, err
}

func ownBlocksByRoot(b []byte) ([]byte, *wire.Root, error) {
	r, err := wire.DecodeBlocksByRoot(b)

	return r.AppendSSZ(nil), nil, err
}
