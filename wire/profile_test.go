package wire_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"devnet5", "lean-pq", "local"}, wire.ProfileNames())
	tests := []struct {
		name, scheme string
		want         wire.Profile
	}{
		{"devnet5", "", wire.Profile{Scheme: "blake2s", SignatureSize: 1208, Envelope: wire.EnvelopeMerged}},
		{"devnet5", "blake2s", wire.Profile{Scheme: "blake2s", SignatureSize: 1208, Envelope: wire.EnvelopeMerged}},
		{"lean-pq", "", wire.Profile{Scheme: "keccak", SignatureSize: 2404, Envelope: wire.EnvelopePair}},
		{"local", "", wire.Profile{Scheme: "blake2s", SignatureSize: 1208, Envelope: wire.EnvelopePair, AllowsBundle: true}},
		{"local", "keccak", wire.Profile{Scheme: "keccak", SignatureSize: 2404, Envelope: wire.EnvelopePair, AllowsBundle: true}},
	}
	for _, tt := range tests {
		p, err := wire.LookupProfile(tt.name, tt.scheme)
		require.NoError(t, err)
		tt.want.Name, tt.want.PublicKeySize, tt.want.RegistryLimit, tt.want.MaxAttestationsData = tt.name, 32, 4096, 8
		require.Equal(t, &tt.want, p)
	}
	for name, tt := range map[string]struct{ name, scheme, want string }{
		"an unknown profile": {"devnet6", "", `unknown profile "devnet6": must be one of devnet5, lean-pq, local`},
		"no profile":         {"", "", `unknown profile ""`},
		"another scheme":     {"lean-pq", "blake2s", `profile "lean-pq" has no scheme "blake2s": must be keccak`},
		"an unknown scheme":  {"local", "poseidon", `profile "local" has no scheme "poseidon": must be blake2s or keccak`},
	} {
		_, err := wire.LookupProfile(tt.name, tt.scheme)
		require.ErrorContains(t, err, tt.want, name)
	}
}

func TestEnvelopeNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "unknown", wire.EnvelopeUnknown.String())
	require.Equal(t, "merged", wire.EnvelopeMerged.String())
	require.Equal(t, "pair", wire.EnvelopePair.String())
	require.Equal(t, "invalid", wire.Envelope(7).String())
}

func TestReasonsAreComplete(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{wire.ReasonNone.String(): true}
	for _, r := range wire.Reasons() {
		require.NotEqual(t, wire.ReasonNone, r)
		require.Regexp(t, code, r.String())
		require.False(t, seen[r.String()], r.String())
		seen[r.String()] = true
		require.NotEmpty(t, r.Short(), r.String())
		require.Regexp(t, `^[A-Z].*\.$`, r.Long(), r.String())
	}
	for _, want := range []string{
		"malformed", "scheme_mismatch", "unknown_validator", "empty_participants", "bad_signature", "bad_proof", "claim_mismatch", "bad_proposer",
		"bad_checkpoints", "wrong_subnet", "stale", "early", "duplicate", "subsumed", "equivocation", "too_many_for_slot", "queue_full", "evicted",
		"expired", "unknown_head", "unknown_parent", "verifier_unavailable", "internal_error", "stopping", "pool_full", "unverified",
	} {
		require.True(t, seen[want], want)
		delete(seen, want)
	}
	require.Equal(t, map[string]bool{"none": true}, seen)
	require.Equal(t, "no fault", wire.ReasonNone.Short())
	past := wire.Reason(250)
	require.Equal(t, "invalid", past.String())
	require.NotEmpty(t, past.Short())
	require.NotEmpty(t, past.Long())
}

func TestDecodeErrorSaysWhatAndWhere(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "devnet5", "")
	_, err := p.DecodeAttestation(make([]byte, 136+2404))
	var de *wire.DecodeError
	require.True(t, errors.As(err, &de))
	require.Equal(t, "SignedAttestation", de.Container)
	require.Equal(t, "decode SignedAttestation: signature of 2404 bytes belongs to another scheme than blake2s with 1208 (scheme_mismatch)", err.Error())
}

func TestRootsAsText(t *testing.T) {
	t.Parallel()
	r := wire.Root(bytes.Repeat([]byte{0xab}, 32))
	require.Equal(t, "abababab", r.Short())
	require.Equal(t, "0x"+string(bytes.Repeat([]byte("ab"), 32)), r.String())
	require.Equal(t, r.String(), wire.DataRoot(r).String())
	require.Equal(t, r.Short(), wire.DataRoot(r).Short())
	require.False(t, r.IsZero())
	require.True(t, wire.Root{}.IsZero())
}

func TestSlotsThatCanBeSigned(t *testing.T) {
	t.Parallel()
	for slot, want := range map[wire.Slot]bool{0: true, 1<<32 - 1: true, 1 << 32: false, 1<<64 - 1: false} {
		epoch, ok := slot.Epoch()
		require.Equal(t, want, ok)
		if ok {
			require.Equal(t, uint64(slot), uint64(epoch))
		}
	}
	require.Equal(t, 12234442, wire.MaxMessageSize)
}
