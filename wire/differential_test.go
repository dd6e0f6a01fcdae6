package wire_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// random makes containers with random content.
type random struct{ *rand.Rand }

func (r random) root() (out wire.Root) { return wire.Root(r.bytes(32)) }

func (r random) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}

	return b
}

func (r random) checkpoint() wire.Checkpoint {
	return wire.Checkpoint{Root: r.root(), Slot: wire.Slot(r.Uint64())}
}

func (r random) data() wire.AttestationData {
	return wire.AttestationData{Slot: wire.Slot(r.Uint64()), Head: r.checkpoint(), Target: r.checkpoint(), Source: r.checkpoint()}
}

// participants returns a set of up to n indices below the profile's limit,
// decoded from an encoding that may be padded.
func (r random) participants(t testing.TB, p *wire.Profile, n int) wire.Participants {
	t.Helper()
	indices := make([]wire.ValidatorIndex, 1+r.IntN(n))
	for i := range indices {
		indices[i] = wire.ValidatorIndex(r.IntN(p.RegistryLimit))
	}
	set := participants(t, indices...)
	room := p.RegistryLimit - set.Len()
	if room == 0 || r.IntN(2) == 0 {
		return set
	}
	length := set.Len() + 1 + r.IntN(min(room, 80))
	b := make([]byte, length/8+1)
	copy(b, set.SSZ())
	b[set.Len()/8] &^= 1 << (set.Len() % 8)
	b[length/8] |= 1 << (length % 8)
	set, err := p.DecodeParticipants(b)
	require.NoError(t, err)
	require.Equal(t, length, set.Len())

	return set
}

// validators returns a registry of n.
func (r random) validators(p *wire.Profile, n int) []wire.Validator {
	out := make([]wire.Validator, n)
	for i := range out {
		out[i] = wire.Validator{AttestationKey: r.bytes(p.PublicKeySize), ProposalKey: r.bytes(p.PublicKeySize), Index: wire.ValidatorIndex(i)}
	}

	return out
}

func (r random) block(t testing.TB, p *wire.Profile) *wire.SignedBlock {
	t.Helper()
	sb := &wire.SignedBlock{
		Block: wire.Block{Slot: wire.Slot(r.Uint64()), ProposerIndex: wire.ValidatorIndex(r.Uint64()), ParentRoot: r.root(), StateRoot: r.root()},
		Proof: r.bytes(r.IntN(300)),
	}
	for range r.IntN(6) {
		sb.Block.Body.Attestations = append(sb.Block.Body.Attestations,
			wire.AggregatedAttestation{Participants: r.participants(t, p, 40), Data: r.data()})
	}
	if p.Envelope == wire.EnvelopePair {
		sb.ProposerSignature = r.bytes(p.SignatureSize)
	}

	return sb
}

func (r random) state(p *wire.Profile) *wire.State {
	s := &wire.State{
		GenesisTime: r.Uint64(), Slot: wire.Slot(r.Uint64()),
		LatestBlockHeader: wire.BlockHeader{Slot: wire.Slot(r.Uint64()), ProposerIndex: 3, ParentRoot: r.root(), StateRoot: r.root(), BodyRoot: r.root()},
		LatestJustified:   r.checkpoint(), LatestFinalized: r.checkpoint(),
		JustifiedSlots:           append(r.bytes(r.IntN(80)), 1<<r.IntN(8)),
		JustificationsValidators: append(r.bytes(r.IntN(800)), 1<<r.IntN(8)|1),
	}
	for range r.IntN(9) {
		s.HistoricalBlockHashes = append(s.HistoricalBlockHashes, r.root())
		s.JustificationsRoots = append(s.JustificationsRoots, r.root())
	}
	s.Validators = r.validators(p, 1+r.IntN(20))

	return s
}

