package wire_test

import (
	"encoding/binary"
	"testing"

	dynssz "github.com/pk910/dynamic-ssz"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// The containers once more, declared for an independent SSZ library. The hand
// written code is compared with it on the fixtures and on random values.
type (
	sszCheckpoint struct {
		Root []byte `ssz-size:"32"`
		Slot uint64
	}
	sszData struct {
		Slot                 uint64
		Head, Target, Source sszCheckpoint
	}
	sszAttestation struct {
		ValidatorIndex uint64
		Data           sszData
	}
	sszSignedAttestation struct {
		ValidatorIndex uint64
		Data           sszData
		Signature      []byte `ssz-size:"1208" dynssz-size:"SIGNATURE_SIZE"`
	}
	sszAggregated struct {
		Bits []byte `ssz-type:"bitlist" ssz-max:"4096" dynssz-max:"REGISTRY_LIMIT"`
		Data sszData
	}
	sszSingle struct {
		Participants []byte `ssz-type:"bitlist" ssz-max:"4096" dynssz-max:"REGISTRY_LIMIT"`
		Proof        []byte `ssz-max:"524288"`
	}
	sszSignedAggregate struct {
		Data  sszData
		Proof sszSingle
	}
	sszMulti struct {
		Proof []byte `ssz-max:"524288"`
	}
	sszBody struct {
		Attestations []*sszAggregated `ssz-max:"4096" dynssz-max:"REGISTRY_LIMIT"`
	}
	sszBlock struct {
		Slot, ProposerIndex   uint64
		ParentRoot, StateRoot []byte `ssz-size:"32"`
		Body                  sszBody
	}
	sszSignedBlock struct {
		Block sszBlock
		Proof sszMulti
	}
	sszBlockProof struct {
		ProposerSignature []byte `ssz-size:"1208" dynssz-size:"SIGNATURE_SIZE"`
		Attestations      sszMulti
	}
	sszPairBlock struct {
		Block sszBlock
		Proof sszBlockProof
	}
	sszBodyProof struct {
		Body  sszBody
		Proof sszMulti
	}
	sszHeader struct {
		Slot, ProposerIndex             uint64
		ParentRoot, StateRoot, BodyRoot []byte `ssz-size:"32"`
	}
	sszConfig    struct{ GenesisTime uint64 }
	sszValidator struct {
		AttestationKey []byte `ssz-size:"32" dynssz-size:"PUBLIC_KEY_SIZE"`
		ProposalKey    []byte `ssz-size:"32" dynssz-size:"PUBLIC_KEY_SIZE"`
		Index          uint64
	}
	sszState struct {
		Config                   sszConfig
		Slot                     uint64
		LatestBlockHeader        sszHeader
		LatestJustified          sszCheckpoint
		LatestFinalized          sszCheckpoint
		HistoricalBlockHashes    [][]byte        `ssz-size:"?,32" ssz-max:"262144"`
		JustifiedSlots           []byte          `ssz-type:"bitlist" ssz-max:"262144"`
		Validators               []*sszValidator `ssz-max:"4096" dynssz-max:"REGISTRY_LIMIT"`
		JustificationsRoots      [][]byte        `ssz-size:"?,32" ssz-max:"262144"`
		JustificationsValidators []byte          `ssz-type:"bitlist" ssz-max:"1073741824" dynssz-max:"VOTES_LIMIT"`
	}
	sszStatus       struct{ Finalized, Head sszCheckpoint }
	sszBlocksByRoot struct {
		Roots [][]byte `ssz-size:"?,32" ssz-max:"1024"`
	}
	sszBlocksByRange struct{ StartSlot, Count uint64 }

	// The key and signature containers of devnet-4, at the sizes of the
	// fixtures; on the wire they are opaque to this package.
	sszDigest    struct{ V [8]uint32 }
	sszPublicKey struct {
		Root      [8]uint32
		Parameter [5]uint32
	}
	sszOpening struct {
		Siblings []*sszDigest `ssz-max:"32"`
	}
	sszLayer struct {
		StartIndex uint64
		Nodes      []*sszDigest `ssz-max:"32"`
	}
	sszSignature struct {
		Path   sszOpening
		Rho    [7]uint32
		Hashes []*sszDigest `ssz-max:"32"`
	}
)

// The bare types of the fixtures, each as the one field of a container, which
// has the root of its field.
type (
	sszBool     struct{ V bool }
	sszUint8    struct{ V uint8 }
	sszUint16   struct{ V uint16 }
	sszUint32   struct{ V uint32 }
	sszUint64   struct{ V uint64 }
	sszBytes4   struct{ V [4]byte }
	sszBytes32  struct{ V [32]byte }
	sszBytes52  struct{ V [52]byte }
	sszBytes64  struct{ V [64]byte }
	sszUint16x3 struct{ V [3]uint16 }
	sszUint64x4 struct{ V [4]uint64 }
	sszBits1    struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"1"`
	}
	sszBits7 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"7"`
	}
	sszBits8 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"8"`
	}
	sszBits9 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"9"`
	}
	sszBits16 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"16"`
	}
	sszBits64 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"64"`
	}
	sszBits255 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"255"`
	}
	sszBits256 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"256"`
	}
	sszBits257 struct {
		V []byte `ssz-type:"bitvector" ssz-bitsize:"257"`
	}
	sszBitlist8 struct {
		V []byte `ssz-type:"bitlist" ssz-max:"8"`
	}
	sszBitlist16 struct {
		V []byte `ssz-type:"bitlist" ssz-max:"16"`
	}
	sszBitlist256 struct {
		V []byte `ssz-type:"bitlist" ssz-max:"256"`
	}
	sszByteList struct {
		V []byte `ssz-max:"524288"`
	}
	sszUint32s struct {
		V []uint32 `ssz-max:"16"`
	}
	sszUint64s struct {
		V []uint64 `ssz-max:"32"`
	}
	sszBytes32s struct {
		V [][]byte `ssz-size:"?,32" ssz-max:"8"`
	}
	sszValidators struct {
		V []*sszValidator `ssz-max:"4096" dynssz-max:"REGISTRY_LIMIT"`
	}
	sszParticipant struct {
		V []byte `ssz-type:"bitlist" ssz-max:"4096" dynssz-max:"REGISTRY_LIMIT"`
	}
)

