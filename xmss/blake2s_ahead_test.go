package xmss_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

// TestBegunTrialsLeaveSignaturesAsTheyAre signs with none, some and all trials of the search begun, for the epoch or another.
func TestBegunTrialsLeaveSignaturesAsTheyAre(t *testing.T) {
	t.Parallel()
	key, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{7}, 3, 8, xmss.GenerateOptions{})
	require.NoError(t, err)
	other, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{7}, 3, 8, xmss.GenerateOptions{})
	require.NoError(t, err)
	for i, c := range []struct {
		epoch  uint32
		trials int
	}{{4, 1 << 17}, {5, 4096 + 16}, {5, 8192 + 15}, {6, 15}, {4, 16}, {8, 0}, {7, 1 << 10}} {
		require.NoError(t, key.Begin(t.Context(), c.epoch, c.trials), "case %d", i)
		for _, epoch := range []uint32{c.epoch, 3} {
			message := [xmss.MessageSize]byte{byte(i)}
			got, err := key.Sign(t.Context(), epoch, message)
			require.NoError(t, err)
			want, err := other.Sign(t.Context(), epoch, message)
			require.NoError(t, err)
			require.Equal(t, want, got, "case %d at epoch %d", i, epoch)
			n, err := key.Trials(t.Context(), epoch, message)
			require.NoError(t, err)
			m, err := other.Trials(t.Context(), epoch, message)
			require.NoError(t, err)
			require.Equal(t, m, n)
		}
	}
}

func TestBeginStaysInTheRangeAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	key, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{7}, 3, 5, xmss.GenerateOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, key.Begin(t.Context(), 6, 16), xmss.ErrEpochRange)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, key.Begin(ended, 5, 16), context.Canceled)
	require.NoError(t, goldenKeccakKey(t).Begin(t.Context(), 5, 1<<16), "a keccak key has nothing to begin")
}

func TestSignAndBeginAtOneTime(t *testing.T) {
	t.Parallel()
	key, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{7}, 0, 31, xmss.GenerateOptions{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for epoch := range uint32(32) {
		all.Go(func() { _ = key.Begin(t.Context(), epoch/2, 1<<12) })
		all.Go(func() {
			message := [xmss.MessageSize]byte{byte(epoch)}
			sig, err := key.Sign(t.Context(), epoch, message)
			if err != nil || xmss.Blake2s.Verify(key.PublicKey(), epoch, message, sig) != nil {
				t.Errorf("epoch %d: no valid signature: %v", epoch, err)
			}
		})
	}
	all.Wait()
}

// TestASearchIsASignatureThatIsNotMadeYet: what it reveals is what Sign makes, however often it is asked.
func TestASearchIsASignatureThatIsNotMadeYet(t *testing.T) {
	t.Parallel()
	key, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{7}, 3, 5, xmss.GenerateOptions{})
	require.NoError(t, err)
	message := [xmss.MessageSize]byte{1}
	for _, k := range []*xmss.SecretKey{key, goldenKeccakKey(t)} {
		want, err := k.Sign(t.Context(), 4, message)
		require.NoError(t, err)
		reveal, err := k.Search(t.Context(), 4, message)
		require.NoError(t, err)
		require.Equal(t, want, reveal())
		require.Equal(t, want, reveal())
	}
	_, err = key.Search(t.Context(), 6, message)
	require.ErrorIs(t, err, xmss.ErrEpochRange)
}
