package lanes_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/sha3"

	"aggnode/internal/lanes"
)

// keccakReference is the digest by another implementation.
func keccakReference(words []uint64) (d [4]uint64) {
	h := sha3.NewLegacyKeccak256()
	b := make([]byte, 0, 8*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h.Write(b)
	sum := h.Sum(b[:0])
	for i := range d {
		d[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	return d
}

func half(d [4]uint64) lanes.KeccakDigest { return lanes.KeccakDigest{d[0], d[1]} }

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

// keccakColumn is what lane l holds in rows.
func keccakColumn(rows []lanes.KeccakRow, l int) []uint64 {
	words := make([]uint64, 0, len(rows))
	for w := range rows {
		words = append(words, rows[w][l])
	}
	return words
}

func fillRows(rng *rand.Rand, rows []lanes.KeccakRow) {
	for w := range rows {
		for l := range rows[w] {
			rows[w][l] = rng.Uint64()
		}
	}
}

// permutedZero is Keccak-f[1600] of the zero state, first row, from the Keccak team's intermediate values.
var permutedZero = [5]uint64{0xf1258f7940e1dde7, 0x84d5ccf933c0478a, 0xd598261ea65aa9ee, 0xbd1547306f80494d, 0x8b284e056253d057}

func TestKeccakPublishedValues(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		var a lanes.KeccakState
		lanes.Permute(&a)
		require.Equal(t, permutedZero[:], a[:5])
		for n := range lanes.KeccakLanes + 1 {
			var wide lanes.KeccakWide
			lanes.PermuteWide(&wide, n)
			for l := range n {
				require.Equal(t, a[:], keccakColumn(wide[:], l), "state %d of %d", l, n)
			}
		}
		// c5d2460186f7233c927e7db2dcc703c0…: Keccak-256 of nothing, as in the Ethereum yellow paper.
		require.Equal(t, lanes.KeccakDigest{0x3c23f7860146d2c5, 0xc003c7dcb27d7e92}, keccakOf(nil))
	})
}

// The reference is the portable code, which the other tests compare with another implementation.
func TestKeccakPermutationsEqualReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var in lanes.KeccakWide
	for range differentialCases {
		fillRows(rng, in[:])
		wide := in
		before := lanes.Use(lanes.PathGeneric)
		lanes.PermuteWide(&wide, lanes.KeccakLanes)
		for _, p := range lanes.Paths() {
			lanes.Use(p)
			n := rng.IntN(lanes.KeccakLanes + 1)
			got := in
			lanes.PermuteWide(&got, n)
			for l := range n {
				require.Equal(t, keccakColumn(wide[:], l), keccakColumn(got[:], l), "%s: state %d of %d", p, l, n)
			}
			l := rng.IntN(lanes.KeccakLanes)
			one := lanes.KeccakState(keccakColumn(in[:], l))
			lanes.Permute(&one)
			require.Equal(t, keccakColumn(wide[:], l), one[:], p)
		}
		lanes.Use(before)
	}
}

// keccakSizes calls test with every number of messages up to 33 and then with some, until it was called for as many wide
// messages as there are to be cases.
func keccakSizes(rng *rand.Rand, test func(n int)) {
	for n := range 34 {
		test(n)
	}
	for done := 0; done < differentialCases*lanes.KeccakLanes; {
		n := 1 + rng.IntN(64)
		test(n)
		done += n
	}
}

// wideMessages are as many wide messages as n messages take, and one more.
func wideMessages[M any](n int) []M { return make([]M, (n+lanes.KeccakLanes-1)/lanes.KeccakLanes+1) }

func TestKeccakOfShortMessagesEqualsReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		keccakSizes(rng, func(n int) {
			short, long := wideMessages[lanes.KeccakWide64](n), wideMessages[lanes.KeccakWide80](n)
			for b := range short {
				fillRows(rng, short[b][:])
				fillRows(rng, long[b][:])
			}
			got := wideMessages[lanes.KeccakWideDigest](n)
			lanes.Keccak64Wide(got, short, n)
			requireDigests(t, n, got, func(b int) []lanes.KeccakRow { return short[b][:] })
			lanes.Keccak80Wide(got, long, n)
			requireDigests(t, n, got, func(b int) []lanes.KeccakRow { return long[b][:] })
		})
	})
}

