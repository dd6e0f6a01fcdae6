package devkeys_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/netconfig/devkeys"
	"aggnode/xmss"
)

func TestEveryKeyLoadsAndIsItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]bool{}
	for _, s := range []xmss.Scheme{xmss.Blake2s, xmss.Keccak} {
		attestation, proposal, err := devkeys.Load(s.String())
		require.NoError(t, err)
		require.Len(t, attestation, devkeys.Validators)
		require.Len(t, proposal, devkeys.Validators)
		for _, k := range append(attestation, proposal...) {
			sk, err := xmss.ParseSecretKey(k.File)
			require.NoError(t, err)
			require.Equal(t, s, sk.Scheme())
			require.Equal(t, xmss.PublicKey(k.PublicKey), sk.PublicKey())
			start, end := sk.Range()
			require.Equal(t, [2]uint32{0, 1<<16 - 1}, [2]uint32{start, end})
			require.False(t, seen[k.PublicKey], "%x twice", k.PublicKey)
			seen[k.PublicKey] = true
		}
	}
}

func TestSampledKeysSignWhatTheirPublicKeysVerify(t *testing.T) {
	t.Parallel()
	for s, samples := range map[xmss.Scheme][]int{xmss.Blake2s: {0, 17, 63}, xmss.Keccak: {5}} {
		attestation, proposal, err := devkeys.Load(s.String())
		require.NoError(t, err)
		for i, v := range samples {
			k := attestation[v]
			if i%2 == 1 {
				k = proposal[v]
			}
			sk, err := xmss.ParseSecretKey(k.File)
			require.NoError(t, err)
			epoch, message := uint32(1+9000*i), [32]byte{byte(i)}
			sig, err := sk.Sign(context.Background(), epoch, message)
			require.NoError(t, err)
			require.NoError(t, s.Verify(k.PublicKey, epoch, message, sig))
		}
	}
}

func TestUnknownSchemesHaveNoKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "unknown", "poseidon", "../devkeys", "ORIGIN.md"} {
		_, _, err := devkeys.Load(name)
		require.Error(t, err, name)
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	a, b := devkeys.Key{PublicKey: [32]byte{1}, File: []byte("one")}, devkeys.Key{PublicKey: [32]byte{2}, File: []byte{}}
	record := devkeys.AppendKey(devkeys.AppendKey(nil, a), b)
	got, rest, err := devkeys.CutKey(record)
	require.NoError(t, err)
	require.Equal(t, a, got)
	got, rest, err = devkeys.CutKey(rest)
	require.NoError(t, err)
	require.Equal(t, b, got)
	require.Empty(t, rest)
	for n := range 39 {
		_, _, err := devkeys.CutKey(record[:n])
		require.Error(t, err, n)
	}
}

func FuzzCutKey(f *testing.F) {
	f.Add([]byte{})
	f.Add(devkeys.AppendKey(nil, devkeys.Key{File: []byte("file")}))
	f.Add([]byte("0123456789012345678901234567890123456789\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, rest, err := devkeys.CutKey(b)
		if err != nil {
			return
		}
		require.Equal(t, b, append(devkeys.AppendKey(nil, k), rest...))
	})
}
