package lanes_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2s"

	"aggnode/internal/lanes"
)

// blake2sOf hashes a message of any length with the compression of one message, as a caller would lay it out.
func blake2sOf(message []byte) lanes.Blake2sDigest {
	h := lanes.Blake2sInitial()
	for taken := 0; ; {
		var padded [64]byte
		n := copy(padded[:], message[taken:])
		taken += n
		block := blake2sBlock(padded[:])
		last := taken == len(message)
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

func blake2sBlock(b []byte) (block lanes.Blake2sBlock) {
	for i := range block {
		block[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return block
}

func blake2sBytes(words []uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// column is what lane k holds in rows.
func column(rows []lanes.Blake2sRow, k int) (words []uint32) {
	for i := range rows {
		words = append(words, rows[i][k])
	}
	return words
}

// randomWide is a block of random words in all lanes; the words of zeros are zero.
func randomWide(rng *rand.Rand, zeros ...int) (m lanes.Blake2sWide) {
	for w := range m {
		for k := range m[w] {
			m[w][k] = rng.Uint32()
		}
	}
	for _, w := range zeros {
		m[w] = lanes.Blake2sRow{}
	}
	return m
}

// randomSet is a set of lanes; the sets that matter most to the kernels come often: first lanes, one half, one lane.
func randomSet(rng *rand.Rand) lanes.LaneSet {
	switch rng.IntN(4) {
	case 0:
		return lanes.FirstLanes(rng.IntN(lanes.Blake2sWidth + 1))
	case 1:
		return lanes.FirstLanes(rng.IntN(9)) << (8 * rng.IntN(2))
	case 2:
		return 1 << rng.IntN(lanes.Blake2sWidth)
	}
	return lanes.LaneSet(rng.Uint32())
}

func members(s lanes.LaneSet) (lanesOf []int) {
	for ; s != 0; s = s.Without() {
		lanesOf = append(lanesOf, s.First())
	}
	return lanesOf
}

func TestBlake2sPublishedVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/blake2s.json")
	require.NoError(t, err)
	var cases []struct{ Input, Digest string }
	require.NoError(t, json.Unmarshal(b, &cases))
	require.NotEmpty(t, cases)
	onEachPath(t, func(t *testing.T) {
		for _, c := range cases {
			input, err := hex.DecodeString(c.Input)
			require.NoError(t, err)
			d := blake2sOf(input)
			require.Equal(t, c.Digest[:32], hex.EncodeToString(blake2sBytes(d[:])), "%d bytes", len(input))
			for _, used := range []lanes.LaneSet{0xffff, 0xff00, 0x00f0, 0x0100} {
				for _, got := range blake2sInLanes(input, used) {
					require.Equal(t, c.Digest, hex.EncodeToString(got), "%d bytes, lanes %016b", len(input), used)
				}
			}
		}
	})
}

// blake2sInLanes are the digests of the same message in each of the used lanes.
func blake2sInLanes(message []byte, used lanes.LaneSet) (digests [][]byte) {
	var h lanes.Blake2sStates
	h.Reset()
	b := lanes.NewBlake2s()
	for taken, last := 0, false; !last; {
		var padded [64]byte
		taken += copy(padded[:], message[taken:])
		last = taken == len(message)
		var m lanes.Blake2sWide
		for w, word := range blake2sBlock(padded[:]) {
			for _, k := range members(used) {
				m[w][k] = word
			}
		}
		b.Absorb(&h, &m, uint32(taken), last, used)
	}
	for _, k := range members(used) {
		digests = append(digests, blake2sBytes(column(h[:], k)))
	}
	return digests
}

func TestBlake2sAbsorbEqualsReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		for n := range 4 * differentialCases {
			used := randomSet(rng)
			if n <= lanes.Blake2sWidth {
				used = lanes.FirstLanes(n)
			}
			var messages [lanes.Blake2sWidth][]byte
			var h lanes.Blake2sStates
			h.Reset()
			b := lanes.NewBlake2s()
			length := 1 + rng.IntN(190) // of all the messages
			for taken := 0; taken < length; {
				m := randomWide(rng)
				block := min(64, length-taken)
				for w := range m { // zeros behind the end
					for k := range m[w] {
						switch in := 4*w - block; {
						case in >= 0:
							m[w][k] = 0
						case in > -4:
							m[w][k] &= 1<<(-8*in) - 1
						}
					}
				}
				for _, k := range members(used) {
					messages[k] = append(messages[k], blake2sBytes(column(m[:], k))[:block]...)
				}
				taken += block
				b.Absorb(&h, &m, uint32(taken), taken == length, used)
			}
			for _, k := range members(used) {
				require.Equal(t, blake2sReference(messages[k]), lanes.Blake2sDigest(column(h[:4], k)), "lane %d of %016b", k, used)
				sum := blake2s.Sum256(messages[k])
				require.Equal(t, sum[:], blake2sBytes(column(h[:], k)))
			}
		}
	})
}

func TestBlake2sWalkEqualsReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for range differentialCases {
			used, steps := randomSet(rng), rng.IntN(9)
			m := randomWide(rng, 2, 12, 13, 14, 15)
			before := m
			b := lanes.NewBlake2s()
			b.Walk(&m, steps, used)
			for _, k := range members(used) {
				want := column(before[:], k)
				for range steps {
					d := blake2sReference(blake2sBytes(want[:12]))
					copy(want[8:], d[:])
					want[1]++
				}
				require.Equal(t, want, column(m[:], k), "lane %d of %016b, %d steps", k, used, steps)
			}
		}
	})
}

