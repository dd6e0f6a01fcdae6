package lanes_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/sha3"

	"aggnode/internal/lanes"
)

// keccakReference is the digest by another implementation.
func keccakReference(words []uint64) (d [4]uint64) {
	h := sha3.NewLegacyKeccak256()
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h.Write(b)
	sum := h.Sum(nil)
	for i := range d {
		d[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	return d
}

func half(d [4]uint64) lanes.KeccakDigest { return lanes.KeccakDigest{d[0], d[1]} }

func TestKeccakOfTheEmptyMessage(t *testing.T) {
	t.Parallel()
	var a lanes.KeccakState
	a.Finish(nil)
	d := a.Digest()
	// c5d2460186f7233c927e7db2dcc703c0…: Keccak-256 of nothing, as in the Ethereum yellow paper.
	require.Equal(t, lanes.KeccakDigest{0x3c23f7860146d2c5, 0xc003c7dcb27d7e92}, d)
}

func TestKeccakBatchEqualsReferenceForEveryBatchLength(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 40 {
		short, long := make([]lanes.KeccakBlock64, n), make([]lanes.KeccakBlock80, n)
		for i := range n {
			for w := range short[i] {
				short[i][w] = rng.Uint64()
			}
			for w := range long[i] {
				long[i][w] = rng.Uint64()
			}
		}
		out, full := make([]lanes.KeccakDigest, n+1), make([][4]uint64, n+1)
		out[n], full[n] = lanes.KeccakDigest{1, 2}, [4]uint64{1, 2, 3, 4}
		lanes.Keccak64Full(full, short)
		lanes.Keccak64(out, short)
		for i := range n {
			want := keccakReference(short[i][:])
			require.Equal(t, want, full[i], "element %d of %d", i, n)
			require.Equal(t, half(want), out[i], "element %d of %d", i, n)
		}
		lanes.Keccak80(out, long)
		for i := range n {
			require.Equal(t, half(keccakReference(long[i][:])), out[i], "element %d of %d", i, n)
		}
		require.Equal(t, lanes.KeccakDigest{1, 2}, out[n], "beyond the batch")
		require.Equal(t, [4]uint64{1, 2, 3, 4}, full[n], "beyond the batch")
	}
}

func TestKeccakOfEveryNumberOfWords(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 130 {
		words := make([]uint64, n)
		for i := range words {
			words[i] = rng.Uint64()
		}
		require.Equal(t, half(keccakReference(words)), keccakOf(words), "%d words", n)
	}
}

func FuzzKeccak(f *testing.F) {
	for _, n := range []int{0, 8, 64, 80, 128, 136, 960} {
		f.Add(make([]byte, n))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		words := make([]uint64, len(message)/8)
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(message[8*i:])
		}
		require.Equal(t, half(keccakReference(words)), keccakOf(words))
	})
}

func BenchmarkKeccak64(b *testing.B) {
	in, out := make([]lanes.KeccakBlock64, 16), make([]lanes.KeccakDigest, 16)
	for b.Loop() {
		lanes.Keccak64(out, in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(16*b.N), "ns/permutation")
}

func BenchmarkKeccakReference(b *testing.B) {
	h := sha3.NewLegacyKeccak256()
	var message [64]byte
	var out [32]byte
	for b.Loop() {
		h.Reset()
		h.Write(message[:])
		h.Sum(out[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/permutation")
}

// keccakOf hashes words with the block functions, as a caller would lay them out.
func keccakOf(words []uint64) lanes.KeccakDigest {
	var a lanes.KeccakState
	for len(words) >= lanes.KeccakRate {
		a.Absorb((*[lanes.KeccakRate]uint64)(words))
		words = words[lanes.KeccakRate:]
	}
	a.Finish(words)
	return a.Digest()
}
