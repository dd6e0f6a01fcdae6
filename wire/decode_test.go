package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// decoder is one decoder for bytes from the network; again encodes what it read.
type decoder struct {
	name   string
	decode func(b []byte) (again []byte, err error)
	seed   []byte
}

// signature returns a signature of the profile's length.
func signature(p *wire.Profile) []byte { return bytes.Repeat([]byte{0x55}, p.SignatureSize) }

// sampleData is attestation data with no zero field.
func sampleData() wire.AttestationData {
	root := func(b byte) wire.Root { return wire.Root(bytes.Repeat([]byte{b}, 32)) }

	return wire.AttestationData{
		Slot:   7,
		Head:   wire.Checkpoint{Root: root(1), Slot: 6},
		Target: wire.Checkpoint{Root: root(2), Slot: 5},
		Source: wire.Checkpoint{Root: root(3), Slot: 4},
	}
}

// sampleBlock is a block with two attestations in the profile's envelope.
func sampleBlock(t testing.TB, p *wire.Profile) *wire.SignedBlock {
	t.Helper()
	sb := &wire.SignedBlock{
		Block: wire.Block{
			Slot: 9, ProposerIndex: 1, ParentRoot: wire.Root{0x11}, StateRoot: wire.Root{0x22},
			Body: wire.BlockBody{Attestations: []wire.AggregatedAttestation{
				{Participants: participants(t, 0, 3, 8), Data: sampleData()},
				{Participants: participants(t, 5), Data: wire.AttestationData{Slot: 8}},
			}},
		},
		Proof: []byte{0xdd, 0xee},
	}
	if p.Envelope == wire.EnvelopePair {
		sb.ProposerSignature = signature(p)
	}

	return sb
}

// must returns the encoding of a sample, which cannot fail.
func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}

	return b
}

// decoders returns every decoder of gossip and request/response payloads.
func decoders(t testing.TB) []decoder {
	t.Helper()
	merged := profileNamed(t, "devnet5", "")
	pair := profileNamed(t, "lean-pq", "")
	validators := []wire.Validator{
		{AttestationKey: bytes.Repeat([]byte{1}, 32), ProposalKey: bytes.Repeat([]byte{2}, 32)},
		{AttestationKey: bytes.Repeat([]byte{3}, 32), ProposalKey: bytes.Repeat([]byte{4}, 32), Index: 1},
	}
	state := merged.GenesisState(1700000000, validators)
	state.HistoricalBlockHashes = []wire.Root{{1}, {2}}
	state.JustifiedSlots = []byte{0x0d}
	state.JustificationsRoots = []wire.Root{{3}}
	state.JustificationsValidators = []byte{0x02, 0x01}
	root := (&wire.BlocksByRootRequest{Roots: []wire.Root{{1}, {2}}}).AppendSSZ(nil)

	blockDecoder := func(p *wire.Profile) func(b []byte) ([]byte, error) {
		return func(b []byte) ([]byte, error) {
			sb, err := p.DecodeBlock(b)
			if err != nil {
				return nil, err
			}

			return p.EncodeBlock(sb)
		}
	}

	return []decoder{
		{"AttestationData", func(b []byte) ([]byte, error) {
			again, _, err := ownData(b)

			return again, err
		}, func() []byte { d := sampleData(); return d.AppendSSZ(nil) }()},
		{"SignedAttestation", func(b []byte) ([]byte, error) {
			a, err := merged.DecodeAttestation(b)
			if err != nil {
				return nil, err
			}

			return merged.EncodeAttestation(a)
		}, must(merged.EncodeAttestation(&wire.SignedAttestation{ValidatorIndex: 3, Data: sampleData(), Signature: signature(merged)}))},
		{"SignedAggregatedAttestation", func(b []byte) ([]byte, error) {
			a, err := merged.DecodeAggregate(b)
			if err != nil {
				return nil, err
			}
			if a.Participants.Len() != int(highest(a.Participants))+1 {
				// Padded: what we emit is shorter, and reads as the same.
				again := must(merged.EncodeAggregate(a))
				c, err := merged.DecodeAggregate(again)
				if err != nil || !c.Participants.Equal(a.Participants) || c.Data != a.Data || !bytes.Equal(c.Proof, a.Proof) {
					return nil, errors.New("shortest form reads differently")
				}

				return b, nil
			}

			return merged.EncodeAggregate(a)
		}, must(merged.EncodeAggregate(&wire.SignedAggregate{Data: sampleData(), Participants: participants(t, 0, 3, 8), Proof: []byte{0xaa, 0xbb, 0xcc}}))},
		{"SignedBlock, merged", blockDecoder(merged), must(merged.EncodeBlock(sampleBlock(t, merged)))},
		{"SignedBlock, pair", blockDecoder(pair), must(pair.EncodeBlock(sampleBlock(t, pair)))},
		{"State", func(b []byte) ([]byte, error) {
			s, err := merged.DecodeState(b)
			if err != nil {
				return nil, err
			}
			if _, err := s.HashTreeRoot(merged); err != nil {
				return nil, err
			}

			return merged.EncodeState(s)
		}, must(merged.EncodeState(state))},
		{"BlockHeader", func(b []byte) ([]byte, error) {
			again, _, err := ownHeader(b)

			return again, err
		}, (&wire.BlockHeader{Slot: 1, BodyRoot: wire.Root{9}}).AppendSSZ(nil)},
		{"Status", func(b []byte) ([]byte, error) {
			s, err := wire.DecodeStatus(b)

			return s.AppendSSZ(nil), err
		}, (&wire.Status{Head: wire.Checkpoint{Slot: 4}}).AppendSSZ(nil)},
		{"BlocksByRootRequest", func(b []byte) ([]byte, error) {
			r, err := wire.DecodeBlocksByRoot(b)

			return r.AppendSSZ(nil), err
		}, root},
		{"BlocksByRangeRequest", func(b []byte) ([]byte, error) {
			r, err := wire.DecodeBlocksByRange(b)

			return r.AppendSSZ(nil), err
		}, (&wire.BlocksByRangeRequest{StartSlot: 5, Count: 16}).AppendSSZ(nil)},
	}
}