func TestBlake2sClimbEqualsReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for range differentialCases {
			used := randomSet(rng)
			levels := rng.IntN(35)
			siblings := make([]lanes.Blake2sRow, 4*levels)
			for l := range levels {
				rows := randomWide(rng)
				copy(siblings[4*l:][:4], rows[:])
			}
			m := randomWide(rng, 2)
			before := m
			b := lanes.NewBlake2s()
			b.Climb(&m, siblings, used)
			for _, k := range members(used) {
				want := column(before[:], k)
				for l := range levels {
					copy(want[12:], column(siblings[4*l:][:4], k))
					if want[3]&1 != 0 {
						for i := range 4 {
							want[8+i], want[12+i] = want[12+i], want[8+i]
						}
					}
					want[3] >>= 1
					want[1]++
					d := blake2sReference(blake2sBytes(want))
					copy(want[8:], d[:])
				}
				require.Equal(t, want[:12], column(m[:12], k), "lane %d of %016b, %d levels", k, used, levels)
			}
		}
	})
}

func TestBlake2sTrialsEqualReference(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(9, 10))
		for range differentialCases {
			var trials lanes.Blake2sTrials
			first, prefix, message := make([]uint32, 16), make([]uint32, 16), make([]uint32, 8)
			for _, words := range [][]uint32{first, prefix, message} {
				for i := range words {
					words[i] = rng.Uint32()
				}
			}
			for w := range trials.Second {
				for k := range trials.Second[w] {
					trials.Second[w][k] = message[w]
				}
			}
			trials.Prefix = lanes.Blake2sInitial()
			block := lanes.Blake2sBlock(prefix)
			trials.Prefix.Absorb(&block, 64, false)

			var begun lanes.Blake2sStates
			for k := range lanes.Blake2sWidth {
				first[1] = uint32(k)
				block, state := lanes.Blake2sBlock(first), lanes.Blake2sInitial()
				state.Absorb(&block, 64, false)
				for w := range state {
					begun[w][k] = state[w]
				}
			}
			before := begun
			var out lanes.Blake2sOutcome
			b := lanes.NewBlake2s()
			b.Try(&out, &trials, &begun)
			require.Equal(t, before, begun)
			for k := range lanes.Blake2sWidth {
				first[1] = uint32(k)
				sum := blake2s.Sum256(append(blake2sBytes(first), blake2sBytes(message)...))
				require.Equal(t, sum[:24], blake2sBytes(column(out.Suffix[:], k)), "lane %d", k)
				end := append(blake2sBytes(prefix), sum[:24]...)
				d := blake2sReference(append(end, make([]byte, 8)...))
				require.Equal(t, d[:], column(out.Digest[:], k), "lane %d", k)
			}
		}
	})
}

func TestBlake2sOccupancyIsCounted(t *testing.T) {
	computed := map[lanes.Path]uint64{
		lanes.PathGeneric: 3 + 1 + 32 + 32 + 18,
		lanes.PathAVX2:    8 + 1 + 64 + 32 + 32,
		lanes.PathAVX512:  4 + 4 + 64 + 32 + 32,
	}
	onEachPath(t, func(t *testing.T) {
		var h lanes.Blake2sStates
		var m lanes.Blake2sWide
		start := lanes.Blake2sOccupancy()
		b := lanes.NewBlake2s()
		b.Absorb(&h, &m, 64, true, 0b0111)
		b.Absorb(&h, &m, 64, true, 0b1000)
		b.Walk(&m, 4, 0x0ff0)
		b.Try(new(lanes.Blake2sOutcome), new(lanes.Blake2sTrials), new(lanes.Blake2sStates))
		b.Advance(new(lanes.Blake2sOwners), make([]byte, 16*1024), 1024, randomChains(rand.New(rand.NewPCG(1, 2)), 9), 2)
		require.Equal(t, start, lanes.Blake2sOccupancy(), "nothing before Done")
		b.Done()
		b.Done()
		end := lanes.Blake2sOccupancy()
		require.Equal(t, uint64(3+1+32+32+18), end.Used-start.Used)
		require.Equal(t, computed[lanes.Current()], end.Capacity-start.Capacity)
	})
}

func TestBlake2sDoesNotAllocate(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		h, m := new(lanes.Blake2sStates), new(lanes.Blake2sWide)
		siblings, out, trials := make([]lanes.Blake2sRow, 8), new(lanes.Blake2sOutcome), new(lanes.Blake2sTrials)
		owners, values, chains := new(lanes.Blake2sOwners), make([]byte, 16*1024), make([]lanes.Blake2sChain, 16)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			b := lanes.NewBlake2s()
			for _, used := range []lanes.LaneSet{0xffff, 1} {
				b.Absorb(h, m, 64, true, used)
				b.Walk(m, 2, used)
				b.Climb(m, siblings, used)
				b.Gather(siblings, values, 1024, used)
				b.Advance(owners, values, 1024, chains[:used.Len()], 2)
			}
			b.Try(out, trials, h)
			b.Done()
		}))
	})
}