// requireDigests compares the digests of n messages, and what lies behind the last block, with the reference.
func requireDigests(t *testing.T, n int, got []lanes.KeccakWideDigest, message func(b int) []lanes.KeccakRow) {
	t.Helper()
	want := slices.Clone(got)
	want[len(want)-1] = lanes.KeccakWideDigest{}
	for i := range n {
		b, l := i/lanes.KeccakLanes, i%lanes.KeccakLanes
		for w, v := range keccakReference(keccakColumn(message(b), l)) {
			want[b][w][l] = v
		}
	}
	require.Equal(t, want, got, "%d messages of %d words", n, len(message(0)))
}

func TestKeccakStepsEqualReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(11, 12))
		keccakSizes(rng, func(n int) {
			blocks := wideMessages[lanes.KeccakWide64](n)
			want := wideMessages[lanes.KeccakWide64](n)
			for b := range blocks {
				fillRows(rng, blocks[b][:])
			}
			copy(want, blocks)
			increment := rng.Uint64()
			for i := range n {
				b, l := &want[i/lanes.KeccakLanes], i%lanes.KeccakLanes
				d := half(keccakReference(keccakColumn(b[:], l)))
				b[2][l] += increment
				b[4][l], b[5][l] = d[0], d[1]
			}
			lanes.KeccakStepWide(blocks, increment, n)
			require.Equal(t, want, blocks, "%d messages", n)
		})
	})
}

func TestKeccakOfEveryNumberOfWords(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for words := range 130 {
			rows := make([]lanes.KeccakRow, words)
			fillRows(rng, rows)
			n := rng.IntN(lanes.KeccakLanes + 1)
			var out lanes.KeccakWideDigest
			lanes.KeccakLongWide(&out, rows, n)
			for l := range n {
				message := keccakColumn(rows, l)
				want := keccakReference(message)
				require.Equal(t, want[:], keccakColumn(out[:], l), "%d words, message %d of %d", words, l, n)
				require.Equal(t, half(want), keccakOf(message), "%d words", words)
			}
		}
	})
}

func TestKeccakCallsBeyondTheirSlicesPanic(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		short, long := make([]lanes.KeccakWide64, 1), make([]lanes.KeccakWide80, 1)
		out := make([]lanes.KeccakWideDigest, 1)
		require.Panics(t, func() { lanes.Keccak64Wide(nil, short, 1) })
		require.Panics(t, func() { lanes.Keccak64Wide(out, short, 9) })
		require.Panics(t, func() { lanes.Keccak80Wide(out, nil, 1) })
		require.Panics(t, func() { lanes.Keccak80Wide(out, long, 9) })
		require.Panics(t, func() { lanes.KeccakStepWide(short, 1, 9) })
		require.Panics(t, func() { lanes.KeccakLongWide(&out[0], nil, 9) })
		require.Panics(t, func() { lanes.PermuteWide(new(lanes.KeccakWide), 9) })
		require.Panics(t, func() { new(lanes.KeccakState).Finish(make([]uint64, lanes.KeccakRate)) })
	})
}

func TestKeccakDoesNotAllocate(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		short, long := make([]lanes.KeccakWide64, 2), make([]lanes.KeccakWide80, 2)
		out := make([]lanes.KeccakWideDigest, 2)
		rows := make([]lanes.KeccakRow, 40)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			lanes.Keccak64Wide(out, short, 11)
			lanes.Keccak80Wide(out, long, 9)
			lanes.KeccakStepWide(short, 1, 13)
			lanes.KeccakLongWide(&out[0], rows, 8)
			lanes.KeccakLongWide(&out[0], rows, 1)
			keccakOf(short[0][0][:])
		}))
	})
}