// highest returns the largest index of a set that is not empty.
func highest(p wire.Participants) wire.ValidatorIndex {
	v, _ := p.Highest()

	return v
}

// requireSound checks that the decoder either refuses with a reason or reads the
// bytes in full: what it read encodes to the same bytes.
func requireSound(t testing.TB, d decoder, b []byte) {
	t.Helper()
	again, err := d.decode(b)
	if err != nil {
		var de *wire.DecodeError
		require.ErrorAs(t, err, &de)
		require.Contains(t, []wire.Reason{wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonEmptyParticipants}, de.Reason)

		return
	}
	require.Equal(t, b, again)
}

// TestDecodersOnDamagedBytes cuts, extends and alters every byte of a sample of
// every container.
func TestDecodersOnDamagedBytes(t *testing.T) {
	t.Parallel()
	for _, d := range decoders(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			again, err := d.decode(d.seed)
			require.NoError(t, err)
			require.Equal(t, d.seed, again)
			for n := range d.seed {
				requireSound(t, d, d.seed[:n])
			}
			for _, tail := range [][]byte{{0}, {1}, {0xff}, make([]byte, 32)} {
				requireSound(t, d, slices.Concat(d.seed, tail))
			}
			for i := range d.seed {
				for _, bit := range []byte{0x01, 0x04, 0x80, 0xff} {
					b := slices.Clone(d.seed)
					b[i] ^= bit
					requireSound(t, d, b)
				}
			}
		})
	}
}

