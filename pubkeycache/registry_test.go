package pubkeycache

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/xmss"
)

func TestARegistryThatIsNotSoundIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scheme xmss.Scheme
		change func([]wire.Validator) []wire.Validator
		want   string
	}{
		"no scheme": {xmss.SchemeUnknown, nil, "no signature scheme"},
		"nobody":    {xmss.Keccak, func([]wire.Validator) []wire.Validator { return nil }, "0 validators"},
		"too many": {xmss.Keccak, func([]wire.Validator) []wire.Validator {
			return testValidators(wire.MaxRegistryLimit + 1)
		}, "16385 validators"},
		"gap in the indices": {xmss.Keccak, func(vs []wire.Validator) []wire.Validator {
			vs[3].Index = 4
			return vs
		}, "validator at position 3 has index 4"},
		"short attestation key": {xmss.Keccak, func(vs []wire.Validator) []wire.Validator {
			vs[2].AttestationKey = vs[2].AttestationKey[:31]
			return vs
		}, "attestation key of validator 2 has 31 bytes, scheme keccak has keys of 32"},
		"long proposal key": {xmss.Blake2s, func(vs []wire.Validator) []wire.Validator {
			vs[5].ProposalKey = make([]byte, 52)
			return vs
		}, "proposal key of validator 5 has 52 bytes, scheme blake2s has keys of 32"},
		"both keys of a validator equal": {xmss.Blake2s, func(vs []wire.Validator) []wire.Validator {
			vs[4].ProposalKey = bytes.Clone(vs[4].AttestationKey)
			return vs
		}, "attestation key of validator 4 and proposal key of validator 4 are the same key 0x"},
		"the same attestation key twice": {xmss.Blake2s, func(vs []wire.Validator) []wire.Validator {
			vs[7].AttestationKey = bytes.Clone(vs[1].AttestationKey)
			return vs
		}, "attestation key of validator 1 and attestation key of validator 7 are the same key"},
		"the same proposal key twice": {xmss.Blake2s, func(vs []wire.Validator) []wire.Validator {
			vs[7].ProposalKey = bytes.Clone(vs[6].ProposalKey)
			return vs
		}, "proposal key of validator 6 and proposal key of validator 7 are the same key"},
		"a key in two roles": {xmss.Blake2s, func(vs []wire.Validator) []wire.Validator {
			vs[0].ProposalKey = bytes.Clone(vs[7].AttestationKey)
			return vs
		}, "proposal key of validator 0 and attestation key of validator 7 are the same key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vs := testValidators(8)
			if tc.change != nil {
				vs = tc.change(vs)
			}
			_, err := NewRegistry(tc.scheme, vs)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestARegistryKnowsItsKeysByIndex(t *testing.T) {
	t.Parallel()
	r := testRegistry(t, 9)
	require.Equal(t, 9, r.Len())
	require.Equal(t, xmss.Blake2s, r.Scheme())
	for i := range 9 {
		key, ok := r.AttestationKey(wire.ValidatorIndex(i))
		require.True(t, ok)
		require.Equal(t, testKey("attestation", i), key[:])
		kept, ok := r.AttestationKeyBytes(wire.ValidatorIndex(i))
		require.True(t, ok)
		require.Equal(t, key[:], kept)
		require.Equal(t, len(kept), cap(kept), "an append does not reach the next key")
		key, ok = r.ProposalKey(wire.ValidatorIndex(i))
		require.True(t, ok)
		require.Equal(t, testKey("proposal", i), key[:])
	}
	for _, i := range []wire.ValidatorIndex{9, 4096, 1 << 63, ^wire.ValidatorIndex(0)} {
		_, ok := r.AttestationKey(i)
		require.False(t, ok)
		_, ok = r.AttestationKeyBytes(i)
		require.False(t, ok)
		_, ok = r.ProposalKey(i)
		require.False(t, ok)
	}
}

func TestARegistryDoesNotKeepTheCallersBytes(t *testing.T) {
	t.Parallel()
	vs := testValidators(2)
	r, err := NewRegistry(xmss.Blake2s, vs)
	require.NoError(t, err)
	vs[0].AttestationKey[0] ^= 1
	key, _ := r.AttestationKey(0)
	require.Equal(t, testKey("attestation", 0), key[:])
}

func TestSignerKeysAreThoseOfTheParticipantsInStrictlyAscendingOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 63, 64, 65, 1024, 4096, wire.MaxRegistryLimit} {
		r := testRegistry(t, n)
		for range 5 {
			p := randomParticipants(t, rng, n)
			var want [][]byte
			for _, i := range p.Indices() {
				want = append(want, testKey("attestation", int(i)))
			}
			slices.SortFunc(want, bytes.Compare)
			got, err := r.SignerKeys(p)
			require.NoError(t, err)
			require.Equal(t, bytes.Join(want, nil), got)
		}
	}
	r := testRegistry(t, 64)
	_, err := r.SignerKeys(wire.Participants{})
	require.ErrorIs(t, err, ErrNoParticipants)
	_, err = r.SignerKeys(participants(t, 3, 64))
	require.ErrorIs(t, err, ErrUnknownValidator)
}
