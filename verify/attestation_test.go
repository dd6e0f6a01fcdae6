package verify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestValidVotesAreValidWithAColdAndAWarmCache(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		r := f.rig(t, &fakeChecker{})
		for range 3 {
			out := make([]wire.Reason, len(f.votes))
			r.Attestations(t.Context(), f.votes, out)
			for i, reason := range out {
				require.Equal(t, wire.ReasonNone, reason, "%s vote %d", name, i)
			}
		}
		require.Equal(t, 2*len(f.validators), r.cache.Stats().Uppers, "two trees a validator")
		for _, a := range f.votes {
			require.Equal(t, wire.ReasonNone, r.attestation(t, a))
		}
	}
}

func TestEachFaultOfAVoteHasItsReason(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		other := map[string]int{"blake2s": 2404, "keccak": 1208}[name]
		size := f.profile.SignatureSize
		resize := func(n int) func(*wire.SignedAttestation) {
			return func(a *wire.SignedAttestation) { a.Signature = append(a.Signature, make([]byte, 4096)...)[:n] }
		}
		for fault, tc := range map[string]struct {
			change func(*wire.SignedAttestation)
			want   wire.Reason
		}{
			"none":                         {func(*wire.SignedAttestation) {}, wire.ReasonNone},
			"index one past the registry":  {func(a *wire.SignedAttestation) { a.ValidatorIndex = wire.ValidatorIndex(len(f.validators)) }, wire.ReasonUnknownValidator},
			"index 2^64-1":                 {func(a *wire.SignedAttestation) { a.ValidatorIndex = math.MaxUint64 }, wire.ReasonUnknownValidator},
			"another validator":            {func(a *wire.SignedAttestation) { a.ValidatorIndex++ }, wire.ReasonBadSignature},
			"next slot":                    {func(a *wire.SignedAttestation) { a.Data.Slot++ }, wire.ReasonBadSignature},
			"the same epoch 2^32 later":    {func(a *wire.SignedAttestation) { a.Data.Slot += 1 << 32 }, wire.ReasonEarly},
			"slot 2^32":                    {func(a *wire.SignedAttestation) { a.Data.Slot = 1 << 32 }, wire.ReasonEarly},
			"slot 2^64-1":                  {func(a *wire.SignedAttestation) { a.Data.Slot = math.MaxUint64 }, wire.ReasonEarly},
			"last slot of all":             {func(a *wire.SignedAttestation) { a.Data.Slot = math.MaxUint32 }, wire.ReasonBadSignature},
			"other head":                   {func(a *wire.SignedAttestation) { a.Data.Head.Root[0] ^= 1 }, wire.ReasonBadSignature},
			"other source":                 {func(a *wire.SignedAttestation) { a.Data.Source.Slot++ }, wire.ReasonBadSignature},
			"no signature":                 {func(a *wire.SignedAttestation) { a.Signature = nil }, wire.ReasonMalformed},
			"one byte short":               {resize(size - 1), wire.ReasonMalformed},
			"one byte more":                {resize(size + 1), wire.ReasonMalformed},
			"length of the other scheme":   {resize(other), wire.ReasonSchemeMismatch},
			"all zero":                     {func(a *wire.SignedAttestation) { a.Signature = make([]byte, size) }, wire.ReasonBadSignature},
			"first byte":                   {func(a *wire.SignedAttestation) { a.Signature[0] ^= 1 }, wire.ReasonBadSignature},
			"last byte":                    {func(a *wire.SignedAttestation) { a.Signature[size-1] ^= 0x80 }, wire.ReasonBadSignature},
			"unknown index and bad length": {func(a *wire.SignedAttestation) { a.ValidatorIndex = 1 << 40; a.Signature = nil }, wire.ReasonUnknownValidator},
		} {
			t.Run(name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				cold, warm := f.rig(t, &fakeChecker{}), f.rig(t, &fakeChecker{})
				warm.Attestations(t.Context(), f.votes, make([]wire.Reason, len(f.votes)))
				a := copyVote(f.votes[0])
				tc.change(a)
				require.Equal(t, tc.want, cold.attestation(t, a), "cold")
				require.Equal(t, tc.want, warm.attestation(t, a), "warm")
				if tc.want != wire.ReasonNone {
					require.Zero(t, cold.cache.Stats().Uppers, "nothing is kept of a vote that is not valid")
				}
			})
		}
	}
}

