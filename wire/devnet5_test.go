package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/wire/wiretest"
)

// devnet5File is extra/devnet5_wire.json: the containers of devnet-5 at their
// real sizes, made with leanSpec's SSZ code.
type devnet5File struct {
	Containers []struct {
		Name string       `json:"name"`
		SSZ  wiretest.Hex `json:"ssz"`
		Len  int          `json:"len"`
		Root wiretest.Hex `json:"root"`
	} `json:"containers"`
	Gossip []struct {
		Topic        string       `json:"topic"`
		Uncompressed wiretest.Hex `json:"uncompressed"`
		Wire         wiretest.Hex `json:"wire_snappy_block"`
		IDValid      wiretest.Hex `json:"message_id_valid"`
		InvalidWire  wiretest.Hex `json:"invalid_wire"`
		IDInvalid    wiretest.Hex `json:"message_id_invalid"`
	} `json:"gossip"`
	ReqResp []struct {
		Name string       `json:"name"`
		Wire wiretest.Hex `json:"wire"`
	} `json:"reqresp"`
}

func devnet5(t *testing.T) devnet5File {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(wiretest.VectorsDir(t), "extra", "devnet5_wire.json"))
	require.NoError(t, err)
	var f devnet5File
	require.NoError(t, json.Unmarshal(b, &f))

	return f
}

// profileNamed returns a profile that is known to exist.
func profileNamed(t testing.TB, name, scheme string) *wire.Profile {
	t.Helper()
	p, err := wire.LookupProfile(name, scheme)
	require.NoError(t, err)

	return p
}

// TestDevnet5Containers runs every container of the file and fails on one that
// has no row.
func TestDevnet5Containers(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "devnet5", "")
	pair := p.WithEnvelope(wire.EnvelopePair)
	const genesisTime = 1700000000

	var genesis *wire.State
	for _, c := range devnet5(t).Containers {
		if strings.HasPrefix(c.Name, "GenesisState") {
			var err error
			genesis, err = p.DecodeState(c.SSZ)
			require.NoError(t, err)
		}
	}
	require.NotNil(t, genesis)

	block := func(p *wire.Profile) own {
		return func(b []byte) ([]byte, *wire.Root, error) {
			sb, err := p.DecodeBlock(b)
			if err != nil {
				return nil, nil, err
			}
			again, err := p.EncodeBlock(sb)

			return again, nil, err
		}
	}
	rows := map[string]sszType{
		"Checkpoint":                  {container[sszCheckpoint], ownCheckpoint},
		"AttestationData":             {container[sszData], ownData},
		"AggregationBits{0,3,8}":      {bareList[sszParticipant], ownParticipants},
		"AggregatedAttestation":       {container[sszAggregated], ownAggregated},
		"SingleMessageAggregate":      {container[sszSingle], ownSingleMessage},
		"SignedAggregatedAttestation": {container[sszSignedAggregate], ownSignedAggregate},
		"MultiMessageAggregate":       {container[sszMulti], ownMultiMessage},
		"BlockBody.empty":             {container[sszBody], ownBody},
		"BlockBody.one":               {container[sszBody], ownBody},
		"Block.empty":                 {container[sszBlock], ownBlock},
		"Block.one":                   {container[sszBlock], ownBlock},
		"BlockBodyProof (E2 gossip)":  {container[sszBodyProof], nil},
		"Validator.32":                {oracle: container[sszValidator]},
		"Status":                      {container[sszStatus], ownStatus},
		"BlocksByRootRequest":         {container[sszBlocksByRoot], ownBlocksByRoot},
		"BlocksByRangeRequest":        {container[sszBlocksByRange], ownBlocksByRange},
		"Validators.32 x3":            {oracle: bareList[sszValidators]},
		"SignedBlock.E1 (merged proof)": {
			container[sszSignedBlock], block(p),
		},
		"SignedBlock.E2 (BlockProof, 1208-byte proposer signature of 0x55)": {
			container[sszPairBlock], block(pair),
		},
		"SignedAttestation.1208 (signature bytes 0x55)": {container[sszSignedAttestation], func(b []byte) ([]byte, *wire.Root, error) {
			a, err := p.DecodeAttestation(b)
			if err != nil {
				return nil, nil, err
			}
			again, err := p.EncodeAttestation(a)

			return again, nil, err
		}},
		"GenesisState.32 x3 genesis_time=1700000000": {container[sszState], func([]byte) ([]byte, *wire.Root, error) {
			s := p.GenesisState(genesisTime, genesis.Validators)
			root, err := s.HashTreeRoot(p)
			if err != nil {
				return nil, nil, err
			}
			again, err := p.EncodeState(s)

			return again, &root, err
		}},
		"GenesisBlock for that state": {container[sszBlock], func([]byte) ([]byte, *wire.Root, error) {
			b, root, err := p.GenesisBlock(genesisTime, genesis.Validators)

			return b.AppendSSZ(nil), &root, err
		}},
	}
	for _, c := range devnet5(t).Containers {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			row, ok := rows[c.Name]
			require.True(t, ok, "no row for the container")
			require.Len(t, c.SSZ, c.Len)
			var root *wire.Root
			if len(c.Root) > 0 {
				r := wire.Root(c.Root)
				root = &r
			}
			requireOracle(t, p, row.oracle, c.SSZ, root)
			if row.own == nil {
				return
			}
			again, r, err := row.own(c.SSZ)
			require.NoError(t, err)
			require.Equal(t, []byte(c.SSZ), again)
			if r != nil {
				require.Equal(t, *root, *r)
			}
		})
	}
}

