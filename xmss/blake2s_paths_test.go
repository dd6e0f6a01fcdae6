package xmss_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
	"aggnode/xmss"
)

var onEachPath = xmss.OnEachPath

// batchCount is the number of random batches to check on each path: usual, or XMSS_BATCHES (make nightly).
func batchCount(t *testing.T, usual int) int {
	t.Helper()
	s := os.Getenv("XMSS_BATCHES")
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// TestBlake2sBatchesOfEverySizeOnEveryPath checks batches of valid and invalid signatures of many epochs, some with a known
// upper part, against the verdicts of the reference.
func TestBlake2sBatchesOfEverySizeOnEveryPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	var checks []xmss.Check
	for range 8 {
		checks = append(checks, sample(t, xmss.Blake2s, rng)...)
	}
	want := make([]error, len(checks))
	uppers := make([]xmss.Answer, len(checks))
	for i := range checks {
		want[i] = refVerify(xmss.Blake2s, &checks[i], false)
	}
	xmss.Blake2s.VerifyBatch(checks, uppers)
	onEachPath(t, func(t *testing.T) {
		for n := range batchCount(t, 68) {
			size := n % 34
			batch, drawn, answers := make([]xmss.Check, size), make([]int, size), make([]xmss.Answer, size)
			for k := range batch {
				drawn[k] = rng.IntN(len(checks))
				batch[k] = checks[drawn[k]]
				if rng.IntN(3) == 0 { // the right one, another one or none
					batch[k].Known = uppers[(drawn[k]+rng.IntN(2))%len(uppers)].Upper
				}
			}
			xmss.Blake2s.VerifyBatch(batch, answers)
			for k := range batch {
				require.Equal(t, want[drawn[k]], answers[k].Err, "check %d of %d", k, size)
			}
		}
	})
}

func TestBlake2sKeysAreTheSameOnEveryPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	type signed struct {
		seed       [xmss.SeedSize]byte
		start, end uint32
		file, sig  []byte
	}
	var cases []signed // made on the first path
	for size := range uint32(34) {
		c := signed{start: rng.Uint32() >> rng.IntN(32)}
		c.end = c.start + min(size, 1<<32-1-c.start)
		for i := range c.seed {
			c.seed[i] = byte(rng.Uint32())
		}
		cases = append(cases, c)
	}
	onEachPath(t, func(t *testing.T) {
		for i := range cases {
			c := &cases[i]
			k := generate(t, c.seed, c.start, c.end)
			message := [xmss.MessageSize]byte{byte(i)}
			sig, err := k.Sign(context.Background(), c.end, message)
			require.NoError(t, err)
			file, err := k.MarshalBinary()
			require.NoError(t, err)
			if lanes.Current() == lanes.PathGeneric {
				c.file, c.sig = file, sig
				require.NoError(t, refB2Verify(k.PublicKey(), c.end, message, sig, false))
				continue
			}
			require.Equal(t, c.file, file, "%d..%d", c.start, c.end)
			require.Equal(t, c.sig, sig, "%d..%d", c.start, c.end)
		}
	})
}

func TestBlake2sSignaturesHaveTheFirstAdmissibleRandomizer(t *testing.T) {
	const epoch = 3
	seed := testSeed()
	k := generate(t, seed, 0, 4)
	pk := k.PublicKey()
	p := pk[16:]
	onEachPath(t, func(t *testing.T) {
		for i := range byte(3) {
			message := [xmss.MessageSize]byte{i, byte(lanes.Current())}
			var randomizer []byte
			for a, isFound := uint32(0), false; !isFound; a++ {
				randomizer = refB2Full(p, 7, a, epoch, seed[:], message[:])[:24]
				_, isFound = refB2Digits(refB2(p, 4, 0, epoch, message[:], randomizer, make([]byte, 8)))
			}
			sig, err := k.Sign(context.Background(), epoch, message)
			require.NoError(t, err)
			require.Equal(t, randomizer, sig[672:696])
		}
	})
}

// Times of a check alone and in batches, of a trial of the search and of a leaf; hashes/hash is the time of one of the
// compressions that it consists of, in multiples of that of a compression in a long walk with all lanes in use.
func BenchmarkBlake2sPaths(b *testing.B) {
	r := readRegistry(b)
	checks := r.checks()
	k := generate(b, testSeed(), 0, 511)
	before := lanes.Current()
	b.Cleanup(func() { lanes.Use(before) })
	for _, p := range lanes.Paths() {
		lanes.Use(p)
		run := lanes.NewBlake2s()
		var m lanes.Blake2sWide
		var hash float64 // ns
		b.Run(p.String()+"/hash", func(b *testing.B) {
			for b.Loop() {
				run.Walk(&m, 64, lanes.FirstLanes(lanes.Blake2sWidth))
			}
			hash = float64(b.Elapsed().Nanoseconds()) / float64(64*lanes.Blake2sWidth*b.N)
			b.ReportMetric(hash, "ns/hash")
		})
		report := func(b *testing.B, n int, hashes float64, unit string) {
			ns := float64(b.Elapsed().Nanoseconds()) / float64(n)
			b.ReportMetric(ns/1000, "us/"+unit)
			b.ReportMetric(ns/hashes/hash, "hashes/hash")
		}
		for _, n := range []int{1, 4, 8, 16} {
			answers := make([]xmss.Answer, n)
			b.Run(fmt.Sprintf("%s/verify=%d", p, n), func(b *testing.B) {
				for b.Loop() {
					xmss.Blake2s.VerifyBatch(checks[:n], answers)
				}
				report(b, n*b.N, 144, "sig")
			})
		}
		b.Run(p.String()+"/trials", func(b *testing.B) {
			trials := 0
			var message [xmss.MessageSize]byte
			for b.Loop() {
				binary.LittleEndian.PutUint64(message[:], binary.LittleEndian.Uint64(message[:])+1)
				n, err := k.Trials(context.Background(), 7, message)
				require.NoError(b, err)
				trials += n
			}
			report(b, trials, 3, "trial")
		})
		b.Run(p.String()+"/leaves", func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, k.Leaves(0, 511))
			}
			report(b, 512*b.N, 347, "leaf")
		})
	}
}