// TestOffsetRules puts wrong offsets wherever a container has one. Each is
// refused by the rule itself, with the same reason.
func TestOffsetRules(t *testing.T) {
	t.Parallel()
	// Where each sample has its offsets: container and position.
	positions := map[string][]int{
		"SignedAggregatedAttestation": {128, 132, 136},
		// SignedBlock, Block, BlockBody, the list, its elements, the proof.
		"SignedBlock, merged": {0, 4, 8 + 80, 8 + 84, 8 + 88, 8 + 92, 8 + 96, 8 + 96 + 134},
		"SignedBlock, pair":   {0, 4, 8 + 80, 8 + 84, 8 + 88, 8 + 92, 8 + 96, 8 + 96 + 134},
		"State":               {208, 212, 216, 220, 224},
		"BlocksByRootRequest": {0},
	}
	for _, d := range decoders(t) {
		for _, at := range positions[d.name] {
			original := binary.LittleEndian.Uint32(d.seed[at:])
			size := uint32(len(d.seed))
			for _, off := range []uint32{
				0, 2, 5, original - 1, original + 1, original - 4, original + 4, size + 4, size + 1, 1 << 31, 1<<32 - 1, 1<<32 - 4,
			} {
				if off == original {
					continue
				}
				b := slices.Clone(d.seed)
				binary.LittleEndian.PutUint32(b[at:], off)
				_, err := d.decode(b)
				if (off == original+1 || off == original-1 || off == original+4 || off == original-4) && err == nil {
					// A border between two fields that may lie elsewhere.
					requireSound(t, d, b)

					continue
				}
				var de *wire.DecodeError
				require.ErrorAs(t, err, &de, "%s: offset %d at %d instead of %d", d.name, off, at, original)
				require.NotEqual(t, wire.ReasonNone, de.Reason)
			}
		}
	}
}

// TestHostileLengthsDoNotAllocate gives the decoders small messages that claim
// to be huge.
func TestHostileLengthsDoNotAllocate(t *testing.T) {
	// Not parallel: it measures the heap.
	claims := make([]byte, 0, 64)
	for range 16 {
		claims = binary.LittleEndian.AppendUint32(claims, 0xfffffffc)
	}
	for _, d := range decoders(t) {
		inputs := [][]byte{claims, d.seed[:min(len(d.seed), 20)]}
		for at := 0; at+4 <= min(len(d.seed), 512); at += 4 {
			b := slices.Clone(d.seed)
			binary.LittleEndian.PutUint32(b[at:], 0xfffffffc)
			inputs = append(inputs, b)
		}
		for _, b := range inputs {
			require.Less(t, allocated(func() { _, _ = d.decode(b) }), uint64(16*len(b)+64<<10), d.name)
		}
	}
}

