package bundle

import (
	"bytes"
	"context"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/xmss"
)

const testEpoch = 2

var testMessage = [32]byte{1, 2, 3}

// raws signs testMessage with n keys of blake2s, each over four epochs.
func raws(t testing.TB, n int) []prover.Raw {
	t.Helper()
	out := make([]prover.Raw, n)
	for i := range out {
		key, err := xmss.Generate(t.Context(), xmss.Blake2s, [32]byte{byte(i), 9}, 0, 3, xmss.GenerateOptions{})
		require.NoError(t, err)
		sig, err := key.Sign(t.Context(), testEpoch, testMessage)
		require.NoError(t, err)
		pk := key.PublicKey()
		out[i] = prover.Raw{PublicKey: pk[:], Signature: sig}
	}
	return out
}

func job(raw []prover.Raw, children ...prover.Child) prover.Job {
	return prover.Job{Message: testMessage, Epoch: testEpoch, Raw: raw, Children: children}
}

func mustProve(t testing.TB, b *Backend, j prover.Job) prover.Child {
	t.Helper()
	r, err := b.Prove(t.Context(), j)
	require.NoError(t, err)
	return prover.Child{Claim: j.Claim(), Proof: r.Proof}
}

func TestProveAndVerify(t *testing.T) {
	t.Parallel()
	b := New(xmss.Blake2s)
	require.True(t, b.Ready())
	require.NoError(t, b.WaitReady(t.Context()))
	all := raws(t, 5)
	leaf := mustProve(t, b, job(all[:3]))
	require.Len(t, leaf.Proof, headerSize+3*1208)
	require.NoError(t, b.Verify(t.Context(), leaf.Claim, leaf.Proof))

	t.Run("merging keeps every signature once", func(t *testing.T) {
		other := mustProve(t, b, job(all[2:4]))
		merged := mustProve(t, b, job(all[4:], leaf, other))
		flat := mustProve(t, b, job(all))
		require.Equal(t, flat, merged)
		require.NoError(t, b.Verify(t.Context(), merged.Claim, merged.Proof))
		again := mustProve(t, b, job(all[:1], merged, merged))
		require.Equal(t, flat, again)
	})
	t.Run("a proof is refused for every claim but its own", func(t *testing.T) {
		fewer, more, swapped, message, epoch := leaf.Claim, leaf.Claim, leaf.Claim, leaf.Claim, leaf.Claim
		fewer.SignerSet = fewer.SignerSet[:64]
		more.SignerSet = prover.NewSignerSet([][]byte{leaf.Claim.Key(0), leaf.Claim.Key(1), leaf.Claim.Key(2), all[4].PublicKey})
		swapped.SignerSet = slices.Concat(leaf.Claim.Key(1), leaf.Claim.Key(0), leaf.Claim.Key(2))
		message.Message[0] ^= 1
		epoch.Epoch++
		for name, c := range map[string]prover.Claim{"fewer": fewer, "more": more, "swapped": swapped, "message": message, "epoch": epoch} {
			err := b.Verify(t.Context(), c, leaf.Proof)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, prover.ErrUnavailable, name)
		}
	})
	t.Run("proofs of 0 to 64 bytes, zeros and mutations are refused", func(t *testing.T) {
		bad := [][]byte{make([]byte, len(leaf.Proof)), append(bytes.Clone(leaf.Proof), 0), leaf.Proof[:len(leaf.Proof)-1]}
		for n := range 65 {
			bad = append(bad, leaf.Proof[:n], make([]byte, n))
		}
		for i := range headerSize {
			bad = append(bad, flip(leaf.Proof, i))
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			bad = append(bad, flip(leaf.Proof, rng.IntN(len(leaf.Proof))))
		}
		for _, p := range bad {
			err := b.Verify(t.Context(), leaf.Claim, p)
			require.Error(t, err)
			require.NotErrorIs(t, err, prover.ErrUnavailable)
		}
	})
	t.Run("a cancelled call says nothing about the proof", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, b.Verify(ctx, leaf.Claim, leaf.Proof), prover.ErrUnavailable)
		_, err := b.Prove(ctx, job(all))
		require.ErrorIs(t, err, context.Canceled)
		late, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		require.ErrorIs(t, b.Verify(late, leaf.Claim, leaf.Proof), prover.ErrTimeout)
	})
	t.Run("inspect is unsupported", func(t *testing.T) {
		var refused *prover.RefusedError
		_, err := b.Inspect(t.Context(), leaf.Proof)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, prover.CodeUnsupported, refused.Code)
	})
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

