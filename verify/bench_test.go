package verify

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/pubkeycache"
	"aggnode/wire"
	"aggnode/xmss"
)

// What a check costs when the upper part of its key is known, and when it is not and gets into the cache afterwards, for
// which the cache is a new one each time.
func BenchmarkUpperCache(b *testing.B) {
	for name, f := range fixtures(b) {
		half := wire.ValidatorIndex(len(f.validators) / 2)
		second := slices.IndexFunc(f.votes, func(a *wire.SignedAttestation) bool { return a.ValidatorIndex == half })
		for _, n := range []int{1, 16} {
			for _, outcome := range []string{"hit", "miss"} {
				b.Run(fmt.Sprintf("%s/%s/batch=%d", name, outcome, n), func(b *testing.B) {
					benchmarkUpperCache(b, f, outcome == "hit", repeat(f.votes[:second], n), repeat(f.votes[second:], n))
				})
			}
		}
	}
}

// repeat returns n votes, going round.
func repeat(votes []*wire.SignedAttestation, n int) []*wire.SignedAttestation {
	batch := make([]*wire.SignedAttestation, n)
	for i := range batch {
		batch[i] = votes[i%len(votes)]
	}
	return batch
}

func benchmarkUpperCache(b *testing.B, f *fixture, known bool, batches ...[]*wire.SignedAttestation) {
	scheme, err := xmss.SchemeByName(f.profile.Scheme)
	require.NoError(b, err)
	registry, err := pubkeycache.NewRegistry(scheme, f.validators)
	require.NoError(b, err)
	newVerifier := func() *Verifier {
		cache, err := pubkeycache.New(pubkeycache.Config{}, registry, nil)
		require.NoError(b, err)
		v, err := New(Config{Profile: f.profile}, registry, cache, &fakeChecker{})
		require.NoError(b, err)
		return v
	}
	v := newVerifier()
	out := make([]wire.Reason, len(batches[0]))
	for _, batch := range batches {
		v.Attestations(context.Background(), batch, out)
	}
	checks := 0
	b.ReportAllocs()
	for b.Loop() {
		if !known {
			b.StopTimer()
			v = newVerifier()
			b.StartTimer()
		}
		batch := batches[checks%len(batches)]
		v.Attestations(context.Background(), batch, out)
		if slices.ContainsFunc(out, func(r wire.Reason) bool { return r != wire.ReasonNone }) {
			b.Fatal(out)
		}
		checks++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(checks*len(out)), "ns/sig")
}
