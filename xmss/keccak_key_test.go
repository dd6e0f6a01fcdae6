package xmss_test

import (
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
	"aggnode/xmss"
)

const goldenKeccakFile = "testdata/keccak/key.bin"

// goldenKeccakKey is the key of testSeed over epochs 0 to 65535. Generating it takes 1.5 s (AVX-512) to 11 s (portable) of one
// core.
func goldenKeccakKey(t testing.TB) *xmss.SecretKey {
	t.Helper()
	b, err := os.ReadFile(goldenKeccakFile)
	require.NoError(t, err)
	k, err := xmss.ParseSecretKey(b)
	require.NoError(t, err)
	return k
}

// kcDerivation is a golden value of the seed derivation, by the reference.
type kcDerivation struct {
	Seed       hexBytes   `json:"seed"`
	Param      hexBytes   `json:"public_param"`
	IsTop      bool       `json:"top"`
	Index      uint32     `json:"index"`
	Starts     []hexBytes `json:"chain_starts"`
	Signed     hexBytes   `json:"signed"`
	Randomizer hexBytes   `json:"randomizer_base"`
	Leaf       hexBytes   `json:"leaf"`
}

func TestKeccakDerivationReference(t *testing.T) {
	t.Parallel()
	var want []kcDerivation
	zero, counted := [32]byte{}, testSeed()
	for _, seed := range [][]byte{zero[:], counted[:]} {
		for _, at := range []struct {
			isTop bool
			index uint32
		}{{false, 0}, {false, 65536}, {false, 1<<32 - 1}, {true, 0}, {true, 65535}} {
			d := kcDerivation{Seed: hexBytes{B: seed}, Param: hexBytes{B: refKcParameter(seed)}, IsTop: at.isTop, Index: at.index}
			layer, signed := uint32(0), counted[:]
			if at.isTop {
				layer, signed = refKcTop, counted[:16]
			}
			for i := range 58 {
				d.Starts = append(d.Starts, hexBytes{B: refKcStart(d.Param.B, seed, layer, at.index, i)})
			}
			d.Signed = hexBytes{B: signed}
			d.Randomizer = hexBytes{B: refKc(d.Param.B, 30, 0, layer, at.index, seed, signed)}
			d.Leaf = hexBytes{B: refKcLeaf(d.Param.B, seed, layer, at.index)}
			want = append(want, d)
		}
	}
	if *update {
		writeVectors(t, "keccak/derivation.json", want)
	}
	var golden []kcDerivation
	readVectors(t, "keccak/derivation.json", &golden)
	require.Equal(t, golden, want)
}

// kcSigned is a golden signature of the golden key. Its message was chosen so that the search for a randomizer is short.
type kcSigned struct {
	Epoch     uint32   `json:"epoch"`
	Message   hexBytes `json:"message"`
	Trials    uint64   `json:"trials"`
	Signature hexBytes `json:"signature"`
}

func goldenSignatures(t testing.TB) (cases []kcSigned) {
	readVectors(t, "keccak/sign.json", &cases)
	require.NotEmpty(t, cases)
	return cases
}

// shortMessage is a message that a test key signs quickly at that epoch.
func shortMessage(t testing.TB, s xmss.Scheme, epoch uint32) (message [32]byte) {
	if s == xmss.Blake2s {
		return [32]byte{1}
	}
	for _, c := range goldenSignatures(t) {
		if c.Epoch == epoch {
			return c.Message.message()
		}
	}
	t.Fatalf("no short message for epoch %d", epoch)
	return message
}

// trialsOf is the number of randomizers that were looked at for a signature, from its randomizer and the base by the reference.
func trialsOf(t testing.TB, epoch uint32, message [32]byte, sig []byte) uint64 {
	seed := testSeed()
	base := refKc(refKcParameter(seed[:]), 30, 0, 0, epoch, seed[:], message[:])
	require.Equal(t, base[8:], sig[12:20])
	return binary.LittleEndian.Uint64(sig[4:]) - binary.LittleEndian.Uint64(base) + 1
}

// Not parallel: it changes the path.
func TestKeccakGoldenSignatures(t *testing.T) {
	defer lanes.Use(lanes.Current())
	k := goldenKeccakKey(t)
	if *update {
		var cases []kcSigned
		for _, epoch := range []uint32{0, 3, 511, 512, 40000, 65535} {
			for n := uint64(0); ; n++ {
				message := [32]byte(le64x4(n))
				sig, err := k.Sign(context.Background(), epoch, message)
				require.NoError(t, err)
				if trials := trialsOf(t, epoch, message, sig); trials < 60_000 {
					cases = append(cases, kcSigned{epoch, hexBytes{B: message[:]}, trials, hexBytes{B: sig}})
					break
				}
			}
		}
		writeVectors(t, "keccak/sign.json", cases)
	}
	seed := testSeed()
	for _, c := range goldenSignatures(t) {
		sig := c.Signature.B
		for _, path := range lanes.Paths() {
			lanes.Use(path)
			got, err := k.Sign(context.Background(), c.Epoch, c.Message.message())
			require.NoError(t, err)
			require.Equal(t, sig, got, "%s: epoch %d", path, c.Epoch)
		}
		require.NoError(t, xmss.Keccak.Verify(k.PublicKey(), c.Epoch, c.Message.message(), sig))
		require.NoError(t, refKcVerify(k.PublicKey(), c.Epoch, c.Message.message(), sig, false))

		require.Equal(t, c.Trials, trialsOf(t, c.Epoch, c.Message.message(), sig))
		pk := k.PublicKey()
		p := refKcParameter(seed[:])
		require.Equal(t, p, pk[16:])
		require.Equal(t, c.Trials, firstCodeword(p, seed[:], &c), "no earlier randomizer would have done")
		digits, _ := refKcDigits(refKc(p, 12, 0, 0, c.Epoch, c.Message.B, sig[4:20]))
		for i, d := range digits {
			want := refKcChain(p, 0, c.Epoch, i, 0, d, refKcStart(p, seed[:], 0, c.Epoch, i))
			require.Equal(t, want, sig[20+16*i:36+16*i], "chain %d", i)
		}
	}
	for _, epoch := range []uint32{65536, 1 << 31, 1<<32 - 1} {
		_, err := k.Sign(context.Background(), epoch, [32]byte{})
		require.ErrorIs(t, err, xmss.ErrEpochRange)
	}
}

// firstCodeword searches as the package says it does.
func firstCodeword(p, seed []byte, c *kcSigned) uint64 {
	r := refKc(p, 30, 0, 0, c.Epoch, seed, c.Message.B)
	first := binary.LittleEndian.Uint64(r)
	for a := uint64(0); ; a++ {
		binary.LittleEndian.PutUint64(r, first+a)
		if _, ok := refKcDigits(refKc(p, 12, 0, 0, c.Epoch, c.Message.B, r)); ok {
			return a + 1
		}
	}
}
