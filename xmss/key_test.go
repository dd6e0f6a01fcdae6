package xmss_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

// testSeed is 000102…1f.
func testSeed() (seed [xmss.SeedSize]byte) {
	for i := range seed {
		seed[i] = byte(i)
	}
	return seed
}

func generate(t testing.TB, seed [xmss.SeedSize]byte, start, end uint32) *xmss.SecretKey {
	t.Helper()
	k, err := xmss.Generate(context.Background(), xmss.Blake2s, seed, start, end, xmss.GenerateOptions{})
	require.NoError(t, err)
	return k
}

func TestBlake2sKeyVectors(t *testing.T) {
	var cases []struct {
		Seed      hexBytes `json:"seed"`
		Start     uint32   `json:"epoch_start"`
		End       uint32   `json:"epoch_end"`
		PublicKey hexBytes `json:"public_key"`
	}
	readVectors(t, "blake2s/key_gen.json", &cases)
	require.NotEmpty(t, cases)
	onEachPath(t, func(t *testing.T) {
		for _, c := range cases {
			k, err := xmss.Generate(context.Background(), xmss.Blake2s, [32]byte(c.Seed.B), c.Start, c.End, xmss.GenerateOptions{Workers: 2})
			if c.PublicKey.Null {
				require.ErrorIs(t, err, xmss.ErrEpochRange)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.PublicKey.publicKey(), k.PublicKey(), "%d..%d", c.Start, c.End)
			require.Equal(t, xmss.Blake2s, k.Scheme())
			start, end := k.Range()
			require.Equal(t, [2]uint32{c.Start, c.End}, [2]uint32{start, end})
		}
	})
}

func TestBlake2sSignVectors(t *testing.T) {
	var cases []struct {
		Seed      hexBytes `json:"seed"`
		Start     uint32   `json:"epoch_start"`
		End       uint32   `json:"epoch_end"`
		Epoch     uint32   `json:"epoch"`
		Message   hexBytes `json:"message"`
		PublicKey hexBytes `json:"public_key"`
		Signature hexBytes `json:"signature"`
	}
	readVectors(t, "blake2s/sign.json", &cases)
	onEachPath(t, func(t *testing.T) {
		signed, refused := 0, 0
		for _, c := range cases {
			k := generate(t, [32]byte(c.Seed.B), c.Start, c.End)
			require.Equal(t, c.PublicKey.publicKey(), k.PublicKey())
			sig, err := k.Sign(context.Background(), c.Epoch, c.Message.message())
			if c.Signature.Null {
				require.ErrorIs(t, err, xmss.ErrEpochRange)
				refused++
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.Signature.B, sig, "epoch %d", c.Epoch)
			signed++
		}
		require.Positive(t, signed)
		require.Positive(t, refused)
	})
}

func TestBlake2sRegistrySignsToTheLastByte(t *testing.T) {
	r := readRegistry(t)
	onEachPath(t, func(t *testing.T) {
		for i, s := range r.Signers[:16] {
			k := generate(t, [32]byte(s.Seed.B), s.Start, s.End)
			require.Equal(t, s.PublicKey.publicKey(), k.PublicKey(), i)
			sig, err := k.Sign(context.Background(), r.Epoch, r.Message.message())
			require.NoError(t, err)
			require.Equal(t, s.Signature.B, sig, i)
		}
	})
}

func TestRangesThatNoKeyCovers(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		scheme     xmss.Scheme
		start, end uint32
		want       error
	}{
		{xmss.Blake2s, 1, 0, xmss.ErrEpochRange},
		{xmss.Blake2s, 0, 1 << 18, xmss.ErrEpochRange},
		{xmss.Blake2s, 0, 1<<32 - 1, xmss.ErrEpochRange},
		{xmss.Blake2s, 1<<32 - 1, 0, xmss.ErrEpochRange},
		{xmss.Blake2s, 0, 1<<18 - 1, context.Canceled}, // possible: it gets as far as the first leaf
		{xmss.Blake2s, 1<<32 - 1<<18, 1<<32 - 1, context.Canceled},
		{xmss.Keccak, 1, 0, xmss.ErrEpochRange},
		{xmss.Keccak, 0, 1<<32 - 1, context.Canceled},
		{xmss.SchemeUnknown, 0, 0, xmss.ErrScheme},
		{xmss.Scheme(9), 0, 0, xmss.ErrScheme},
	} {
		_, err := xmss.Generate(cancelled, c.scheme, testSeed(), c.start, c.end, xmss.GenerateOptions{})
		require.ErrorIs(t, err, c.want, "%s %d..%d", c.scheme, c.start, c.end)
	}
}