func TestKeccakOccupancyCountsWantedAndComputedLanes(t *testing.T) {
	// Of 8 + 5 messages: the second five lie in a block of their own.
	capacity := map[lanes.Path]uint64{lanes.PathGeneric: 13, lanes.PathAVX2: 16, lanes.PathAVX512: 16}
	onEachPath(t, func(t *testing.T) {
		short, out := make([]lanes.KeccakWide64, 2), make([]lanes.KeccakWideDigest, 2)
		long := make([]lanes.KeccakWide80, 2)
		counted := func(call func()) lanes.Occupancy {
			before := lanes.KeccakOccupancy()
			call()
			after := lanes.KeccakOccupancy()
			return lanes.Occupancy{Used: after.Used - before.Used, Capacity: after.Capacity - before.Capacity}
		}
		want := lanes.Occupancy{Used: 13, Capacity: capacity[lanes.Current()]}
		require.Equal(t, want, counted(func() { lanes.Keccak64Wide(out, short, 13) }))
		require.Equal(t, want, counted(func() { lanes.Keccak80Wide(out, long, 13) }))
		require.Equal(t, want, counted(func() { lanes.KeccakStepWide(short, 1, 13) }))
		// One message alone is hashed alone; 40 words are two full blocks and a rest.
		require.Equal(t, lanes.Occupancy{Used: 1, Capacity: 1}, counted(func() { lanes.Keccak64Wide(out, short, 1) }))
		require.Equal(t, lanes.Occupancy{Used: 24, Capacity: 24}, counted(func() {
			lanes.KeccakLongWide(&out[0], make([]lanes.KeccakRow, 40), lanes.KeccakLanes)
		}))
	})
}

func FuzzKeccak(f *testing.F) {
	for _, n := range []int{0, 8, 64, 80, 128, 136, 960} {
		f.Add(make([]byte, n), uint8(n))
	}
	f.Fuzz(func(t *testing.T, message []byte, lane uint8) {
		words := make([]uint64, len(message)/8)
		rows := make([]lanes.KeccakRow, len(words))
		l := int(lane % lanes.KeccakLanes)
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(message[8*i:])
			rows[i][l] = words[i]
		}
		want := keccakReference(words)
		require.Equal(t, half(want), keccakOf(words))
		var out lanes.KeccakWideDigest
		lanes.KeccakLongWide(&out, rows, l+1)
		require.Equal(t, want[:], keccakColumn(out[:], l))
		blocks := make([]lanes.KeccakWideDigest, 1)
		switch len(words) {
		case len(lanes.KeccakWide64{}):
			lanes.Keccak64Wide(blocks, []lanes.KeccakWide64{lanes.KeccakWide64(rows)}, l+1)
		case len(lanes.KeccakWide80{}):
			lanes.Keccak80Wide(blocks, []lanes.KeccakWide80{lanes.KeccakWide80(rows)}, l+1)
		default:
			return
		}
		require.Equal(t, want[:], keccakColumn(blocks[0][:], l))
	})
}

func BenchmarkKeccak(b *testing.B) {
	const n = 16
	short, out := make([]lanes.KeccakWide64, n), make([]lanes.KeccakWideDigest, n)
	var state lanes.KeccakState
	var wide lanes.KeccakWide
	for _, p := range lanes.Paths() {
		for _, c := range []struct {
			name         string
			permutations int
			call         func()
		}{
			{"one", 1, func() { lanes.Permute(&state) }},
			{"wide", lanes.KeccakLanes, func() { lanes.PermuteWide(&wide, lanes.KeccakLanes) }},
			{"64", n * lanes.KeccakLanes, func() { lanes.Keccak64Wide(out, short, n*lanes.KeccakLanes) }},
			{"step", n * lanes.KeccakLanes, func() { lanes.KeccakStepWide(short, 1, n*lanes.KeccakLanes) }},
		} {
			b.Run(p.String()+"/"+c.name, func(b *testing.B) {
				defer lanes.Use(lanes.Use(p))
				for b.Loop() {
					c.call()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(c.permutations*b.N), "ns/permutation")
			})
		}
	}
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