// TestAllocationIsAMultipleOfTheInput decodes the largest well-formed inputs.
func TestAllocationIsAMultipleOfTheInput(t *testing.T) {
	// Not parallel: it measures the heap.
	p := profileNamed(t, "devnet5", "")
	block := &wire.SignedBlock{}
	for range p.RegistryLimit {
		block.Block.Body.Attestations = append(block.Block.Body.Attestations, wire.AggregatedAttestation{Participants: participants(t, 0)})
	}
	b := must(p.EncodeBlock(block))
	require.Less(t, allocated(func() {
		_, err := p.DecodeBlock(b)
		require.NoError(t, err)
	}), uint64(4*len(b)))

	a := must(p.EncodeAggregate(&wire.SignedAggregate{Participants: participants(t, 4095), Proof: make([]byte, wire.MaxProofSize)}))
	require.Less(t, allocated(func() {
		_, err := p.DecodeAggregate(a)
		require.NoError(t, err)
	}), uint64(4096), "the proof is not copied")
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

func TestAttestationLengths(t *testing.T) {
	t.Parallel()
	blake := profileNamed(t, "devnet5", "")
	keccak := profileNamed(t, "lean-pq", "")
	for size, want := range map[int]wire.Reason{
		0: wire.ReasonMalformed, 135: wire.ReasonMalformed, 136: wire.ReasonMalformed, 1343: wire.ReasonMalformed, 1345: wire.ReasonMalformed,
		136 + 2404: wire.ReasonSchemeMismatch, 136 + 2536: wire.ReasonSchemeMismatch, 136 + 1212: wire.ReasonSchemeMismatch,
		1 << 20: wire.ReasonMalformed,
	} {
		_, err := blake.DecodeAttestation(make([]byte, size))
		requireReason(t, want, err)
	}
	_, err := keccak.DecodeAttestation(make([]byte, 1344))
	requireReason(t, wire.ReasonSchemeMismatch, err)
	_, err = blake.EncodeAttestation(&wire.SignedAttestation{Signature: make([]byte, 2404)})
	require.ErrorContains(t, err, "signature of 2404 bytes, profile devnet5 has 1208")
}

func TestAggregateParticipants(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "local", wire.SchemeKeccak)
	data := sampleData()
	encode := func(bits []byte) []byte {
		b := data.AppendSSZ(nil)
		b = binary.LittleEndian.AppendUint32(b, 132)

		return wire.AppendSingleMessage(b, bits, []byte{1})
	}
	for _, bits := range [][]byte{{0x01}, {0x10}, append(make([]byte, 512), 0x01)} {
		_, err := p.DecodeAggregate(encode(bits))
		requireReason(t, wire.ReasonEmptyParticipants, err)
		_, err = p.DecodeLooseAggregate(encode(bits))
		require.NoError(t, err)
	}
	a, err := p.DecodeAggregate(encode(append([]byte{0x09}, append(make([]byte, 500), 0x01)...)))
	require.NoError(t, err)
	require.Equal(t, []wire.ValidatorIndex{0, 3}, a.Participants.Indices())
	require.Equal(t, encode([]byte{0x19}), must(p.EncodeAggregate(a)), "the shortest form is emitted")

	_, err = p.EncodeAggregate(&wire.SignedAggregate{Data: data})
	require.ErrorContains(t, err, "no participants")
	_, err = p.EncodeAggregate(&wire.SignedAggregate{Data: data, Participants: participants(t, 1), Proof: make([]byte, wire.MaxProofSize+1)})
	require.ErrorContains(t, err, "proof of 524289 bytes")
	long := encode([]byte{0x03})
	_, err = p.DecodeAggregate(append(long, make([]byte, wire.MaxProofSize)...))
	requireReason(t, wire.ReasonMalformed, err)
	_, err = p.DecodeAggregate(append(long, make([]byte, wire.MaxProofSize-1)...))
	require.NoError(t, err)
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	merged, pair := profileNamed(t, "devnet5", ""), profileNamed(t, "lean-pq", "")

	empty := sampleBlock(t, merged)
	empty.Block.Body.Attestations[1].Participants = wire.Participants{}
	b := must(merged.EncodeBlock(empty))
	_, err := merged.DecodeBlock(b)
	requireReason(t, wire.ReasonEmptyParticipants, err)
	require.ErrorContains(t, err, "attestation 1")
	_, err = merged.DecodeLooseBlock(b)
	require.NoError(t, err)

	other := sampleBlock(t, pair)
	_, err = merged.EncodeBlock(other)
	require.ErrorContains(t, err, "no proposer signature")
	other.ProposerSignature = nil
	_, err = pair.EncodeBlock(other)
	require.ErrorContains(t, err, "signature of 0 bytes, profile lean-pq has 2404")
	other.Proof = make([]byte, wire.MaxProofSize+1)
	_, err = pair.EncodeBlock(other)
	require.ErrorContains(t, err, "proof of 524289 bytes")
	other.Block.Body.Attestations = make([]wire.AggregatedAttestation, 4097)
	other.Proof = nil
	_, err = pair.EncodeBlock(other)
	require.ErrorContains(t, err, "4097 attestations")

	unknown := pair.WithEnvelope(wire.EnvelopeUnknown)
	_, err = unknown.EncodeBlock(sampleBlock(t, merged))
	require.ErrorContains(t, err, "no block envelope")
	_, err = unknown.DecodeBlock(must(merged.EncodeBlock(sampleBlock(t, merged))))
	require.ErrorContains(t, err, "no block envelope")
	require.Equal(t, wire.EnvelopePair, pair.Envelope, "WithEnvelope copies")
}

// TestAPaddedBitlistKeepsItsLengthInABlock decodes a block whose bitlist is
// longer than it need be: root and encoding stay those of the sender.
func TestAPaddedBitlistKeepsItsLengthInABlock(t *testing.T) {
	t.Parallel()
	padded, err := wire.DecodeParticipants([]byte{0x09, 0x00, 0x10})
	require.NoError(t, err)
	block := func(p wire.Participants) wire.Block {
		return wire.Block{Body: wire.BlockBody{Attestations: []wire.AggregatedAttestation{{Participants: p}}}}
	}
	long, short := block(padded), block(participants(t, 0, 3))
	root := long.HashTreeRoot(fixtureProfile)
	require.NotEqual(t, short.HashTreeRoot(fixtureProfile), root)
	requireOracle(t, fixtureProfile, container[sszBlock], long.AppendSSZ(nil), &root)
}
