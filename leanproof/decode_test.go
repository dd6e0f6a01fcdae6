package leanproof

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecodeIsTheInverseOfEncode(t *testing.T) {
	t.Parallel()
	for _, g := range genuine {
		proof := readProof(t, g.name)
		require.True(t, bytes.Equal(proof, newDraft(t, proof).encode()), g.name)
	}
}

func TestOtherLengthsAreRefused(t *testing.T) {
	t.Parallel()
	proof := readProof(t, "two")
	var p parts
	require.Equal(t, Encoding, p.decode(append(proof[:len(proof):len(proof)], 0)))
	step := 97
	if thorough() {
		step = 1
	}
	for n := 0; n < len(proof); n += step {
		require.Error(t, p.decode(proof[:n]), "%d bytes", n)
	}
	for n := range 3000 {
		require.Error(t, p.decode(proof[:n]), "%d bytes", n)
		require.Error(t, p.decode(proof[:len(proof)-1-n]), "%d bytes less", 1+n)
	}
}

func TestCountsAreBoundedBeforeTheyAreUsed(t *testing.T) {
	t.Parallel()
	proof := readProof(t, "two")
	words := 8 + 2*claimSize + 8 + 8 + 8 + pointSize*elementSize
	levels := words + 8 + 2067*elementSize
	for _, tc := range []struct {
		name string
		at   int
		want Refusal
	}{
		{"claims", 0, Encoding},
		{"claims of the other scheme", 8 + 2*claimSize, Encoding},
		{"data availability roots", 16 + 2*claimSize, DataRoots},
		{"coordinates of the deferred point", 24 + 2*claimSize, FieldLength},
		{"proof words", words, Encoding},
		{"levels", levels, MerkleShape},
		{"rows", levels + 8, MerkleShape},
		{"words of a row", levels + 16, MerkleShape},
		{"words of another row", levels + 16 + 8 + 8*44, MerkleShape},
		{"siblings", levels + 16 + 112*(8+8*44), Encoding},
	} {
		for _, count := range []uint64{1<<64 - 1, 1 << 63, 1 << 61, 1<<58 + 2, 1 << 32, 1 << 17} {
			edited := bytes.Clone(proof)
			copy(edited[tc.at:], appendWords(nil, count))
			var p parts
			require.Equal(t, tc.want, p.decode(edited), "%s: %d", tc.name, count)
		}
	}
}

func TestClaimsAreListedWithoutACheck(t *testing.T) {
	t.Parallel()
	for _, g := range genuine {
		c := claimsOf(t, readProof(t, g.name))
		require.Len(t, c.XMSS, g.xmss)
		require.Len(t, c.SPHINCS, g.sphincs)
	}
	d := newDraft(t, readProof(t, "two"))
	d.xmss[1].Message[5]++
	require.Equal(t, Claims{XMSS: d.xmss}, claimsOf(t, d.encode()))
	d.xmss[0], d.xmss[1] = d.xmss[1], d.xmss[0]
	_, err := ParseClaims(d.encode())
	require.Equal(t, SignerSet, err)
	_, err = ParseClaims([]byte("no proof"))
	require.Equal(t, Encoding, err)
}

func TestEveryRefusalHasACodeAStageAndAText(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for r := RefusalUnknown; r < refusals; r++ {
		require.NotEmpty(t, r.Code())
		require.False(t, seen[r.Code()], r.Code())
		seen[r.Code()] = true
		require.NotEmpty(t, refusalTexts[r].text)
		require.Equal(t, r == RefusalUnknown, r.Stage() == StageUnknown)
		require.Contains(t, r.Error(), r.Stage().String())
	}
	require.Equal(t, "unknown", refusals.Code())
	for s := range stages {
		require.NotEmpty(t, s.String())
	}
	require.Equal(t, "unknown", stages.String())
}

// garbageProofs are byte strings up to the cap of a gossiped proof, made to be as costly to refuse as may be.
func garbageProofs(t testing.TB) map[string][]byte {
	const most = 512 << 10
	noise := make([]byte, most)
	for i := range noise {
		noise[i] = byte(i*i>>3) | 1
	}
	claims := appendWords(nil, 8190)
	for i := range uint64(8190) {
		claims = appendWords(claims, 1, 1, 1, i<<48, 0, 0, 0, 0)
	}
	genuine := readProof(t, "two")
	claims = append(claims, genuine[8+2*claimSize:]...) // more than the cap: all of it is looked at
	rows := appendWords(nil, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, pointSize)
	rows = append(rows, make([]byte, pointSize*elementSize)...)
	rows = appendWords(rows, 0, 6)
	for range 6 {
		rows = appendWords(rows, maxQueries)
		for range maxQueries {
			rows = appendWords(rows, 0)
		}
		rows = appendWords(rows, 0)
	}
	return map[string][]byte{
		"nothing":               {},
		"noise":                 noise,
		"zeros":                 make([]byte, most),
		"as many claims as fit": claims,
		"as many rows as pass":  rows,
		"a byte too many":       append(genuine[:len(genuine):len(genuine)], 0),
		"a byte too few":        genuine[:len(genuine)-1],
	}
}

func BenchmarkGarbage(b *testing.B) {
	v := newVerifier(b)
	for name, garbage := range garbageProofs(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Check(b.Context(), garbage); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
