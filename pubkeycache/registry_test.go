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
			return testValidators(wire.RegistryLimit + 1)
		}, "4097 validators"},
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
		key, ok = r.ProposalKey(wire.ValidatorIndex(i))
		require.True(t, ok)
		require.Equal(t, testKey("proposal", i), key[:])
	}
	for _, i := range []wire.ValidatorIndex{9, 4096, 1 << 63, ^wire.ValidatorIndex(0)} {
		_, ok := r.AttestationKey(i)
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

func TestTheRootDependsOnSchemeAndEveryKey(t *testing.T) {
	t.Parallel()
	roots := map[[32]byte]string{testRegistry(t, 4).Root(): "as it is"}
	add := func(name string, scheme xmss.Scheme, vs []wire.Validator) {
		r, err := NewRegistry(scheme, vs)
		require.NoError(t, err)
		require.NotContains(t, roots, r.Root(), name)
		roots[r.Root()] = name
	}
	add("other scheme", xmss.Keccak, testValidators(4))
	add("fewer", xmss.Blake2s, testValidators(3))
	for i := range 4 {
		vs := testValidators(4)
		vs[i].AttestationKey[31] ^= 1
		add("attestation key", xmss.Blake2s, vs)
		vs = testValidators(4)
		vs[i].ProposalKey[0] ^= 1
		add("proposal key", xmss.Blake2s, vs)
	}
	require.Equal(t, testRegistry(t, 4).Root(), testRegistry(t, 4).Root())
}

func TestSignerKeysAreThoseOfTheParticipantsInStrictlyAscendingOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 63, 64, 65, 1024, 4096} {
		r := testRegistry(t, n)
		for range 5 {
			p := randomParticipants(t, rng, n)
			var want [][]byte
			for _, i := range p.Indices() {
				want = append(want, testKey("attestation", int(i)))
			}
			slices.SortFunc(want, bytes.Compare)
			require.Equal(t, bytes.Join(want, nil), r.signerKeys(p))
		}
	}
}
