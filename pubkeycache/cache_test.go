package pubkeycache

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/xmss"
)

func TestSizesFollowTheRegistry(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]Stats{
		1:                     {SignerSetsMax: 4096, UppersMax: 4},
		512:                   {SignerSetsMax: 4096, UppersMax: 2048},
		1024:                  {SignerSetsMax: 2048, UppersMax: 4096},
		4096:                  {SignerSetsMax: 512, UppersMax: 16384},
		wire.MaxRegistryLimit: {SignerSetsMax: 128, UppersMax: 65536},
	} {
		require.Equal(t, want, testCache(t, Config{}, n).Stats(), "%d validators", n)
	}
	require.Equal(t, Stats{SignerSetsMax: 7, UppersMax: 32}, testCache(t, Config{SignerSets: 7}, 8).Stats())
	_, err := New(Config{SignerSets: -1}, testRegistry(t, 1), nil)
	require.ErrorContains(t, err, "negative size")
	_, err = New(Config{}, nil, nil)
	require.ErrorContains(t, err, "no registry")
}

func TestASignerSetIsStoredOnlyOnAdmit(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{}, 16)
	p := participants(t, 3, 1, 8)
	first, err := c.SignerSet(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, first.Keys, 3*xmss.PublicKeySize)
	require.True(t, first.Participants.Equal(p))
	require.Zero(t, c.Stats().SignerSets)

	second, err := c.SignerSet(t.Context(), p)
	require.NoError(t, err)
	require.NotSame(t, first, second)
	require.Equal(t, first.Keys, second.Keys)

	c.Admit(first)
	require.Equal(t, 1, c.Stats().SignerSets)
	third, err := c.SignerSet(t.Context(), p)
	require.NoError(t, err)
	require.Same(t, first, third)
}

func TestThePaddingOfABitlistDoesNotMatter(t *testing.T) {
	t.Parallel()
	profile, err := wire.LookupProfile("local", "")
	require.NoError(t, err)
	c := testCache(t, Config{}, 16)
	p := participants(t, 2, 5)
	encoded, err := profile.EncodeAggregate(&wire.SignedAggregate{Participants: p, Proof: []byte{1}})
	require.NoError(t, err)
	at := strings.Index(string(encoded), string(p.SSZ()))
	padded := append(append(append([]byte{}, encoded[:at]...), p.SSZ()[0]&^(1<<6), 1<<4), encoded[at+1:]...)
	padded[128+4+4]++ // the offset of the proof
	a, err := profile.DecodeAggregate(padded)
	require.NoError(t, err)
	require.Equal(t, 12, a.Participants.Len(), "the test pads the bitlist")

	set, err := c.SignerSet(t.Context(), p)
	require.NoError(t, err)
	c.Admit(set)
	same, err := c.SignerSet(t.Context(), a.Participants)
	require.NoError(t, err)
	require.Same(t, set, same)
}

func TestParticipantsOutsideTheRegistryAreAnError(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{}, 16)
	_, err := c.SignerSet(t.Context(), participants(t, 3, 16))
	require.ErrorIs(t, err, ErrUnknownValidator)
	_, err = c.SignerSet(t.Context(), wire.Participants{})
	require.ErrorIs(t, err, ErrNoParticipants)
}

func TestAWarmHitAllocatesNothing(t *testing.T) {
	c := testCache(t, Config{}, 1024)
	p := randomParticipants(t, rand.New(rand.NewPCG(3, 4)), 1024)
	set, err := c.SignerSet(t.Context(), p)
	require.NoError(t, err)
	c.Admit(set)
	ctx := context.Background()
	_, err = c.SignerSet(ctx, p) // moves the entry to the frequent list
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		got, err := c.SignerSet(ctx, p)
		if err != nil || got != set {
			t.Fatal("no hit")
		}
	}))
	c.AdmitUpper(3, &xmss.Upper{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if c.Upper(3, xmss.UpperKey{}) == nil {
			t.Fatal("no hit")
		}
	}))
}

func TestABuildTakesThreeAllocations(t *testing.T) {
	for _, n := range []int{100, 1000, 4096} {
		c := testCache(t, Config{}, n)
		p := randomParticipants(t, rand.New(rand.NewPCG(3, 4)), n)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
			if _, err := c.SignerSet(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}), 3.0, "%d validators", n)
	}
}

func TestParticipantsThatNeverVerifyLeaveNoTrace(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{SignerSets: 64}, 64)
	good := participants(t, 0, 1, 2)
	set, err := c.SignerSet(t.Context(), good)
	require.NoError(t, err)
	c.Admit(set)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		_, err := c.SignerSet(t.Context(), randomParticipants(t, rng, 64))
		require.NoError(t, err)
	}
	require.Equal(t, 1, c.Stats().SignerSets)
	got, err := c.SignerSet(t.Context(), good)
	require.NoError(t, err)
	require.Same(t, set, got)
	require.Empty(t, c.builds)
}

