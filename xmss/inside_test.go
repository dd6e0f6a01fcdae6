package xmss

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
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
	t.Parallel()
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
	for _, c := range cases {
		var first lanes.Blake2sBlock
		p := b2Param(b2Words(unhex(t, c.PublicParam)))
		p.tweak(&first, c.TweakType<<8, c.SubPosition, c.Index)
		payload := unhex(t, c.Payload)
		words := make([]uint32, len(payload)/4)
		b2PutWords(words, payload)

		h := lanes.Blake2sInitial()
		n := copy(first[8:], words)
		words = words[n:]
		total := uint32(32 + 4*n)
		h.Absorb(&first, total, len(words) == 0)
		for len(words) > 0 {
			var b lanes.Blake2sBlock
			n := copy(b[:], words)
			words = words[n:]
			total += uint32(4 * n)
			h.Absorb(&b, total, len(words) == 0)
		}
		d := h.Digest()
		got := b2Bytes(&d)
		require.Equal(t, c.Digest, hex.EncodeToString(got[:]), "type %d sub %d index %d", c.TweakType, c.SubPosition, c.Index)
	}
}

func TestBlake2sEncodingVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		PublicParam string  `json:"public_param"`
		Message     string  `json:"message"`
		Randomness  string  `json:"randomness"`
		Epoch       uint32  `json:"epoch"`
		Digits      []uint8 `json:"digits"`
	}
	readJSON(t, "blake2s/encode.json", &cases)
	admissible := 0
	for _, c := range cases {
		p := b2Param(b2Words(unhex(t, c.PublicParam)))
		message := [MessageSize]byte(unhex(t, c.Message))
		var e b2Encoder
		e.init(&p, c.Epoch, &message)
		b2PutWords(e.block[:b2RandomizerSize/4], unhex(t, c.Randomness))
		d := e.digest()
		digits, ok := b2Digits(&d)
		require.Equal(t, c.Digits != nil, ok, c.Randomness)
		if ok {
			require.Equal(t, c.Digits, digits[:])
			admissible++
		}
	}
	require.Positive(t, admissible)
	require.Less(t, admissible, len(cases))
}

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
		Position int    `json:"position"`
		Input    string `json:"input"`
		Output   string `json:"output"`
	} `json:"first_chain_step"`
	Tips  []string `json:"chain_tips"`
	Leaf  string   `json:"leaf"`
	Nodes []string `json:"nodes"`
	Root  string   `json:"root"`
}

func TestKeccakTraces(t *testing.T) {
	t.Parallel()
	var f struct {
		Traces []struct {
			PublicKey string    `json:"public_key"`
			Signature string    `json:"signature"`
			Layers    []kcTrace `json:"layers"`
		} `json:"traces"`
	}
	readJSON(t, "keccak/xmss-keccak-trace.json", &f)
	require.Len(t, f.Traces, 3)
	for _, trace := range f.Traces {
		pk := PublicKey(unhex(t, trace.PublicKey))
		sig := unhex(t, trace.Signature)
		require.Len(t, trace.Layers, 2)
		checkKcTrace(t, pk, kcBottom, &trace.Layers[0], sig[kcIndexSize:kcTopAt])
		checkKcTrace(t, pk, kcTop, &trace.Layers[1], sig[kcTopAt:])
	}
}

func checkKcTrace(t *testing.T, pk PublicKey, layer kcLayer, want *kcTrace, part []byte) {
	t.Helper()
	p := kcParamOf(&pk)
	text := func(d lanes.KeccakDigest) string { n := kcBytes(&d); return hex.EncodeToString(n[:]) }

	d := p.digest(layer, want.Index, unhex(t, want.Signed), kcWords(unhex(t, want.Randomizer)))
	require.Equal(t, want.Digest[:32], text(d))
	digits, ok := kcDigits(&d)
	require.True(t, ok)
	require.Equal(t, want.Digits, digits[:])

	var e kcEncoder // the signer's way to the same digest: trial 0
	e.init(&p, layer, want.Index, unhex(t, want.Signed))
	require.Equal(t, d, e.digests(kcWords(unhex(t, want.Randomizer)), 0)[0])

	var block [1]lanes.KeccakBlock64
	var out [1]lanes.KeccakDigest
	step := want.ChainStep
	p.step(&block[0], layer, step.Chain, step.Position, want.Index)
	v := kcWords(part[kcValuesAt+step.Chain*nodeSize:])
	block[0][4], block[0][5] = v[0], v[1]
	var input []byte
	for _, w := range block[0] {
		input = binary.LittleEndian.AppendUint64(input, w)
	}
	require.Equal(t, step.Input, hex.EncodeToString(input))
	kcStepAll(block[:], out[:])
	require.Equal(t, step.Output, text(out[0]))

	var words [kcLeafWords]uint64
	require.Len(t, want.Tips, kcChains)
	for i, tip := range want.Tips {
		w := kcWords(unhex(t, tip))
		words[4+2*i], words[5+2*i] = w[0], w[1]
	}
	leaf := p.leaf(&words, layer, want.Index)
	require.Equal(t, want.Leaf, text(leaf))

	at := kcBytes(&leaf)
	require.Len(t, want.Nodes, kcHeight)
	tree := kcTree{&kcSecret{param: p}, layer}
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
