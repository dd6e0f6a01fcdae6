package wire_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// participants returns the set of the indices.
func participants(t testing.TB, indices ...wire.ValidatorIndex) wire.Participants {
	t.Helper()
	p, err := wire.NewParticipants(indices)
	require.NoError(t, err)

	return p
}

func TestParticipantsEncodings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		encoding []byte
		indices  []wire.ValidatorIndex
		length   int
		shortest []byte
	}{
		"no bits":                   {[]byte{0x01}, nil, 0, []byte{0x01}},
		"three unset bits":          {[]byte{0x08}, nil, 3, []byte{0x01}},
		"the worked value":          {[]byte{0x09, 0x03}, []wire.ValidatorIndex{0, 3, 8}, 9, []byte{0x09, 0x03}},
		"one unset bit behind":      {[]byte{0x05}, []wire.ValidatorIndex{0}, 2, []byte{0x03}},
		"unset bytes behind":        {[]byte{0x01, 0, 0, 0x80}, []wire.ValidatorIndex{0}, 31, []byte{0x03}},
		"a full byte":               {[]byte{0xff, 0x01}, []wire.ValidatorIndex{0, 1, 2, 3, 4, 5, 6, 7}, 8, []byte{0xff, 0x01}},
		"the last bit of a word":    {append(make([]byte, 7), 0x80, 0x01), []wire.ValidatorIndex{63}, 64, append(make([]byte, 7), 0x80, 0x01)},
		"the first bit of a word":   {append(make([]byte, 8), 0x03), []wire.ValidatorIndex{64}, 65, append(make([]byte, 8), 0x03)},
		"the highest validator":     {append(make([]byte, 511), 0x80, 0x01), []wire.ValidatorIndex{4095}, 4096, append(make([]byte, 511), 0x80, 0x01)},
		"padded up to the limit":    {append(append([]byte{2}, make([]byte, 511)...), 0x01), []wire.ValidatorIndex{1}, 4096, []byte{0x06}},
		"delimiter at a new word":   {append(append([]byte{1}, make([]byte, 7)...), 0x01), []wire.ValidatorIndex{0}, 64, []byte{0x03}},
		"delimiter at a word's end": {append(append([]byte{1}, make([]byte, 6)...), 0x80), []wire.ValidatorIndex{0}, 63, []byte{0x03}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := wire.DecodeParticipants(tt.encoding)
			require.NoError(t, err)
			require.Equal(t, tt.length, p.Len())
			require.Equal(t, len(tt.indices), p.Count())
			require.Equal(t, tt.indices, append([]wire.ValidatorIndex(nil), p.Indices()...))
			require.Equal(t, tt.shortest, p.SSZ())
			require.Equal(t, tt.encoding, p.AppendReceived(nil))
			require.Equal(t, len(tt.indices) == 0, p.IsEmpty())

			root := p.HashTreeRoot(fixtureProfile)
			requireOracle(t, fixtureProfile, bareList[sszParticipant], tt.encoding, &root)

			same := participants(t, tt.indices...)
			require.True(t, p.Equal(same))
			require.True(t, same.Equal(p))
			require.Equal(t, tt.shortest, same.SSZ())
		})
	}
}

func TestParticipantsRefuse(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"nothing":               {},
		"no delimiter":          {0x00},
		"no delimiter at end":   {0x01, 0x00},
		"one bit too many":      append(make([]byte, 512), 0x02),
		"a set bit past limit":  append(make([]byte, 512), 0x03),
		"one byte too many":     append(make([]byte, 513), 0x01),
		"a megabyte":            append(make([]byte, 1<<20), 0x01),
		"a megabyte of nothing": make([]byte, 1<<20),
	} {
		_, err := wire.DecodeParticipants(b)
		requireReason(t, wire.ReasonMalformed, err)
		require.ErrorContains(t, err, "bitlist", name)
	}
	_, err := wire.NewParticipants([]wire.ValidatorIndex{3, 16384, 7})
	require.ErrorContains(t, err, "validator index 16384")
	_, err = wire.NewParticipants([]wire.ValidatorIndex{^wire.ValidatorIndex(0)})
	require.Error(t, err)
}

