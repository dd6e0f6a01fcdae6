package lanes_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2s"

	"aggnode/internal/lanes"
)

// blake2sOf hashes a message of any length with the block functions, as a caller would lay it out.
func blake2sOf(message []byte) lanes.Blake2sDigest {
	h := lanes.Blake2sInitial()
	for taken := 0; ; {
		var block lanes.Blake2sBlock
		rest := message[taken:]
		last := len(rest) <= 64
		n := min(len(rest), 64)
		var padded [64]byte
		copy(padded[:], rest[:n])
		for i := range block {
			block[i] = binary.LittleEndian.Uint32(padded[4*i:])
		}
		taken += n
		h.Absorb(&block, uint32(taken), last)
		if last {
			return h.Digest()
		}
	}
}

// blake2sReference is the first half of the digest by another implementation.
func blake2sReference(message []byte) (d lanes.Blake2sDigest) {
	sum := blake2s.Sum256(message)
	for i := range d {
		d[i] = binary.LittleEndian.Uint32(sum[4*i:])
	}
	return d
}

func TestBlake2sPublishedVectors(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/blake2s.json")
	require.NoError(t, err)
	var cases []struct{ Input, Digest string }
	require.NoError(t, json.Unmarshal(b, &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		input, err := hex.DecodeString(c.Input)
		require.NoError(t, err)
		d := blake2sOf(input)
		var got []byte
		for _, w := range d {
			got = binary.LittleEndian.AppendUint32(got, w)
		}
		require.Equal(t, c.Digest[:32], hex.EncodeToString(got), "%d bytes", len(input))
	}
}

func TestBlake2sBatchEqualsReferenceForEveryBatchLength(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		blocks := make([]lanes.Blake2sBlock, n)
		for i := range blocks {
			for w := range blocks[i] {
				blocks[i][w] = rng.Uint32()
			}
		}
		out := make([]lanes.Blake2sDigest, n+1)
		out[n] = lanes.Blake2sDigest{1, 2, 3, 4}
		lanes.Blake2s64(out, blocks)
		for i := range blocks {
			require.Equal(t, blake2sReference(blake2sBytes(&blocks[i])), out[i], "64 bytes, element %d of %d", i, n)
			clear(blocks[i][12:])
		}
		lanes.Blake2s48(out, blocks)
		for i := range blocks {
			require.Equal(t, blake2sReference(blake2sBytes(&blocks[i])[:48]), out[i], "48 bytes, element %d of %d", i, n)
		}
		require.Equal(t, lanes.Blake2sDigest{1, 2, 3, 4}, out[n], "beyond the batch")
	}
}

func TestBlake2sAbsorbKeepsTheStatesApart(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	const n, blocks = 17, 11
	messages := make([][]byte, n)
	states := make([]lanes.Blake2sState, n)
	for i := range states {
		states[i] = lanes.Blake2sInitial()
	}
	for b := range blocks {
		in := make([]lanes.Blake2sBlock, n)
		for i := range in {
			for w := range in[i] {
				in[i][w] = rng.Uint32()
			}
			messages[i] = append(messages[i], blake2sBytes(&in[i])...)
		}
		lanes.Blake2sAbsorb(states, in, uint32(64*(b+1)), b == blocks-1)
	}
	for i := range states {
		require.Equal(t, blake2sReference(messages[i]), states[i].Digest(), i)
	}
}

func TestAnOutputShorterThanItsInputPanics(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { lanes.Blake2s48(make([]lanes.Blake2sDigest, 1), make([]lanes.Blake2sBlock, 2)) })
	require.Panics(t, func() { lanes.Blake2s64(nil, make([]lanes.Blake2sBlock, 1)) })
	require.Panics(t, func() { lanes.Blake2sAbsorb(nil, make([]lanes.Blake2sBlock, 1), 64, true) })
	require.Panics(t, func() { lanes.Keccak64(nil, make([]lanes.KeccakBlock64, 1)) })
	require.Panics(t, func() { lanes.Keccak64Full(nil, make([]lanes.KeccakBlock64, 1)) })
	require.Panics(t, func() { lanes.Keccak80(nil, make([]lanes.KeccakBlock80, 1)) })
	require.Panics(t, func() { new(lanes.KeccakState).Finish(make([]uint64, lanes.KeccakRate)) })
}

func TestHashingDoesNotAllocate(t *testing.T) {
	in2, out2 := make([]lanes.Blake2sBlock, 16), make([]lanes.Blake2sDigest, 16)
	inK, outK := make([]lanes.KeccakBlock64, 16), make([]lanes.KeccakDigest, 16)
	in80, full := make([]lanes.KeccakBlock80, 16), make([][4]uint64, 16)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		lanes.Blake2s48(out2, in2)
		lanes.Blake2s64(out2, in2)
		lanes.Keccak64(outK, inK)
		lanes.Keccak64Full(full, inK)
		lanes.Keccak80(outK, in80)
	}))
}

func FuzzBlake2s(f *testing.F) {
	for _, n := range []int{0, 1, 48, 63, 64, 65, 88, 96, 128, 704} {
		f.Add(make([]byte, n))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		require.Equal(t, blake2sReference(message), blake2sOf(message))
	})
}

func BenchmarkBlake2s48(b *testing.B) {
	in, out := make([]lanes.Blake2sBlock, 16), make([]lanes.Blake2sDigest, 16)
	for b.Loop() {
		lanes.Blake2s48(out, in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(16*b.N), "ns/compression")
}

func BenchmarkBlake2sReference(b *testing.B) {
	var message [48]byte
	for b.Loop() {
		blake2s.Sum256(message[:])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/compression")
}

func blake2sBytes(block *lanes.Blake2sBlock) (b []byte) {
	for _, w := range block {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
