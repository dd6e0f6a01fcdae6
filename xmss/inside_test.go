package xmss

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
)

// The published intermediate values, which the exported API does not show.

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, into))
}

func TestBlake2sTweakHashVectors(t *testing.T) {
	var cases []struct {
		PublicParam string `json:"public_param"`
		TweakType   uint32 `json:"tweak_type"`
		SubPosition uint32 `json:"sub_position"`
		Index       uint32 `json:"index"`
		Payload     string `json:"payload"`
		Digest      string `json:"digest"`
	}
	readJSON(t, "blake2s/tweak_hash.json", &cases)
	require.NotEmpty(t, cases)
	onEachPath(t, func(t *testing.T) {
		for _, c := range cases {
			var p b2Param
			b2PutWords(p[:], unhex(t, c.PublicParam))
			var block lanes.Blake2sWide // the same in all lanes
			p.tweakAll(&block, c.TweakType<<8, c.Index)
			b2Fill(&block[1], c.SubPosition)
			payload := unhex(t, c.Payload)
			words := make([]uint32, len(payload)/4)
			b2PutWords(words, payload)

			used := lanes.FirstLanes(lanes.Blake2sWidth)
			run := lanes.NewBlake2s()
			var h lanes.Blake2sStates
			h.Reset()
			place, total := 8, uint32(32)
			for {
				n := min(len(words), len(block)-place)
				for i, w := range words[:n] {
					b2Fill(&block[place+i], w)
				}
				words, total = words[n:], total+uint32(4*n)
				run.Absorb(&h, &block, total, len(words) == 0, used)
				if len(words) == 0 {
					break
				}
				block, place = lanes.Blake2sWide{}, 0
			}
			for k := range lanes.Blake2sWidth {
				got := b2Column((*b2Rows)(h[:]), k)
				require.Equal(t, c.Digest, hex.EncodeToString(got[:]), "type %d sub %d index %d", c.TweakType, c.SubPosition, c.Index)
			}
		}
	})
}

func TestBlake2sEncodingVectors(t *testing.T) {
	var cases []struct {
		PublicParam string  `json:"public_param"`
		Message     string  `json:"message"`
		Randomness  string  `json:"randomness"`
		Epoch       uint32  `json:"epoch"`
		Digits      []uint8 `json:"digits"`
	}
	readJSON(t, "blake2s/encode.json", &cases)
	onEachPath(t, func(t *testing.T) {
		admissible := 0
		for group := range slices.Chunk(cases, groupSize) {
			g := b2Group{run: lanes.NewBlake2s()}
			for i, c := range group {
				check := Check{Epoch: c.Epoch, Message: [MessageSize]byte(unhex(t, c.Message))}
				copy(check.PublicKey[nodeSize:], unhex(t, c.PublicParam))
				g.checks = append(g.checks, check)
				g.sigs[i] = new([b2SignatureSize]byte)
				copy(g.sigs[i][b2RandomizerAt:], unhex(t, c.Randomness))
			}
			answers := make([]Answer, len(group))
			live := g.encode(lanes.FirstLanes(len(group)), answers)
			for i, c := range group {
				require.Equal(t, c.Digits != nil, live>>i&1 != 0, c.Randomness)
				for chain, d := range c.Digits {
					require.Equal(t, d, g.digits[i].of(chain))
				}
				if c.Digits != nil {
					require.NoError(t, answers[i].Err)
					admissible++
				} else {
					require.ErrorIs(t, answers[i].Err, ErrCodeword)
				}
			}
		}
		require.Positive(t, admissible)
		require.Less(t, admissible, len(cases))
	})
}