func TestKeysSignAtTheEndsOfTheirRangeAndNotBeyond(t *testing.T) {
	t.Parallel()
	message := [32]byte{1}
	for _, r := range [][2]uint32{{0, 0}, {0, 4}, {500, 520}, {1<<31 - 1, 1 << 31}, {1<<32 - 3, 1<<32 - 1}, {1<<32 - 1, 1<<32 - 1}} {
		k := generate(t, testSeed(), r[0], r[1])
		for _, epoch := range r {
			sig, err := k.Sign(context.Background(), epoch, message)
			require.NoError(t, err)
			require.NoError(t, xmss.Blake2s.Verify(k.PublicKey(), epoch, message, sig))
			require.NoError(t, refB2Verify(k.PublicKey(), epoch, message, sig, false))
			require.Error(t, xmss.Blake2s.Verify(k.PublicKey(), epoch+1, message, sig))
		}
		for _, epoch := range []uint32{r[0] - 1, r[1] + 1, 1 << 30, 1<<32 - 1, 0} {
			if epoch >= r[0] && epoch <= r[1] {
				continue
			}
			_, err := k.Sign(context.Background(), epoch, message)
			require.ErrorIs(t, err, xmss.ErrEpochRange, "%v at %d", r, epoch)
			require.ErrorIs(t, k.Prepare(context.Background(), epoch), xmss.ErrEpochRange, "%v at %d", r, epoch)
		}
	}
}

func TestSigningEndsWithItsContextAndWorksAfterwards(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, k := range []*xmss.SecretKey{generate(t, testSeed(), 0, 600), goldenKeccakKey(t)} {
		message := shortMessage(t, k.Scheme(), 3)
		_, err := k.Sign(cancelled, 3, message)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, k.Prepare(cancelled, 3), context.Canceled)
		require.NoError(t, k.Prepare(context.Background(), 3))
		require.NoError(t, k.Prepare(cancelled, 3), "a subtree at hand needs no time")
		_, err = k.Sign(cancelled, 3, message)
		require.ErrorIs(t, err, context.Canceled, "the search looks at the context too")
		sig, err := k.Sign(context.Background(), 3, message)
		require.NoError(t, err)
		require.NoError(t, k.Scheme().Verify(k.PublicKey(), 3, message, sig))
	}
}

func TestConcurrentSignersAgreeWithOneAlone(t *testing.T) {
	t.Parallel()
	alone, shared := generate(t, testSeed(), 0, 2047), generate(t, testSeed(), 0, 2047)
	rng := rand.New(rand.NewPCG(19, 20))
	var wg sync.WaitGroup
	for range 12 {
		epoch, message := rng.Uint32N(2048), [32]byte{byte(rng.Uint32())}
		want, err := alone.Sign(context.Background(), epoch, message)
		require.NoError(t, err)
		wg.Go(func() {
			if rng := epoch % 3; rng == 0 {
				if err := shared.Prepare(context.Background(), (epoch+512)%2048); err != nil {
					t.Error(err)
				}
			}
			got, err := shared.Sign(context.Background(), epoch, message)
			if err != nil || string(got) != string(want) {
				t.Errorf("epoch %d: differs from the signature made alone (%v)", epoch, err)
			}
		})
	}
	wg.Wait()
}

func TestAKeyDoesNotPrintItsSeed(t *testing.T) {
	t.Parallel()
	for _, k := range []*xmss.SecretKey{generate(t, testSeed(), 0, 1), goldenKeccakKey(t)} {
		seed := testSeed()
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(format, k)
			require.NotContains(t, text, hex.EncodeToString(seed[:4]))
			require.NotContains(t, text, "0x0, 0x1, 0x2")
			require.NotContains(t, text, "0 1 2 3")
			require.True(t, strings.HasPrefix(text, k.Scheme().String()+" key "), text)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	for _, k := range []*xmss.SecretKey{generate(b, testSeed(), 0, 511), goldenKeccakKey(b)} {
		b.Run(k.Scheme().String(), func(b *testing.B) {
			require.NoError(b, k.Prepare(context.Background(), 0))
			n := uint64(0)
			for b.Loop() { // another message each time: the number of trials varies
				n++
				_, err := k.Sign(context.Background(), 0, [32]byte(le64x4(n)))
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/sig")
		})
	}
}

func BenchmarkSubtree512(b *testing.B) {
	for _, k := range []*xmss.SecretKey{generate(b, testSeed(), 0, 2047), goldenKeccakKey(b)} {
		b.Run(k.Scheme().String(), func(b *testing.B) {
			epoch := uint32(0)
			for b.Loop() { // three subtrees in turn: the two that are kept never serve
				epoch = (epoch + 512) % 1536
				require.NoError(b, k.Prepare(context.Background(), epoch))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/subtree")
		})
	}
}

func le64x4(n uint64) []byte { return join(le64(n), make([]byte, 24)) }