func FuzzBlake2s(f *testing.F) {
	for _, n := range []int{0, 1, 48, 63, 64, 65, 88, 96, 128, 704} {
		f.Add(make([]byte, n))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		require.Equal(t, blake2sReference(message), blake2sOf(message))
	})
}

// FuzzBlake2sPaths compares the wide calls of every path with those of the portable one.
func FuzzBlake2sPaths(f *testing.F) {
	f.Add([]byte{}, uint16(0xffff), uint8(7))
	f.Add([]byte{1, 2, 3, 4, 5}, uint16(0x00ff), uint8(1))
	for i, used := range []uint16{0, 0x0003, 0x000f, 0x001f, 0x0101, 0x0f00, 0x8000} {
		f.Add([]byte{1, 2, 3, 4, 5, 9}, used, uint8(i))
	}
	f.Add([]byte("a row is 64 bytes, so this is less than one of them"), uint16(0x8000), uint8(32))
	f.Fuzz(func(t *testing.T, data []byte, set uint16, count uint8) {
		used, rounds := lanes.LaneSet(set), int(count%33)
		at := 0
		next := func() (w uint32) { // the data over and over
			for i := range 4 {
				if len(data) > 0 {
					w |= uint32(data[at%len(data)]) << (8 * i)
				}
				at++
			}
			return w
		}
		fill := func(rows []lanes.Blake2sRow, zeros ...int) {
			for w := range rows {
				for k := range rows[w] {
					if rows[w][k] = next(); slices.Contains(zeros, w) {
						rows[w][k] = 0
					}
				}
			}
		}
		var state lanes.Blake2sStates
		var block, chains, nodes lanes.Blake2sWide
		siblings := make([]lanes.Blake2sRow, 4*rounds)
		var trials lanes.Blake2sTrials
		fill(state[:])
		fill(block[:])
		fill(chains[:], 2, 12, 13, 14, 15)
		fill(nodes[:], 2)
		fill(siblings)
		fill(trials.Second[:])
		for i := range trials.Prefix {
			trials.Prefix[i] = next()
		}
		first := next()
		run := func() (columns [][]uint32) { // by lane
			begun := state // lanes out of use hold anything after Absorb
			state, chains, nodes := state, chains, nodes
			var out lanes.Blake2sOutcome
			b := lanes.NewBlake2s()
			b.Absorb(&state, &block, first, rounds%2 == 0, used)
			b.Walk(&chains, rounds, used)
			b.Climb(&nodes, siblings, used)
			b.Try(&out, &trials, &begun)
			for _, k := range members(used) {
				columns = append(columns, slices.Concat(column(state[:], k), column(chains[:], k), column(nodes[:12], k)))
			}
			for k := range lanes.Blake2sWidth {
				columns = append(columns, slices.Concat(column(out.Suffix[:], k), column(out.Digest[:], k)))
			}
			return columns
		}
		defer lanes.Use(lanes.Use(lanes.PathGeneric))
		want := run()
		for _, p := range lanes.Paths() {
			lanes.Use(p)
			require.Equal(t, want, run(), p)
		}
	})
}

// The time of one compression in each kind of call, with all lanes in use.
func BenchmarkBlake2s(b *testing.B) {
	var h lanes.Blake2sStates
	rng := rand.New(rand.NewPCG(1, 2))
	m := randomWide(rng, 2, 12, 13, 14, 15)
	siblings, out, trials := make([]lanes.Blake2sRow, 4*16), new(lanes.Blake2sOutcome), new(lanes.Blake2sTrials)
	owners, values, chains := new(lanes.Blake2sOwners), make([]byte, 16*1024), randomChains(rng, 16)
	all := lanes.FirstLanes(lanes.Blake2sWidth)
	before := lanes.Current()
	b.Cleanup(func() { lanes.Use(before) })
	for _, p := range lanes.Paths() {
		lanes.Use(p)
		k := lanes.NewBlake2s()
		for _, c := range []struct {
			name         string
			compressions int
			call         func()
		}{
			{"walk", 16 * 16, func() { k.Walk(&m, 16, all) }},
			{"climb", 16 * 16, func() { k.Climb(&m, siblings, all) }},
			{"absorb", 16, func() { k.Absorb(&h, &m, 64, false, all) }},
			{"trials", 2 * 16, func() { k.Try(out, trials, &h) }},
			{"advance", 16 * 2, func() { k.Advance(owners, values, 1024, chains, 2) }},
			{"few", 4 * 16, func() { k.Walk(&m, 16, lanes.FirstLanes(4)) }},
			{"alone", 16, func() { k.Walk(&m, 16, 1) }},
		} {
			b.Run(p.String()+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					c.call()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(c.compressions*b.N), "ns/compression")
			})
		}
	}
}
