package key

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	k, err := Load()
	require.NoError(t, err)
	size := 0
	for i := range k.table.blocks {
		b := &k.table.blocks[i]
		size += 8*(len(b.dense)+len(b.sparse)) + 2*len(b.wide)
	}
	require.Less(t, size, 16<<20, "the table")
	require.Less(t, int(reflect.TypeFor[scratch]().Size()), 1<<20, "the scratch memory of a pass")
}

// All that loading allocates, garbage included, bounds what it adds to the resident memory. Not parallel: it counts for the
// whole process.
func TestLoadingAllocatesLittle(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(guest070)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(28<<20))
}

func TestDamagedGuestIsRefused(t *testing.T) {
	t.Parallel()
	v := &versions[0]
	for at := 0; at < len(guest070); at += len(guest070) / 50 {
		damaged := append([]byte(nil), guest070...)
		damaged[at] ^= 0x10
		_, err := v.decode(damaged)
		require.ErrorIs(t, err, errGuest)
	}
	_, err := v.decode(nil)
	require.ErrorIs(t, err, errGuest)
}

// Without its digest a damaged file is an error, or the key of another guest; DEFLATE has no checksum.
func TestDecodeTakesAnyBytes(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{0, 1, 100, len(guest070) / 2, len(guest070) - 1} {
		_, err := Decode(guest070[:cut])
		require.ErrorIs(t, err, errGuest, "the first %d bytes", cut)
	}
	_, err := Decode(append([]byte(nil), guest070[1:]...))
	require.ErrorIs(t, err, errGuest)
	want, err := Load()
	require.NoError(t, err)
	for at := 1; at < len(guest070); at += len(guest070) / 8 {
		damaged := append([]byte(nil), guest070...)
		damaged[at] ^= 0x04
		if k, err := Decode(damaged); err == nil {
			require.NotEqual(t, want.table, k.table)
		} else {
			require.ErrorIs(t, err, errGuest)
		}
	}
}
