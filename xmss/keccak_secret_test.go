package xmss

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
)

// Not parallel, as every test that changes the path.
func TestKeccakSecretsAgreeWithTheReference(t *testing.T) {
	var golden []struct {
		Seed       string   `json:"seed"`
		Param      string   `json:"public_param"`
		IsTop      bool     `json:"top"`
		Index      uint32   `json:"index"`
		Starts     []string `json:"chain_starts"`
		Signed     string   `json:"signed"`
		Randomizer string   `json:"randomizer_base"`
		Leaf       string   `json:"leaf"`
	}
	readJSON(t, "keccak/derivation.json", &golden)
	require.NotEmpty(t, golden)
	text := func(w [2]uint64) string { n := kcBytes((*lanes.KeccakDigest)(&w)); return hex.EncodeToString(n[:]) }
	onEachPath(t, func(t *testing.T) {
		for _, want := range golden {
			tree := kcTree{newKcSecret((*[SeedSize]byte)(unhex(t, want.Seed))), kcBottom}
			if want.IsTop {
				tree.layer = kcTop
			}
			require.Equal(t, want.Param, text(tree.param))
			require.Equal(t, want.Randomizer, text(tree.randomizerBase(want.Index, unhex(t, want.Signed))))
			var leaf [1]node
			tree.leaves(want.Index, leaf[:])
			require.Equal(t, want.Leaf, hex.EncodeToString(leaf[0][:]))
			values := tree.appendValues(nil, want.Index, new([kcChains]uint8)) // at digit 0: the starts
			require.Len(t, want.Starts, kcChains)
			for i, start := range want.Starts {
				require.Equal(t, start, hex.EncodeToString(values[i*nodeSize:][:nodeSize]), "chain %d", i)
			}
		}
	})
}

func TestKeccakTreesAreTheSameOnEveryPath(t *testing.T) {
	defer lanes.Use(lanes.Current())
	rng := rand.New(rand.NewPCG(13, 14))
	for range 6 {
		var seed [SeedSize]byte
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		tree := kcTree{newKcSecret(&seed), [...]kcLayer{kcBottom, kcTop}[rng.IntN(2)]}
		first, n := rng.Uint32N(1<<16-64), 1+rng.IntN(40)
		level := 1 + rng.IntN(kcHeight)
		children := make([]node, 2*(1+rng.IntN(70)))
		for i := range children {
			children[i] = node(seed[i%nodeSize:])
		}
		var wantLeaves, wantParents []node
		for _, path := range lanes.Paths() { // the portable one comes first
			lanes.Use(path)
			leaves, parents := make([]node, n), make([]node, len(children)/2)
			tree.leaves(first, leaves)
			tree.parents(level, first, children, parents)
			if wantLeaves == nil {
				wantLeaves, wantParents = leaves, parents
			}
			require.Equal(t, wantLeaves, leaves, "%s: %d leaves from %d", path, n, first)
			require.Equal(t, wantParents, parents, path)
		}
		for i := range n { // one at a time
			var leaf [1]node
			tree.leaves(first+uint32(i), leaf[:])
			require.Equal(t, wantLeaves[i], leaf[0])
		}
	}
}

func TestKeccakTrialsFollowOneAnother(t *testing.T) {
	tree := kcTree{newKcSecret(&[SeedSize]byte{5}), kcBottom}
	signed, base := make([]byte, 32), [2]uint64{1<<64 - 10, 7} // the number of the randomizer passes zero
	onEachPath(t, func(t *testing.T) {
		for layer, size := range map[kcLayer]int{kcBottom: 32, kcTop: 16} {
			tree.layer = layer
			var e kcEncoder
			e.init(tree, 3, signed[:size], base)
			for range 2 {
				e.digests(base[0])
			}
			for k := range kcTrials {
				in := tree.param.digestInput(layer, 3, signed[:size], [2]uint64{base[0] + uint64(k), base[1]})
				var a lanes.KeccakState
				a.Finish(in.words())
				require.Equal(t, a.Digest(), kcLane(&e.out[k/lanes.KeccakLanes], k%lanes.KeccakLanes), "trial %d", k)
			}
		}
	})
}

func TestKeccakSearchesTakeTheFirstCodeword(t *testing.T) {
	var signed []struct {
		Epoch   uint32 `json:"epoch"`
		Message string `json:"message"`
		Trials  int    `json:"trials"` // up to the first codeword, by the reference
	}
	readJSON(t, "keccak/sign.json", &signed)
	require.NotEmpty(t, signed)
	var seed [SeedSize]byte
	for i := range seed {
		seed[i] = byte(i)
	}
	tree := kcTree{newKcSecret(&seed), kcBottom}
	onEachPath(t, func(t *testing.T) {
		for _, c := range signed {
			message := unhex(t, c.Message)
			found, err := tree.search(t.Context(), c.Epoch, message)
			require.NoError(t, err)
			base := tree.randomizerBase(c.Epoch, message)
			require.Equal(t, c.Trials, int(found.randomizer[0]-base[0])+1)
			require.Equal(t, base[1], found.randomizer[1])
		}
	})
}
