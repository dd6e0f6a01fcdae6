package xmss

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
)

// kcTrace is one layer of keccak/xmss-keccak-trace.json.
type kcTrace struct {
	Layer      string  `json:"layer"`
	Index      uint32  `json:"lo"`
	Signed     string  `json:"signed_value"`
	Randomizer string  `json:"randomizer"`
	Digest     string  `json:"digest"`
	Digits     []uint8 `json:"digits"`
	ChainStep  struct {
		Chain    int    `json:"chain"`
		Position uint8  `json:"position"`
		Input    string `json:"input"`
		Output   string `json:"output"`
	} `json:"first_chain_step"`
	Tips  []string `json:"chain_tips"`
	Leaf  string   `json:"leaf"`
	Nodes []string `json:"nodes"`
	Root  string   `json:"root"`
}

// Not parallel: it changes the path.
func TestKeccakTraces(t *testing.T) {
	var f struct {
		Traces []struct {
			PublicKey string    `json:"public_key"`
			Signature string    `json:"signature"`
			Layers    []kcTrace `json:"layers"`
		} `json:"traces"`
	}
	readJSON(t, "keccak/xmss-keccak-trace.json", &f)
	require.Len(t, f.Traces, 3)
	onEachPath(t, func(t *testing.T) {
		for _, trace := range f.Traces {
			pk := PublicKey(unhex(t, trace.PublicKey))
			sig := unhex(t, trace.Signature)
			require.Len(t, trace.Layers, 2)
			checkKcTrace(t, pk, kcBottom, &trace.Layers[0], sig[kcIndexSize:kcTopAt])
			checkKcTrace(t, pk, kcTop, &trace.Layers[1], sig[kcTopAt:])
		}
	})
}

func checkKcTrace(t *testing.T, pk PublicKey, layer kcLayer, want *kcTrace, part []byte) {
	t.Helper()
	p := kcParamOf(&pk)
	tree := kcTree{&kcSecret{param: p}, layer}
	signed, randomizer := unhex(t, want.Signed), kcWords(unhex(t, want.Randomizer))
	text := func(d lanes.KeccakDigest) string { n := kcBytes(&d); return hex.EncodeToString(n[:]) }

	parts := []kcPart{layer.newPart(0, p, want.Index, signed, part)}
	var digests [groupSize / lanes.KeccakLanes]lanes.KeccakWideDigest
	layer.digests(parts, digests[:])
	require.Equal(t, want.Digest[:32], text(kcLane(&digests[0], 0)))
	require.Len(t, layer.encode(parts, make([]Answer, 1)), 1)
	require.Equal(t, want.Digits, parts[0].digits[:])

	var e kcEncoder // the signer's way to the same digest: trial 0
	e.init(tree, want.Index, signed, randomizer)
	e.digests(randomizer[0])
	require.Equal(t, want.Digest[:32], text(kcLane(&e.out[0], 0)))

	step := want.ChainStep
	v := kcWords(part[kcValuesAt+step.Chain*nodeSize:])
	words := []uint64{p[0], p[1], layer.chainStep(want.Index, step.Position), 0, v[0], v[1], uint64(step.Chain), 0}
	var input []byte
	for _, w := range words {
		input = binary.LittleEndian.AppendUint64(input, w)
	}
	require.Equal(t, step.Input, hex.EncodeToString(input))
	var block [1]lanes.KeccakWide64
	kcSetLane(block[0][:], 0, words)
	lanes.KeccakStepWide(block[:], kcStep, 1)
	require.Equal(t, step.Output, text(lanes.KeccakDigest{block[0][4][0], block[0][5][0]}))
	require.Equal(t, layer.chainStep(want.Index, step.Position+1), block[0][2][0])

	var leaves [groupSize / lanes.KeccakLanes]kcLeafInput
	layer.walk(parts, leaves[:])
	require.Len(t, want.Tips, kcChains)
	for i, tip := range want.Tips {
		require.Equal(t, tip, text(lanes.KeccakDigest{leaves[0][4+2*i][0], leaves[0][5+2*i][0]}), "chain %d", i)
	}
	layer.hashLeaves(parts, &leaves[0])
	require.Equal(t, want.Leaf, text(parts[0].at))
	at := kcBytes(&parts[0].at)
	layer.fold(parts)
	require.Equal(t, want.Root, text(parts[0].at))

	require.Len(t, want.Nodes, kcHeight)
	for l, w := range want.Nodes {
		pair := []node{at, node(part[kcPathAt+l*nodeSize:])}
		if want.Index>>l&1 != 0 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		var parent [1]node
		tree.parents(l+1, want.Index>>(l+1), pair, parent[:])
		at = parent[0]
		require.Equal(t, w, hex.EncodeToString(at[:]), "level %d", l+1)
	}
	require.Equal(t, want.Root, hex.EncodeToString(at[:]))
	if layer == kcTop {
		require.Equal(t, pk[:nodeSize], at[:])
	}
}