// TestAgainstTheLibrary encodes random containers of all profiles and checks
// that the library reads the same bytes and finds the same roots.
func TestAgainstTheLibrary(t *testing.T) {
	t.Parallel()
	profiles := []*wire.Profile{
		fixtureProfile,
		profileNamed(t, "devnet5", ""),
		profileNamed(t, "devnet5", "").WithEnvelope(wire.EnvelopePair),
		profileNamed(t, "lean-pq", ""),
		limited(t, wire.MaxRegistryLimit),
	}
	r := random{rand.New(rand.NewPCG(3, 4))}
	for range 12 {
		for _, p := range profiles {
			data := r.data()
			root := wire.Root(data.HashTreeRoot())
			requireOracle(t, p, container[sszData], data.AppendSSZ(nil), &root)

			vote := &wire.SignedAttestation{ValidatorIndex: wire.ValidatorIndex(r.Uint64()), Data: data, Signature: r.bytes(p.SignatureSize)}
			b := must(p.EncodeAttestation(vote))
			requireOracle(t, p, container[sszSignedAttestation], b, nil)
			decodedVote, err := p.DecodeAttestation(b)
			require.NoError(t, err)
			require.Equal(t, vote, decodedVote)

			aggregate := &wire.SignedAggregate{Data: data, Participants: r.participants(t, p, 200), Proof: r.bytes(r.IntN(500))}
			b = must(p.EncodeAggregate(aggregate))
			requireOracle(t, p, container[sszSignedAggregate], b, nil)
			decoded, err := p.DecodeAggregate(b)
			require.NoError(t, err)
			require.True(t, aggregate.Participants.Equal(decoded.Participants))
			require.Equal(t, aggregate.Proof, decoded.Proof)

			block := r.block(t, p)
			envelope := container[sszSignedBlock]
			if p.Envelope == wire.EnvelopePair {
				envelope = container[sszPairBlock]
			}
			b = must(p.EncodeBlock(block))
			requireOracle(t, p, envelope, b, nil)
			decodedBlock, err := p.DecodeBlock(b)
			require.NoError(t, err)
			require.Equal(t, block, decodedBlock)
			root = block.Block.HashTreeRoot(p)
			requireOracle(t, p, container[sszBlock], block.Block.AppendSSZ(nil), &root)
			root = block.Block.Body.HashTreeRoot(p)
			requireOracle(t, p, container[sszBody], block.Block.Body.AppendSSZ(nil), &root)
			header := block.Block.Header(p)
			root = block.Block.HashTreeRoot(p)
			requireOracle(t, p, container[sszHeader], header.AppendSSZ(nil), &root)

			state := r.state(p)
			root, err = state.HashTreeRoot(p)
			require.NoError(t, err)
			b = must(p.EncodeState(state))
			requireOracle(t, p, container[sszState], b, &root)
			decodedState, err := p.DecodeState(b)
			require.NoError(t, err)
			require.Equal(t, state, decodedState)
		}
	}
}

func TestStatesThatCannotBeHashed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		state *wire.State
		want  string
	}{
		"too many validators":  {&wire.State{Validators: make([]wire.Validator, 4097)}, "4097 validators"},
		"too long a history":   {&wire.State{HistoricalBlockHashes: make([]wire.Root, 1<<18+1)}, "historical block hashes"},
		"too many pending":     {&wire.State{JustificationsRoots: make([]wire.Root, 1<<18+1)}, "justification roots"},
		"too many slots":       {&wire.State{JustifiedSlots: append(make([]byte, 1<<15), 2)}, "justified slots"},
		"slots without end":    {&wire.State{JustifiedSlots: []byte{0}}, "justified slots"},
		"votes without an end": {&wire.State{JustificationsValidators: []byte{}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.state.HashTreeRoot(fixtureProfile)
			if tt.want == "" {
				require.NoError(t, err)

				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, _, err := fixtureProfile.GenesisBlock(0, make([]wire.Validator, 4097))
	require.ErrorContains(t, err, "4097 validators")
	p := profileNamed(t, "devnet5", "")
	_, err = p.EncodeState(p.GenesisState(0, []wire.Validator{{AttestationKey: make([]byte, 52)}}))
	require.ErrorContains(t, err, "validator 0 has keys of 52 and 0 bytes, profile devnet5 has 32")
}