func ownParticipants(b []byte) ([]byte, *wire.Root, error) {
	p, err := wire.DecodeParticipants(b)
	if err != nil {
		return nil, nil, err
	}
	root := p.HashTreeRoot(fixtureProfile)

	return p.SSZ(), &root, nil
}

func ownBlocksByRange(b []byte) ([]byte, *wire.Root, error) {
	r, err := wire.DecodeBlocksByRange(b)

	return r.AppendSSZ(nil), nil, err
}

// TestDevnet5BlockEnvelopesShareTheBlock reads the block of one envelope with
// the other profile, which must be refused and never misread.
func TestDevnet5BlockEnvelopesShareTheBlock(t *testing.T) {
	t.Parallel()
	merged := profileNamed(t, "devnet5", "")
	pair := merged.WithEnvelope(wire.EnvelopePair)
	var e1, e2 []byte
	for _, c := range devnet5(t).Containers {
		switch {
		case strings.HasPrefix(c.Name, "SignedBlock.E1"):
			e1 = c.SSZ
		case strings.HasPrefix(c.Name, "SignedBlock.E2"):
			e2 = c.SSZ
		}
	}
	a, err := merged.DecodeBlock(e1)
	require.NoError(t, err)
	require.Nil(t, a.ProposerSignature)
	b, err := pair.DecodeBlock(e2)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{0x55}, 1208), b.ProposerSignature)
	require.Equal(t, a.Block.HashTreeRoot(merged), b.Block.HashTreeRoot(pair))

	_, err = pair.DecodeBlock(e1)
	requireReason(t, wire.ReasonMalformed, err)
	_, err = merged.DecodeBlock(e2)
	requireReason(t, wire.ReasonMalformed, err)
	keccak := profileNamed(t, "lean-pq", "")
	_, err = keccak.DecodeBlock(e2)
	requireReason(t, wire.ReasonSchemeMismatch, err)
}

func TestDevnet5Gossip(t *testing.T) {
	t.Parallel()
	for _, c := range devnet5(t).Gossip {
		t.Run(c.Topic, func(t *testing.T) {
			t.Parallel()
			got, err := wire.Decompress(c.Wire, wire.MaxPayloadSize)
			require.NoError(t, err)
			require.Equal(t, []byte(c.Uncompressed), got)
			for _, message := range [][]byte{c.Wire, wire.Compress(nil, c.Uncompressed)} {
				id := wire.MessageID(c.Topic, message)
				require.Equal(t, []byte(c.IDValid), id[:])
			}
			id := wire.MessageID(c.Topic, c.InvalidWire)
			require.Equal(t, []byte(c.IDInvalid), id[:])
		})
	}
}

func TestDevnet5RequestResponse(t *testing.T) {
	t.Parallel()
	for _, c := range devnet5(t).ReqResp {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			r := bytes.NewReader(c.Wire)
			switch c.Name {
			case "status request":
				b, err := wire.ReadRequest(r, wire.StatusSize)
				require.NoError(t, err)
				requireStatus(t, b)
			case "status response ok":
				code, b, err := wire.ReadChunk(r, wire.StatusSize)
				require.NoError(t, err)
				require.Equal(t, wire.ResponseSuccess, code)
				requireStatus(t, b)
			case "error 3":
				code, b, err := wire.ReadChunk(r, wire.StatusSize)
				require.NoError(t, err)
				require.Equal(t, wire.ResponseResourceUnavailable, code)
				require.Equal(t, "not here", string(b))
			default:
				t.Fatalf("no row for %q", c.Name)
			}
			rest, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Empty(t, rest)
		})
	}
}

// requireStatus checks that b is the encoding of a status.
func requireStatus(t *testing.T, b []byte) {
	t.Helper()
	s, err := wire.DecodeStatus(b)
	require.NoError(t, err)
	require.Equal(t, b, s.AppendSSZ(nil))
}
