package leanproof

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
)

// transcriptStates are the inputs of all permutations of the check of the proof "two", as py-lean-pq's own verifier has them.
func transcriptStates(t *testing.T) []lanes.KeccakState {
	t.Helper()
	f, err := os.Open("testdata/two-states.txt.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var states []lanes.KeccakState
	for lines := bufio.NewScanner(z); lines.Scan(); {
		b, err := hex.DecodeString(lines.Text())
		require.NoError(t, err)
		var s lanes.KeccakState
		require.Len(t, b, 8*len(s))
		for i := range s {
			s[i] = word(b, i)
		}
		states = append(states, s)
	}
	return states
}

func TestTranscriptHasTheStatesOfThePackage(t *testing.T) {
	t.Parallel()
	want := transcriptStates(t)
	require.Len(t, want, 712)
	var got []lanes.KeccakState
	v := newVerifier(t)
	c := new(check)
	c.sponge.trace = func(s *lanes.KeccakState) { got = append(got, *s) }
	c.begin(readProof(t, "two"), nil)
	v.run(t.Context(), []*check{c})
	for i := range min(len(got), len(want)) {
		require.Equal(t, want[i], got[i], "permutation %d", i)
	}
	require.NoError(t, c.err)
	require.Len(t, got, len(want))
}