// oracle decodes b, encodes the result again and returns its root.
type oracle func(ds *dynssz.DynSsz, b []byte) (again []byte, root wire.Root, err error)

// container returns the oracle of a container type.
func container[T any](ds *dynssz.DynSsz, b []byte) (again []byte, root wire.Root, err error) {
	v := new(T)
	if err = ds.UnmarshalSSZ(v, b); err != nil {
		return nil, root, err
	}
	if again, err = ds.MarshalSSZ(v); err != nil {
		return nil, root, err
	}
	root, err = ds.HashTreeRoot(v)

	return again, root, err
}

// bareList returns the oracle of a variable-size type that is the one field of
// a container T: the offset in front is not part of the type.
func bareList[T any](ds *dynssz.DynSsz, b []byte) (again []byte, root wire.Root, err error) {
	again, root, err = container[T](ds, append(binary.LittleEndian.AppendUint32(nil, 4), b...))
	if err != nil {
		return nil, root, err
	}

	return again[4:], root, nil
}

// oracleFor returns the library with the sizes and limits of the profile.
func oracleFor(p *wire.Profile) *dynssz.DynSsz {
	return dynssz.NewDynSsz(map[string]any{
		"PUBLIC_KEY_SIZE": uint64(p.PublicKeySize),
		"SIGNATURE_SIZE":  uint64(p.SignatureSize),
		"REGISTRY_LIMIT":  uint64(p.RegistryLimit),
		"VOTES_LIMIT":     wire.HistoricalRootsLimit * uint64(p.RegistryLimit),
	})
}

// requireOracle checks that the library reads b, writes it again and, where root
// is not nil, finds the same root.
func requireOracle(t testing.TB, p *wire.Profile, o oracle, b []byte, root *wire.Root) {
	t.Helper()
	again, r, err := o(oracleFor(p), b)
	require.NoError(t, err)
	require.Equal(t, b, again)
	if root != nil {
		require.Equal(t, *root, r)
	}
}
