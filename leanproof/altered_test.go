package leanproof

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A changed bit of any proof word, row, sibling or count is refused: some at random, every byte in a thorough run.
func TestNoBitMayChange(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	for _, name := range []string{"two", "kids2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof := readProof(t, name)
			random := rand.New(rand.NewPCG(1, uint64(len(proof))))
			offsets := make([]int, 60)
			for i := range offsets {
				offsets[i] = random.IntN(len(proof))
				if i%2 == 0 { // a quarter of the bytes are words, half of the changes are theirs
					offsets[i] = random.IntN(len(proof) / 4)
				}
			}
			if thorough() {
				offsets = upTo(len(proof))
			}
			for _, at := range offsets {
				bit := byte(1) << random.IntN(8)
				proof[at] ^= bit
				_, err := v.Check(t.Context(), proof)
				require.IsType(t, RefusalUnknown, err, "bit %#x of byte %d", bit, at)
				proof[at] ^= bit
			}
			_, err := v.Check(t.Context(), proof)
			require.NoError(t, err)
		})
	}
}

// alterations are kinds of edits of a proof, at random places.
var alterations = map[string]func(*rand.Rand, []byte) []byte{
	"bits": func(r *rand.Rand, b []byte) []byte {
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return b
	},
	"a word": func(r *rand.Rand, b []byte) []byte {
		binary.LittleEndian.PutUint64(b[8*r.IntN(len(b)/8):], r.Uint64())
		return b
	},
	"words exchanged": func(r *rand.Rand, b []byte) []byte {
		i, j := elementSize*r.IntN(len(b)/elementSize), elementSize*r.IntN(len(b)/elementSize)
		for k := range elementSize {
			b[i+k], b[j+k] = b[j+k], b[i+k]
		}
		return b
	},
	"a part over another": func(r *rand.Rand, b []byte) []byte {
		n := 8 * (1 + r.IntN(60))
		copy(b[8*r.IntN((len(b)-n)/8):][:n], b[8*r.IntN((len(b)-n)/8):])
		return b
	},
	"a part zero": func(r *rand.Rand, b []byte) []byte {
		n := 8 * (1 + r.IntN(60))
		clear(b[8*r.IntN((len(b)-n)/8):][:n])
		return b
	},
	"a part less": func(r *rand.Rand, b []byte) []byte {
		n := 8 * (1 + r.IntN(60))
		at := 8 * r.IntN((len(b)-n)/8)
		return slices.Delete(b, at, at+n)
	},
}

// Random edits of all genuine proofs are refused. LEANPROOF_CASES says how many.
func TestAlteredProofsAreRefused(t *testing.T) {
	t.Parallel()
	v := newVerifier(t)
	const shares = 4
	for share := range uint64(shares) {
		t.Run(strconv.FormatUint(share, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(share, 7))
			var proofs [][]byte
			for _, g := range genuine {
				proofs = append(proofs, readProof(t, g.name))
			}
			kinds := slices.Sorted(maps.Keys(alterations))
			for n := range cases() / shares {
				proof := proofs[r.IntN(len(proofs))]
				kind := kinds[n%len(kinds)]
				altered := alterations[kind](r, slices.Clone(proof))
				if _, err := v.Check(t.Context(), altered); err == nil && !bytes.Equal(altered, proof) {
					t.Fatalf("accepted with %s, share %d, case %d", kind, share, n)
				}
			}
		})
	}
}

// The edits and verdicts that py-lean-pq 0.7.0 gave, with the stage that its error text names.
func TestAlteredProofsAreRefusedAsByThePackage(t *testing.T) {
	t.Parallel()
	var cases []struct {
		What string
		Edit struct {
			Op, Hex                          string
			Length, Offset, A, B, Start, End int
		}
		Error string
	}
	b, err := os.ReadFile("testdata/tampered.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &cases))
	require.NotEmpty(t, cases)
	const (
		notEncoded = "invalid aggregate: not a valid aggregate encoding"
		badSigners = "invalid aggregate: malformed signer set"
		badProof   = "invalid aggregate: the snark did not verify: "
	)
	// The package names its stages otherwise, and looks at sizes later.
	refusals := map[string][]Refusal{
		notEncoded:                        {Encoding, FieldLength, MerkleShape},
		badSigners:                        {SignerSet},
		badProof + "Merkle root mismatch": {MerkleRoot},
		badProof + "GKR layer 20: children do not match the sumcheck": {ProductLayer, CommittedSize},
	}
	for _, tc := range cases {
		t.Run(tc.What, func(t *testing.T) {
			t.Parallel()
			proof := readProof(t, "two")
			with, err := hex.DecodeString(tc.Edit.Hex)
			require.NoError(t, err)
			switch e := tc.Edit; e.Op {
			case "truncate":
				proof = proof[:e.Length]
			case "append":
				proof = append(proof, with...)
			case "xor":
				for i, b := range with {
					proof[e.Offset+i] ^= b
				}
			case "swap":
				was := slices.Clone(proof)
				copy(proof[e.A:], was[e.B:e.B+e.Length])
				copy(proof[e.B:], was[e.A:e.A+e.Length])
			case "replace":
				proof = slices.Replace(proof, e.Start, e.End, with...)
			default:
				t.Fatal(e.Op)
			}
			_, err = newVerifier(t).Check(t.Context(), proof)
			require.Contains(t, refusals[tc.Error], err)
		})
	}
}
