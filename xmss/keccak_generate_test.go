//go:build !race

// 3 s of one core with AVX-512, 17 s in portable code and ten times that under the race detector;
// `go run ./netconfig/devkeys/gen -check` covers the same code.

package xmss_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

func TestGeneratedKeccakKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not run: takes 3 to 17 s of one core")
	}
	if *update {
		k, err := xmss.Generate(context.Background(), xmss.Keccak, testSeed(), 0, 65535, xmss.GenerateOptions{})
		require.NoError(t, err)
		b, err := k.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(goldenKeccakFile, b, 0o644))
	}
	// A range that ends in the next bottom tree: the same rows, but one tree more when it comes to sign there.
	done := 0
	k, err := xmss.Generate(context.Background(), xmss.Keccak, testSeed(), 65000, 66000, xmss.GenerateOptions{
		Progress: func(n, total int) {
			done++
			if n != done || total != 256 {
				t.Errorf("progress %d of %d after %d", n, total, done-1)
			}
		},
	})
	require.NoError(t, err)
	require.Equal(t, 256, done)
	got, err := k.MarshalBinary()
	require.NoError(t, err)
	want, err := os.ReadFile(goldenKeccakFile)
	require.NoError(t, err)
	const rangeAt, seedAt, sumSize = 12, 20, 32
	require.Equal(t, want[:rangeAt], got[:rangeAt])
	require.True(t, bytes.Equal(want[seedAt:len(want)-sumSize], got[seedAt:len(got)-sumSize]), "seed, public key and rows")

	for _, epoch := range []uint32{65535, 65536, 66000} {
		message := [32]byte{byte(epoch)}
		sig, err := k.Sign(context.Background(), epoch, message)
		require.NoError(t, err)
		require.NoError(t, xmss.Keccak.Verify(k.PublicKey(), epoch, message, sig))
		require.NoError(t, refKcVerify(k.PublicKey(), epoch, message, sig, false))
	}
	for _, epoch := range []uint32{64999, 66001} {
		_, err := k.Sign(context.Background(), epoch, [32]byte{})
		require.ErrorIs(t, err, xmss.ErrEpochRange)
	}
}