// corrupt changes a copy of a random vote at random, or leaves it as it is.
func (f *fixture) corrupt(rng *rand.Rand) *wire.SignedAttestation {
	a := copyVote(f.votes[rng.IntN(len(f.votes))])
	flip := func(from, to int) {
		bit := 8*from + rng.IntN(8*(to-from))
		a.Signature[bit/8] ^= 1 << (bit % 8)
	}
	half := len(a.Signature) / 2
	switch rng.IntN(9) {
	case 0, 1:
	case 2:
		flip(0, half)
	case 3:
		flip(half, 2*half)
	case 4: // the authentication path and top part, which a cached upper part stands for
		flip(len(a.Signature)-384, len(a.Signature))
	case 5:
		a.ValidatorIndex = wire.ValidatorIndex(rng.IntN(len(f.validators) + 1))
	case 6: // signature of another slot or validator
		a.Signature = append([]byte(nil), f.votes[rng.IntN(len(f.votes))].Signature...)
	case 7: // two valid signatures spliced
		cut := rng.IntN(len(a.Signature))
		copy(a.Signature[cut:], f.votes[rng.IntN(len(f.votes))].Signature[cut:])
	case 8:
		a.Data.Slot = f.votes[rng.IntN(len(f.votes))].Data.Slot
	}
	return a
}

// reference is the verdict by the plain check, with no cache, batch or scratch memory.
func (r *rig) reference(a *wire.SignedAttestation) wire.Reason {
	key, ok := r.registry.AttestationKey(a.ValidatorIndex)
	if !ok {
		return wire.ReasonUnknownValidator
	}
	if r.registry.Scheme().Verify(key, uint32(a.Data.Slot), a.Data.HashTreeRoot(), a.Signature) != nil {
		return wire.ReasonBadSignature
	}
	return wire.ReasonNone
}

func TestVerdictsAreTheSameWithAndWithoutCachesAndInAnyBatch(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 60
			if testing.Short() {
				rounds = 10
			}
			rng := rand.New(rand.NewPCG(1, 2))
			warm := f.rig(t, &fakeChecker{})
			seen := make(map[wire.Reason]int)
			for range rounds {
				batch := make([]*wire.SignedAttestation, 1+rng.IntN(16))
				for i := range batch {
					batch[i] = f.corrupt(rng)
				}
				cold := f.rig(t, &fakeChecker{})
				got, gotWarm := make([]wire.Reason, len(batch)), make([]wire.Reason, len(batch)+3)
				for i := range gotWarm {
					gotWarm[i] = wire.ReasonStopping
				}
				cold.Attestations(t.Context(), batch, got)
				warm.Attestations(t.Context(), batch, gotWarm)
				for i, a := range batch {
					want := cold.reference(a)
					seen[want]++
					require.Equal(t, want, got[i], "cold, vote %d", i)
					require.Equal(t, want, gotWarm[i], "warm, vote %d", i)
				}
				require.Equal(t, []wire.Reason{wire.ReasonStopping, wire.ReasonStopping, wire.ReasonStopping}, gotWarm[len(batch):])
			}
			require.NotZero(t, seen[wire.ReasonNone])
			require.NotZero(t, seen[wire.ReasonBadSignature])
			require.NotZero(t, seen[wire.ReasonUnknownValidator])
		})
	}
}

func FuzzAnAlteredVoteIsNeverValid(f *testing.F) {
	fix := blake2sFixture()
	warm := fix.rig(f, &fakeChecker{})
	warm.Attestations(context.Background(), fix.votes, make([]wire.Reason, len(fix.votes)))
	f.Add(uint8(0), uint16(0), []byte{1})
	f.Add(uint8(3), uint16(840), []byte{0, 0, 255})
	f.Add(uint8(200), uint16(1207), []byte{128})
	f.Add(uint8(1), uint16(0), []byte{})
	f.Fuzz(func(t *testing.T, vote uint8, at uint16, mask []byte) {
		a := copyVote(fix.votes[int(vote)%len(fix.votes)])
		changed := false
		for i, m := range mask {
			if n := int(at) + i; n < len(a.Signature) {
				a.Signature[n] ^= m
				changed = changed || m != 0
			}
		}
		want := wire.ReasonNone
		if changed {
			want = wire.ReasonBadSignature
		}
		require.Equal(t, want, warm.attestation(t, a))
	})
}

func TestABatchWhoseContextIsOverIsNotChecked(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	r := f.rig(t, &fakeChecker{})
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for ctx, want := range map[context.Context]wire.Reason{stopped: wire.ReasonStopping, late: wire.ReasonExpired} {
		out := make([]wire.Reason, 2)
		r.Attestations(ctx, f.votes[:2], out)
		require.Equal(t, []wire.Reason{want, want}, out)
		require.Equal(t, want, r.Block(ctx, f.block))
	}
	require.Zero(t, r.cache.Stats().Uppers)
}

func TestAnEmptyBatchIsFine(t *testing.T) {
	t.Parallel()
	r := blake2sFixture().rig(t, &fakeChecker{})
	r.Attestations(t.Context(), nil, nil)
}

