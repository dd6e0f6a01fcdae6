package xmss

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
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
			checks := make([]Check, len(group))
			for i, c := range group {
				checks[i] = Check{
					Epoch: c.Epoch, Message: [MessageSize]byte(unhex(t, c.Message)),
					Signature: make([]byte, b2SignatureSize),
				}
				copy(checks[i].PublicKey[nodeSize:], unhex(t, c.PublicParam))
				copy(checks[i].Signature[b2RandomizerAt:], unhex(t, c.Randomness))
			}
			answers := make([]Answer, len(group))
			live := g.encode(g.read(checks, answers), answers)
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

// TestBlake2sChainsOfAnyDigitsReachTheirTips leads chains of digits that no admissible signature has, too.
func TestBlake2sChainsOfAnyDigitsReachTheirTips(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(31, 32))
		g := new(b2Group)
		for n := range 60 {
			live := lanes.LaneSet(rng.Uint32()) >> rng.IntN(16)
			all := rng.Uint64() // all digits the same, or any
			for i := range g.records {
				g.records[i] = byte(rng.Uint32())
			}
			for i := range g.digits {
				g.digits[i] = b2Digits{rng.Uint64(), rng.Uint64()}
				if n%4 == 0 {
					g.digits[i] = b2Digits{all % 8 * b2Ones, all / 8 % 8 * b2Ones}
				}
				for w := 3; w < 8; w++ {
					g.message[w][i] = rng.Uint32()
				}
			}
			want := g.records
			steps := uint64(0)
			for s := live; s != 0; s = s.Without() {
				i := s.First()
				for chain := range b2Chains {
					value := (*node)(want[i*b2RecordSize+b2ValuesAt+chain*nodeSize:])
					for digit := g.digits[i].of(chain); digit < b2ChainTop; digit++ {
						block := lanes.Blake2sBlock{b2ChainStep, uint32(chain)<<b2DigitBits | uint32(digit)}
						for w := 3; w < 8; w++ {
							block[w] = g.message[w][i]
						}
						b2PutWords(block[8:12], value[:])
						h := lanes.Blake2sInitial()
						h.Absorb(&block, 48, true)
						d := h.Digest()
						*value = b2Bytes(&d)
						steps++
					}
				}
			}
			before := lanes.Blake2sOccupancy()
			g.run = lanes.NewBlake2s()
			g.toTips(live)
			g.run.Done()
			require.Equal(t, want, g.records, "signatures %016b", live)
			after := lanes.Blake2sOccupancy()
			require.Equal(t, steps, after.Used-before.Used)
			require.LessOrEqual(t, after.Capacity-before.Capacity, steps+lanes.Blake2sWidth*b2ChainTop)
		}
	})
}
