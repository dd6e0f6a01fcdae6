package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// fuzzDecoder fuzzes the named decoder: what it accepts encodes to the same
// bytes, what it refuses has a reason.
func fuzzDecoder(f *testing.F, name string, seeds ...[]byte) {
	f.Helper()
	for _, d := range decoders(f) {
		if d.name != name {
			continue
		}
		f.Add(d.seed)
		for _, s := range seeds {
			f.Add(s)
		}
		f.Fuzz(func(t *testing.T, b []byte) { requireSound(t, d, b) })

		return
	}
	f.Fatalf("no decoder %q", name)
}

func FuzzDecodeAttestation(f *testing.F) {
	fuzzDecoder(f, "SignedAttestation", make([]byte, 136+2404))
}

func FuzzDecodeAggregate(f *testing.F) {
	fuzzDecoder(f, "SignedAggregatedAttestation")
}

func FuzzDecodeBlockMerged(f *testing.F) {
	fuzzDecoder(f, "SignedBlock, merged", must(profileNamed(f, "devnet5", "").EncodeBlock(&wire.SignedBlock{})))
}

func FuzzDecodeBlockPair(f *testing.F) {
	fuzzDecoder(f, "SignedBlock, pair")
}

func FuzzDecodeState(f *testing.F) {
	fuzzDecoder(f, "State", must(profileNamed(f, "devnet5", "").EncodeState(&wire.State{})))
}

func FuzzDecodeBlocksByRoot(f *testing.F) {
	fuzzDecoder(f, "BlocksByRootRequest")
}

func FuzzDecodeParticipants(f *testing.F) {
	f.Add([]byte{0x01})
	f.Add([]byte{0x09, 0x03})
	f.Add(append(make([]byte, 512), 0x01))
	f.Add(append(make([]byte, 2047), 0x80, 0x01))
	wide := limited(f, wire.MaxRegistryLimit)
	f.Fuzz(func(t *testing.T, b []byte) {
		widest, past := wide.DecodeParticipants(b)
		p, err := wire.DecodeParticipants(b)
		if past == nil && widest.Len() > wire.DefaultRegistryLimit {
			requireReason(t, wire.ReasonMalformed, err)
			p, err = widest, nil
		}
		if err != nil {
			requireReason(t, wire.ReasonMalformed, err)
			requireReason(t, wire.ReasonMalformed, past)

			return
		}
		require.Equal(t, widest, p)
		require.Equal(t, b, p.AppendReceived(nil))
		same, err := wire.NewParticipants(p.Indices())
		require.NoError(t, err)
		require.True(t, p.Equal(same))
		require.Equal(t, same.SSZ(), p.SSZ())
		require.LessOrEqual(t, len(p.SSZ()), len(b))
		again, err := wide.DecodeParticipants(p.SSZ())
		require.NoError(t, err)
		require.Equal(t, same, again)
	})
}