// Even sets that verify, each seen once, do not displace those in use: the 2Q rule.
func TestASetInUseSurvivesAScanOfVerifiedSets(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{SignerSets: 64}, 64)
	good := participants(t, 0, 1, 2)
	set, err := c.SignerSet(t.Context(), good)
	require.NoError(t, err)
	c.Admit(set)
	_, err = c.SignerSet(t.Context(), good)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(7, 8))
	for range 10_000 {
		s, err := c.SignerSet(t.Context(), randomParticipants(t, rng, 64))
		require.NoError(t, err)
		c.Admit(s)
	}
	require.LessOrEqual(t, c.Stats().SignerSets, 64)
	got, err := c.SignerSet(t.Context(), good)
	require.NoError(t, err)
	require.Same(t, set, got)
}

func TestOneCallerBuildsAndTheOthersReuseIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		c, err := New(Config{}, testRegistry(t, 16), reg)
		require.NoError(t, err)
		var builds atomic.Int64
		release := make(chan struct{})
		c.resolve = func(wire.Participants) ([]byte, error) {
			builds.Add(1)
			<-release
			return []byte("keys"), nil
		}
		p := participants(t, 1, 2)
		sets := make([]*SignerSet, 10)
		var wg sync.WaitGroup
		for i := range sets {
			wg.Go(func() { sets[i], _ = c.SignerSet(context.Background(), p) })
		}
		synctest.Wait()
		require.EqualValues(t, 1, builds.Load())

		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, err := c.SignerSet(ctx, p)
			gaveUp <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled, "a waiter gives up with its context, the builder goes on")

		close(release)
		wg.Wait()
		for _, s := range sets {
			require.NotNil(t, s)
			require.Same(t, sets[0], s)
		}
		require.EqualValues(t, 1, builds.Load())
		require.Empty(t, c.builds)
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP aggnode_cache_lookups_total Lookups of signer sets and of verified upper parts of keys: hit, miss, or coalesced with a build that another worker was running.
# TYPE aggnode_cache_lookups_total counter
aggnode_cache_lookups_total{cache="signer_set",outcome="coalesced"} 9
aggnode_cache_lookups_total{cache="signer_set",outcome="hit"} 0
aggnode_cache_lookups_total{cache="signer_set",outcome="miss"} 1
aggnode_cache_lookups_total{cache="upper",outcome="hit"} 0
aggnode_cache_lookups_total{cache="upper",outcome="miss"} 0
`), "aggnode_cache_lookups_total"))
	})
}

func TestAFailedBuildPassesTheTurn(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() ([]byte, error){
		"error": func() ([]byte, error) { return nil, errors.New("no") },
		"panic": func() ([]byte, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := testCache(t, Config{}, 16)
				var builds atomic.Int64
				release := make(chan struct{})
				c.resolve = func(wire.Participants) ([]byte, error) {
					<-release
					if builds.Add(1) <= 3 {
						return fail()
					}
					return []byte("keys"), nil
				}
				p := participants(t, 1, 2)
				var failed, served atomic.Int64
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						defer func() {
							if recover() != nil {
								failed.Add(1)
							}
						}()
						if _, err := c.SignerSet(context.Background(), p); err != nil {
							failed.Add(1)
							return
						}
						served.Add(1)
					})
				}
				synctest.Wait()
				close(release)
				wg.Wait()
				require.EqualValues(t, 3, failed.Load(), "only those whose own build failed fail")
				require.EqualValues(t, 7, served.Load())
				require.Empty(t, c.builds)
			})
		})
	}
}

func TestConcurrentUseGivesEveryCallerItsOwnSet(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func([]byte) uint64{
		"by the hash":         nil,
		"all of one hash":     func([]byte) uint64 { return 7 },
		"many of each a hash": func(name []byte) uint64 { return uint64(name[0] % 4) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testCache(t, Config{SignerSets: 16}, 64)
			if hash != nil {
				c.hash = hash
			}
			useConcurrently(t, c, 64)
			require.LessOrEqual(t, c.Stats().SignerSets, 16)
			require.Empty(t, c.builds)
		})
	}
}

func useConcurrently(t *testing.T, c *Cache, n int) {
	t.Helper()
	sets := make([]wire.Participants, 40)
	want := make([][]byte, len(sets))
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range sets {
		sets[i] = randomParticipants(t, rng, n)
		var err error
		want[i], err = c.registry.SignerKeys(sets[i])
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(11, uint64(w)))
			for range 2000 {
				i := rng.IntN(len(sets))
				set, err := c.SignerSet(context.Background(), sets[i])
				if err != nil || string(set.Keys) != string(want[i]) {
					t.Errorf("set %d: %v", i, err)
					return
				}
				if rng.IntN(2) == 0 {
					c.Admit(set)
				}
			}
		})
	}
	wg.Wait()
}

func TestTheMetricsAreWellFormedAndComplete(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c, err := New(Config{SignerSets: 10}, testRegistry(t, 4), reg)
	require.NoError(t, err)
	set, err := c.SignerSet(t.Context(), participants(t, 1))
	require.NoError(t, err)
	c.Admit(set)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP aggnode_cache_capacity Entries that the cache holds at most.
# TYPE aggnode_cache_capacity gauge
aggnode_cache_capacity{cache="signer_set"} 10
aggnode_cache_capacity{cache="upper"} 16
# HELP aggnode_cache_entries Entries in the cache.
# TYPE aggnode_cache_entries gauge
aggnode_cache_entries{cache="signer_set"} 1
aggnode_cache_entries{cache="upper"} 0
`), "aggnode_cache_capacity", "aggnode_cache_entries"))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}
