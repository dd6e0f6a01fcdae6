package xmss_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

// TestTrialsCountToTheFirstAdmissibleRandomizer counts once more, hash by hash.
func TestTrialsCountToTheFirstAdmissibleRandomizer(t *testing.T) {
	t.Parallel()
	const epoch = 4
	seed, message := [xmss.SeedSize]byte{7}, [xmss.MessageSize]byte{9}
	k, err := xmss.Generate(t.Context(), xmss.Blake2s, seed, 3, 5, xmss.GenerateOptions{})
	require.NoError(t, err)
	pk := k.PublicKey()
	p := pk[16:]
	want := 0
	for isFound := false; !isFound; want++ {
		randomizer := refB2Full(p, 7, uint32(want), epoch, seed[:], message[:])[:24]
		_, isFound = refB2Digits(refB2(p, 4, 0, epoch, message[:], randomizer, make([]byte, 8)))
	}
	n, err := k.Trials(t.Context(), epoch, message)
	require.NoError(t, err)
	require.Equal(t, want, n)
}

// TestKeccakTrialsCountFromTheBase reads the count off the signature: trial a has a added to the base of the randomizers.
func TestKeccakTrialsCountFromTheBase(t *testing.T) {
	t.Parallel()
	const epoch = 5
	k, seed, message := goldenKeccakKey(t), testSeed(), [xmss.MessageSize]byte{1}
	n, err := k.Trials(t.Context(), epoch, message)
	require.NoError(t, err)
	sig, err := k.Sign(t.Context(), epoch, message)
	require.NoError(t, err)
	pk := k.PublicKey()
	base := refKc(pk[16:], 30, 0, 0, epoch, seed[:], message[:])
	require.Equal(t, uint64(n)-1, binary.LittleEndian.Uint64(sig[4:])-binary.LittleEndian.Uint64(base))
	require.NoError(t, k.Leaves(0, 3))
}

func TestMeasurementsStayInTheRangeOfTheKey(t *testing.T) {
	t.Parallel()
	k, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{7}, 3, 5, xmss.GenerateOptions{})
	require.NoError(t, err)
	_, err = k.Trials(t.Context(), 6, [xmss.MessageSize]byte{})
	require.ErrorIs(t, err, xmss.ErrEpochRange)
	require.ErrorIs(t, k.Leaves(2, 5), xmss.ErrEpochRange)
	require.ErrorIs(t, k.Leaves(3, 6), xmss.ErrEpochRange)
	require.NoError(t, k.Leaves(3, 5))
}