func TestTheCountersOfVotesAddUp(t *testing.T) {
	t.Parallel()
	f := blake2sFixture()
	r := f.rig(t, &fakeChecker{})
	rng := rand.New(rand.NewPCG(5, 6))
	want := make(map[wire.Reason]int)
	const total = 200
	for range total {
		want[r.attestation(t, f.corrupt(rng))]++
	}
	count := func(reason wire.Reason) int {
		return int(testutil.ToFloat64(r.Verifier.metrics.attestation.reasonCounters[reason]))
	}
	sum := 0
	for _, reason := range signatureReasons {
		require.Equal(t, want[reason], count(reason), reason)
		sum += count(reason)
	}
	require.Equal(t, total, sum)
	require.Equal(t, want[wire.ReasonNone], int(testutil.ToFloat64(r.Verifier.metrics.attestationsValid)))
	require.Equal(t, want[wire.ReasonBadSignature], int(testutil.ToFloat64(r.Verifier.metrics.attestationsInvalid)))
}

func TestAWarmBatchAllocatesNextToNothing(t *testing.T) {
	f := blake2sFixture()
	r := f.rig(t, &fakeChecker{})
	batch := slices.Clone(f.votes)
	out := make([]wire.Reason, len(batch))
	for range 2 { // the second round settles the upper parts and the scratch memory
		r.Attestations(context.Background(), batch, out)
	}
	allocs := testing.AllocsPerRun(20, func() { r.Attestations(context.Background(), batch[:4], out) })
	require.LessOrEqual(t, allocs, 4.0, "none, but the pool of scratch memory loses entries to the collector and to -race")
}

func TestABlockIsCheckedWithTheProposalKey(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := f.rig(t, &fakeChecker{})
			change := func(c func(*wire.SignedBlock)) *wire.SignedBlock {
				b := *f.block
				b.ProposerSignature = append([]byte(nil), f.block.ProposerSignature...)
				c(&b)
				return &b
			}
			for range 2 {
				require.Equal(t, wire.ReasonNone, r.Block(t.Context(), f.block))
				for fault, tc := range map[string]struct {
					block *wire.SignedBlock
					want  wire.Reason
				}{
					"state root": {change(func(b *wire.SignedBlock) { b.Block.StateRoot[3] ^= 1 }), wire.ReasonBadSignature},
					"body": {change(func(b *wire.SignedBlock) {
						b.Block.Body.Attestations = []wire.AggregatedAttestation{{Data: testData(1, "x")}}
					}), wire.ReasonBadSignature},
					"other proposer":    {change(func(b *wire.SignedBlock) { b.Block.ProposerIndex = 1 }), wire.ReasonBadSignature},
					"unknown proposer":  {change(func(b *wire.SignedBlock) { b.Block.ProposerIndex = 99 }), wire.ReasonUnknownValidator},
					"signature":         {change(func(b *wire.SignedBlock) { b.ProposerSignature[17] ^= 4 }), wire.ReasonBadSignature},
					"no signature":      {change(func(b *wire.SignedBlock) { b.ProposerSignature = nil }), wire.ReasonMalformed},
					"slot of no epoch":  {change(func(b *wire.SignedBlock) { b.Block.Slot = 1 << 32 }), wire.ReasonEarly},
					"attestation's key": {change(func(b *wire.SignedBlock) { b.ProposerSignature = f.votes[0].Signature }), wire.ReasonBadSignature},
				} {
					require.Equal(t, tc.want, r.Block(t.Context(), tc.block), fault)
				}
			}
		})
	}
}

func TestABlockInTheMergedEnvelopeHasNoSignatureToCheck(t *testing.T) {
	t.Parallel()
	f := *blake2sFixture()
	f.profile = f.profile.WithEnvelope(wire.EnvelopeMerged)
	r := f.rig(t, &fakeChecker{})
	require.Equal(t, wire.ReasonNone, r.Block(t.Context(), &wire.SignedBlock{Block: testBlock(3)}))
}

func BenchmarkAttestations(b *testing.B) {
	for name, f := range fixtures(b) {
		for _, n := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, n), func(b *testing.B) {
				r := f.rig(b, &fakeChecker{})
				batch := make([]*wire.SignedAttestation, n)
				for i := range batch {
					batch[i] = f.votes[i%len(f.votes)]
				}
				out := make([]wire.Reason, n)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					out := make([]wire.Reason, n)
					for pb.Next() {
						r.Attestations(context.Background(), batch, out)
					}
				})
				r.Attestations(context.Background(), batch, out)
				require.Equal(b, wire.ReasonNone, out[0])
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/sig")
				b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "sigs/s")
			})
		}
	}
}