func TestProveRefusesJobs(t *testing.T) {
	t.Parallel()
	b := New(xmss.Blake2s)
	all := raws(t, 3)
	leaf := mustProve(t, b, job(all[:1]))
	with := func(f func(*prover.Job)) prover.Job {
		j := job(slices.Clone(all))
		f(&j)
		return j
	}
	for _, c := range []struct {
		name  string
		job   prover.Job
		code  prover.Code
		index int
	}{
		{"a bad signature is named", with(func(j *prover.Job) { j.Raw[2].Signature = flip(j.Raw[2].Signature, 700) }), prover.CodeBadSignature, 2},
		{"another epoch", with(func(j *prover.Job) { j.Epoch++ }), prover.CodeBadSignature, 0},
		{"a short signature", with(func(j *prover.Job) { j.Raw[1].Signature = j.Raw[1].Signature[1:] }), prover.CodeBadLength, 1},
		{"a short key", with(func(j *prover.Job) { j.Raw[1].PublicKey = j.Raw[1].PublicKey[1:] }), prover.CodeBadLength, 1},
		{"no inputs", job(nil), prover.CodeTooFewInputs, -1},
		{"too many raw signatures", job(slices.Repeat(all[:1], 435)), prover.CodeTooManyRaw, -1},
		{"too many children", job(nil, slices.Repeat([]prover.Child{leaf}, 17)...), prover.CodeTooManyChildren, -1},
		{"a child of another message", with(func(j *prover.Job) {
			j.Raw, j.Children = nil, []prover.Child{leaf}
			j.Message[0] ^= 1
		}), prover.CodeBadChild, 0},
		{"an altered child", job(nil, leaf, prover.Child{Claim: leaf.Claim, Proof: flip(leaf.Proof, 500)}), prover.CodeBadChild, 1},
		{"a child cut short", job(nil, prover.Child{Claim: leaf.Claim, Proof: leaf.Proof[:20]}), prover.CodeBadChild, 0},
	} {
		var refused *prover.RefusedError
		_, err := b.Prove(t.Context(), c.job)
		require.ErrorAs(t, err, &refused, c.name)
		require.Equal(t, c.code, refused.Code, c.name)
		require.Equal(t, c.index, refused.Index, c.name)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for scheme, most := range map[xmss.Scheme]int{xmss.Blake2s: 434, xmss.Keccak: 218} {
		caps, ok := New(scheme).Capabilities()
		require.True(t, ok)
		require.Equal(t, most, caps.MaxRaw)
		require.Equal(t, most, caps.MaxSigners)
		require.Equal(t, scheme.String(), caps.Scheme)
		require.LessOrEqual(t, headerSize+most*scheme.SignatureSize(), proofMax)
		require.Greater(t, headerSize+(most+1)*scheme.SignatureSize(), proofMax)
	}
}

// Two signatures that an independent program made; in scheme keccak the epoch is in the signature and must be the claim's.
func TestKeccak(t *testing.T) {
	t.Parallel()
	b := New(xmss.Keccak)
	var raw []prover.Raw
	for i, key := range []string{
		"3ae358d01b96d7ca6dd9dd5bc7683b860111dafedf7a9be6717c2100d622acf0",
		"54622451a82ab400e3878419201f08be1fb401e26e452b3bd8362803470f2ae9",
	} {
		sig, err := os.ReadFile([]string{"../known/keccak-0.sig", "../known/keccak-1.sig"}[i])
		require.NoError(t, err)
		pk, err := hex.DecodeString(key)
		require.NoError(t, err)
		raw = append(raw, prover.Raw{PublicKey: pk, Signature: sig})
	}
	message, err := hex.DecodeString("1d1d9dc8f2d6516f477dc5d1bf1048a15e1378a8fa802e1fb874e2a91337f439")
	require.NoError(t, err)
	j := prover.Job{Message: [32]byte(message), Epoch: 7, Raw: raw}
	p := mustProve(t, b, j)
	require.NoError(t, b.Verify(t.Context(), p.Claim, p.Proof))
	require.Error(t, New(xmss.Blake2s).Verify(t.Context(), p.Claim, p.Proof))
	j.Epoch = 8
	var refused *prover.RefusedError
	_, err = b.Prove(t.Context(), j)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, prover.CodeBadSignature, refused.Code)
}

// The calls of a Backend are those of a Client.
var (
	_ calls = (*Backend)(nil)
	_ calls = (*prover.Client)(nil)
)

type calls interface {
	Prove(context.Context, prover.Job) (prover.Result, error)
	Verify(context.Context, prover.Claim, []byte) error
	Inspect(context.Context, []byte) ([]prover.Entry, error)
	Capabilities() (prover.Capabilities, bool)
	Ready() bool
	WaitReady(context.Context) error
}

func FuzzVerify(f *testing.F) {
	b := New(xmss.Blake2s)
	claim := prover.Claim{Epoch: 1, SignerSet: bytes.Repeat([]byte{1}, 32)}
	f.Add([]byte("aggb\x01\x01\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00"))
	f.Add(append([]byte("aggb\x01\x01\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00"), make([]byte, 1208)...))
	f.Fuzz(func(t *testing.T, proof []byte) {
		require.Error(t, b.Verify(t.Context(), claim, proof))
	})
}

func BenchmarkVerify64(b *testing.B) {
	backend := New(xmss.Blake2s)
	c := mustProve(b, backend, job(raws(b, 64)))
	b.ReportAllocs()
	for b.Loop() {
		if err := backend.Verify(b.Context(), c.Claim, c.Proof); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/sig")
}
