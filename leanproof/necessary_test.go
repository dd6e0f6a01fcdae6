package leanproof

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
)

// verdictOf is the verdict on a proof by a verifier that leaves out the waived checks.
func verdictOf(t *testing.T, v *Verifier, proof []byte, waived ...Refusal) error {
	t.Helper()
	c := new(check)
	c.audit = func(r Refusal, _ gf.E) bool { return slices.Contains(waived, r) }
	c.begin(proof, nil)
	v.run(t.Context(), []*check{c})
	return c.err
}

// Each check of the transcript is the only one that stands between a made-up proof and acceptance, the opened trees aside:
// those hold any forgery, and the next test is about them.
func TestEachCheckAloneRefusesAForgery(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	base := readProof(t, "two")
	for _, tc := range []struct {
		spare  Refusal
		counts int // checks of the kind in a proof
		edit   func(*draft)
	}{
		{CountZero, 1, func(d *draft) { d.words[11] = gf.E{} }},
		{ProductLayer, 11, func(d *draft) { d.words[10].C0 ^= 1 }}, // pushed and pulled differ from the children's product
		{TableValue, 1, nil},
		{KeccakProduct, 12, nil},
		{KeccakLayer, 12, nil},
		{KeccakOutput, 1, nil},
		{KeccakInput, 1, nil},
		{DigestHalf, 1, func(d *draft) { d.words[1994].C2 = 1 }}, // root of the second tree
		{Nonce, 4, nil},
		{OpeningTerminal, 1, nil},
	} {
		which := upTo(tc.counts)
		if !thorough() {
			which = slices.Compact([]int{0, tc.counts - 1})
		}
		for _, nth := range which {
			t.Run(fmt.Sprintf("%s %d", tc.spare.Code(), nth), func(t *testing.T) {
				t.Parallel()
				f := &forger{t: t, v: v, d: newDraft(t, base), spare: tc.spare, nth: nth}
				f.d.xmss[0].Message[0] ^= 1
				if tc.edit != nil {
					tc.edit(f.d)
				}
				f.forge()
				forged := f.d.encode()
				require.Equal(t, tc.spare, verdictOf(t, v, forged, MerkleRoot), "by the check alone")
				require.NoError(t, verdictOf(t, v, forged, MerkleRoot, tc.spare), "without the check")
				require.Error(t, verdictOf(t, v, forged))
			})
		}
	}
}

func TestTheOpenedTreesAloneRefuseAForgery(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	for _, name := range []string{"two", "kids2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &forger{t: t, v: v, d: newDraft(t, readProof(t, name))}
			f.d.xmss[0].Message[0] ^= 1
			f.forge()
			forged := f.d.encode()
			require.Equal(t, MerkleRoot, verdictOf(t, v, forged))
			require.NoError(t, verdictOf(t, v, forged, MerkleRoot))
		})
	}
}

// Checks that come before the transcript: the forgery carries the fault all the way, so that the rest of the verifier accepts
// it.
func TestEachEarlyCheckAloneRefusesAForgery(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	base := readProof(t, "two")
	highLimb := func(i, limb int) func(*check) {
		return func(c *check) {
			c.words = slices.Clone(c.words)
			c.words[elementSize*i+8*limb] ^= 1
		}
	}
	for _, tc := range []struct {
		name   string
		want   Refusal
		edit   func(*draft)
		tamper func(*check)
	}{
		{name: "claims exchanged", want: SignerSet, edit: func(d *draft) { d.xmss[0], d.xmss[1] = d.xmss[1], d.xmss[0] }},
		{name: "a claim twice", want: SignerSet, edit: func(d *draft) { d.xmss[1] = d.xmss[0] }},
		{name: "no claims", want: SignerSet, edit: func(d *draft) { d.xmss = nil }},
		{name: "claims of the other scheme exchanged", want: SignerSet, edit: func(d *draft) {
			d.xmss, d.sphincs = nil, []Claim{d.xmss[1], d.xmss[0]}
		}},
		{name: "memory size with a middle limb", want: HighLimb, tamper: highLimb(0, 1)},
		{name: "row count with a high limb", want: HighLimb, tamper: highLimb(3, 2)},
		{name: "inverse rate with a high limb", want: HighLimb, tamper: highLimb(7, 2)},
		{name: "low half of the root with a high limb", want: DigestHalf, tamper: highLimb(8, 2)},
		{name: "high half of the root with a high limb", want: DigestHalf, tamper: highLimb(9, 2)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := &forger{t: t, v: v, d: newDraft(t, base), tamper: tc.tamper}
			if tc.edit != nil {
				tc.edit(f.d)
			}
			f.forge()
			got := f.run()
			require.Equal(t, RefusalUnknown, got.refusal, "the rest of the verifier accepts it")
			forged := f.d.encode()
			if tc.tamper != nil {
				copy(forged[f.d.wordsAt():], got.check.words)
			}
			require.Equal(t, tc.want, verdictOf(t, v, forged, MerkleRoot))
		})
	}
}

func TestGenuineProofsWithAnEditThatOneCheckSees(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	base := readProof(t, "two")

	t.Run("sibling", func(t *testing.T) {
		t.Parallel()
		for level := range 4 {
			d := newDraft(t, base)
			d.levels[level].siblings[len(d.levels[level].siblings)/2] ^= 1
			require.Equal(t, MerkleRoot, verdictOf(t, v, d.encode()))
			require.NoError(t, verdictOf(t, v, d.encode(), MerkleRoot))
		}
	})
	t.Run("sibling too many", func(t *testing.T) {
		t.Parallel()
		for level := range 4 {
			d := newDraft(t, base)
			d.levels[level].siblings = append(d.levels[level].siblings, make([]byte, digestSize)...)
			require.Equal(t, MerkleUnused, verdictOf(t, v, d.encode()))
			require.NoError(t, verdictOf(t, v, d.encode(), MerkleUnused))
		}
	})
	t.Run("sibling too few", func(t *testing.T) {
		t.Parallel()
		for level := range 4 {
			d := newDraft(t, base)
			d.levels[level].siblings = d.levels[level].siblings[digestSize:]
			require.Equal(t, MerkleMissing, verdictOf(t, v, d.encode(), MerkleRoot, MerkleUnused))
		}
	})
	t.Run("row too few", func(t *testing.T) {
		t.Parallel()
		for level := range 4 {
			d := newDraft(t, base)
			d.levels[level].rows = d.levels[level].rows[1:]
			require.Equal(t, MerkleMissing, verdictOf(t, v, d.encode(), MerkleRoot, MerkleUnused))
		}
	})
	t.Run("word too many", func(t *testing.T) {
		t.Parallel()
		d := newDraft(t, base)
		d.words = append(d.words, gf.E{})
		require.Equal(t, StreamLength, verdictOf(t, v, d.encode()))
		c := new(check)
		c.begin(base, nil)
		c.words = d.encodeWords()
		v.run(t.Context(), []*check{c})
		require.Equal(t, StreamUnread, c.err)
		c.begin(base, nil)
		c.words = d.encodeWords()
		c.audit = func(r Refusal, _ gf.E) bool { return r == StreamUnread }
		v.run(t.Context(), []*check{c})
		require.NoError(t, c.err)
	})
}
