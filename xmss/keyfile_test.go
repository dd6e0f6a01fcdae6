package xmss_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

const (
	fileHead = 84 // bytes before the rows
	fileSum  = 32 // bytes of the checksum
)

// keyFiles are files of both schemes.
func keyFiles(t testing.TB) map[xmss.Scheme][]byte {
	k := generate(t, testSeed(), 300, 1400)
	blake, err := k.MarshalBinary()
	require.NoError(t, err)
	keccak, err := os.ReadFile(goldenKeccakFile)
	require.NoError(t, err)
	return map[xmss.Scheme][]byte{xmss.Blake2s: blake, xmss.Keccak: keccak}
}

// withSum gives a body its right checksum.
func withSum(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), sum[:]...)
}

func TestKeyFilesRoundTrip(t *testing.T) {
	t.Parallel()
	require.Less(t, xmss.MaxKeyFileSize, 16<<10)
	for s, b := range keyFiles(t) {
		k, err := xmss.ParseSecretKey(b)
		require.NoError(t, err)
		require.Equal(t, s, k.Scheme())
		require.Equal(t, b[52:84], bytes.Clone(publicOf(k)), "the public key lies in the clear")
		again, err := k.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, b, again)

		start, _ := k.Range()
		if s == xmss.Blake2s {
			require.Equal(t, uint32(300), start)
			fresh := generate(t, testSeed(), 300, 1400)
			want, err := fresh.Sign(context.Background(), 999, [32]byte{5})
			require.NoError(t, err)
			got, err := k.Sign(context.Background(), 999, [32]byte{5})
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

func TestDamagedKeyFilesAreRefused(t *testing.T) {
	t.Parallel()
	for s, b := range keyFiles(t) {
		for n := range len(b) {
			_, err := xmss.ParseSecretKey(b[:n])
			require.ErrorIs(t, err, xmss.ErrKeyFile, "%s cut to %d", s, n)
		}
		_, err := xmss.ParseSecretKey(append(slices.Clone(b), 0))
		require.ErrorIs(t, err, xmss.ErrKeyFile)
		_, err = xmss.ParseSecretKey(make([]byte, 1<<20))
		require.ErrorIs(t, err, xmss.ErrKeyFile)
		for i := range b {
			damaged := slices.Clone(b)
			damaged[i] ^= 1 << (i % 8)
			_, err := xmss.ParseSecretKey(damaged)
			require.ErrorIs(t, err, xmss.ErrKeyFile, "%s byte %d", s, i)
		}
	}
}

func TestKeyFilesWithARightChecksumAreCheckedInTheirParts(t *testing.T) {
	t.Parallel()
	for s, b := range keyFiles(t) {
		body := b[:len(b)-fileSum]
		for i := range body {
			if i >= 12 && i < 20 || i > 200 && i%13 != 0 && i < len(body)-100 { // the range: below; the rows: a sample
				continue
			}
			damaged := slices.Clone(body)
			damaged[i] ^= 0x40
			_, err := xmss.ParseSecretKey(withSum(damaged))
			require.ErrorIs(t, err, xmss.ErrKeyFile, "%s byte %d", s, i)
		}
		for name, r := range map[string][2]uint32{
			"first after last":    {1400, 300},
			"all epochs":          {0, 1<<32 - 1},
			"other subtree":       {800, 1400},
			"longer by a subtree": {300, 2000},
			"other bottom tree":   {300 + 1<<16, 1400 + 1<<16},
		} {
			edited := slices.Clone(body)
			copy(edited[12:], join(le32(r[0]), le32(r[1])))
			_, err := xmss.ParseSecretKey(withSum(edited))
			if s == xmss.Keccak && r[0] < 1<<16 && r[0] <= r[1] {
				require.NoError(t, err, "%s: a keccak key may sign at any epoch", name)
			} else {
				require.ErrorIs(t, err, xmss.ErrKeyFile, "%s %s", s, name)
			}
		}
	}
}

func TestAKeyWhoseSubtreeIsNotTheOneOfItsRowRefusesToSign(t *testing.T) {
	t.Parallel()
	body := keyFiles(t)[xmss.Blake2s]
	edited := slices.Clone(body[:len(body)-fileSum])
	copy(edited[12:], le32(301)) // one leaf less in the first subtree: the row does not show it
	k, err := xmss.ParseSecretKey(withSum(edited))
	require.NoError(t, err)
	_, err = k.Sign(context.Background(), 310, [32]byte{})
	require.ErrorContains(t, err, "rebuilt subtree differs")
	require.ErrorContains(t, k.Prepare(context.Background(), 310), "rebuilt subtree differs")
	sig, err := k.Sign(context.Background(), 600, [32]byte{}) // the next subtree is whole
	require.NoError(t, err)
	require.NoError(t, xmss.Blake2s.Verify(k.PublicKey(), 600, [32]byte{}, sig))
}

func FuzzParseSecretKey(f *testing.F) {
	for _, b := range keyFiles(f) {
		f.Add(b)
		f.Add(b[:fileHead])
	}
	small, err := generate(f, testSeed(), 7, 7).MarshalBinary()
	require.NoError(f, err)
	f.Add(small)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, withSum(b), withSum(b[:max(0, len(b)-fileSum)])} {
			k, err := xmss.ParseSecretKey(b)
			if err != nil {
				require.ErrorIs(t, err, xmss.ErrKeyFile)
				require.Nil(t, k)
				continue
			}
			again, err := k.MarshalBinary()
			require.NoError(t, err)
			require.Equal(t, b, again, "one file for a key")
		}
	})
}

func BenchmarkParseSecretKey(b *testing.B) {
	for s, file := range keyFiles(b) {
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				_, err := xmss.ParseSecretKey(file)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/key")
		})
	}
}

func publicOf(k *xmss.SecretKey) []byte {
	pk := k.PublicKey()
	return pk[:]
}
