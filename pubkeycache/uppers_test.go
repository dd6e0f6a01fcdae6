package pubkeycache

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/xmss"
)

// verifiedUppers returns upper parts of n trees, made by checks that succeeded.
func verifiedUppers(t *testing.T, n int) []*xmss.Upper {
	t.Helper()
	uppers := make([]*xmss.Upper, n)
	for i := range uppers {
		uppers[i] = verifiedUpper(t, byte(i))
	}
	return uppers
}

func verifiedUpper(t *testing.T, seed byte) *xmss.Upper {
	t.Helper()
	key, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{seed}, 7, 7, xmss.GenerateOptions{Workers: 1})
	require.NoError(t, err)
	signature, err := key.Sign(t.Context(), 7, [32]byte{1})
	require.NoError(t, err)
	var answer [1]xmss.Answer
	check := xmss.Check{PublicKey: key.PublicKey(), Epoch: 7, Message: [32]byte{1}, Signature: signature}
	xmss.Blake2s.VerifyBatch([]xmss.Check{check}, answer[:])
	require.NoError(t, answer[0].Err)
	require.NotNil(t, answer[0].Upper)
	return answer[0].Upper
}

func TestAValidatorHasTheUpperPartsThatCameLast(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{}, 2)
	all := verifiedUppers(t, uppersPerValidator+1)
	for i, u := range all {
		require.Nil(t, c.Upper(1, u.Key()))
		c.AdmitUpper(1, u)
		require.Equal(t, min(i+1, uppersPerValidator), c.Stats().Uppers)
	}
	require.Nil(t, c.Upper(1, all[0].Key()), "the oldest had to go")
	for _, u := range all[1:] {
		require.Same(t, u, c.Upper(1, u.Key()))
		require.Nil(t, c.Upper(0, u.Key()), "another validator's")
	}
}

func TestAnUpperPartTakesThePlaceOfAnotherOfItsTree(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{}, 1)
	all := verifiedUppers(t, uppersPerValidator)
	for _, u := range all {
		c.AdmitUpper(0, u)
	}
	again := verifiedUpper(t, 0)
	require.Equal(t, all[0].Key(), again.Key())
	c.AdmitUpper(0, again)
	require.Same(t, again, c.Upper(0, again.Key()))
	for _, u := range all[1:] {
		require.Same(t, u, c.Upper(0, u.Key()), "nothing had to go for it")
	}
	require.Equal(t, uppersPerValidator, c.Stats().Uppers)
}

func TestAStrangerHasNoUpperParts(t *testing.T) {
	t.Parallel()
	c := testCache(t, Config{}, 3)
	for _, v := range []wire.ValidatorIndex{3, 1 << 63} {
		c.AdmitUpper(v, &xmss.Upper{})
		require.Nil(t, c.Upper(v, xmss.UpperKey{}))
	}
	require.Zero(t, c.Stats().Uppers)
}

// One goroutine fills the places of a validator anew, in front of what others look for: they must not miss it.
func TestAnUpperPartIsFoundWhileItMoves(t *testing.T) {
	t.Parallel()
	all := verifiedUppers(t, uppersPerValidator)
	for range 200 {
		c := testCache(t, Config{}, 1)
		c.AdmitUpper(0, all[0])
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 50 {
					if c.Upper(0, all[0].Key()) != all[0] {
						t.Error("not found")
						return
					}
				}
			})
		}
		wg.Go(func() {
			for _, u := range all[1:] {
				c.AdmitUpper(0, u)
			}
		})
		wg.Wait()
	}
}