// TestParticipantsAgreeWithMaps compares all operations with sets that are Go
// maps, on random sets of all densities and lengths.
func TestParticipantsAgreeWithMaps(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	type set map[wire.ValidatorIndex]bool
	random := func() (wire.Participants, set) {
		m := set{}
		limit := 1 + rng.IntN(wire.DefaultRegistryLimit)
		for range rng.IntN(1 + rng.IntN(2*limit)) {
			m[wire.ValidatorIndex(rng.IntN(limit))] = true
		}
		indices := make([]wire.ValidatorIndex, 0, len(m))
		for v := range m {
			indices = append(indices, v)
		}

		return participants(t, indices...), m
	}
	sorted := func(m set) []wire.ValidatorIndex {
		out := make([]wire.ValidatorIndex, 0, len(m))
		for v := range m {
			out = append(out, v)
		}
		slices.Sort(out)

		return out
	}
	for range 80 {
		p, a := random()
		q, b := random()
		union, minus, common := set{}, set{}, 0
		for v := range a {
			union[v] = true
			if b[v] {
				common++
			} else {
				minus[v] = true
			}
		}
		for v := range b {
			union[v] = true
		}
		require.Equal(t, sorted(a), p.Indices())
		require.Equal(t, sorted(union), p.Union(q).Indices())
		require.Equal(t, sorted(minus), p.Minus(q).Indices())
		require.Equal(t, len(minus), p.CountNotIn(q))
		require.Equal(t, len(minus) == 0, p.IsSubsetOf(q))
		require.Equal(t, common > 0, p.Intersects(q))
		require.Equal(t, len(a) == len(b) && common == len(a), p.Equal(q))
		require.True(t, p.IsSubsetOf(p.Union(q)))
		require.True(t, p.Minus(p).IsEmpty())
		for range 20 {
			v := wire.ValidatorIndex(rng.IntN(wire.DefaultRegistryLimit + 100))
			require.Equal(t, a[v], p.Contains(v))
		}
		highest, ok := p.Highest()
		require.Equal(t, len(a) > 0, ok)
		if ok {
			require.Equal(t, sorted(a)[len(a)-1], highest)
			require.Equal(t, int(highest)+1, p.Len())
		}
		decoded, err := wire.DecodeParticipants(p.SSZ())
		require.NoError(t, err)
		require.Equal(t, p, decoded)
	}
}

// TestOperationsOnPaddedSetsAreMinimal feeds sets of different lengths to the
// operations: the results are in the shortest form, and the inputs can change
// nothing afterwards.
func TestOperationsOnPaddedSetsAreMinimal(t *testing.T) {
	t.Parallel()
	encoding := append(append([]byte{0b101}, make([]byte, 40)...), 0x01)
	p, err := wire.DecodeParticipants(encoding)
	require.NoError(t, err)
	q := participants(t, 9, 70)
	union := p.Union(q)
	require.Equal(t, participants(t, 0, 2, 9, 70), union)
	require.Equal(t, participants(t, 0, 2), p.Minus(q))
	require.Equal(t, 0, p.Minus(p).Len())
	for i := range encoding {
		encoding[i] = 0xff
	}
	require.Equal(t, participants(t, 0, 2, 9, 70), union)
	require.Equal(t, []wire.ValidatorIndex{0, 2}, p.Indices())
}

func TestParticipantsZeroValue(t *testing.T) {
	t.Parallel()
	var p wire.Participants
	require.Equal(t, []byte{1}, p.SSZ())
	require.Empty(t, p.Indices())
	require.False(t, p.Contains(0))
	require.True(t, p.IsSubsetOf(p))
	require.False(t, p.Intersects(p))
	require.True(t, p.Equal(participants(t)))
	require.Equal(t, "0 participants", p.String())
	require.Equal(t, "2 participants up to 9", participants(t, 9, 1, 9).String())
	_, ok := p.Highest()
	require.False(t, ok)
}
