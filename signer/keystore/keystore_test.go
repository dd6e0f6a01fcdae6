package keystore

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/xmss"
)

// newKey makes a small blake2s key.
func newKey(t *testing.T, seed byte) *xmss.SecretKey {
	t.Helper()
	k, err := xmss.Generate(t.Context(), xmss.Blake2s, [xmss.SeedSize]byte{seed}, 0, 600, xmss.GenerateOptions{})
	require.NoError(t, err)

	return k
}

// write puts bytes into a file and returns its path.
func write(t *testing.T, name string, b []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.Chmod(path, mode))

	return path
}

func file(t *testing.T, k *xmss.SecretKey) []byte {
	t.Helper()
	b, err := k.MarshalBinary()
	require.NoError(t, err)

	return b
}

func TestLoadInOrder(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	requests := make([]Request, 6)
	for i := range requests {
		a, p := newKey(t, byte(2*i+1)), newKey(t, byte(2*i+2))
		requests[i] = Request{
			Index:           wire.ValidatorIndex(100 - i),
			AttestationFile: write(t, "a", file(t, a), 0o600),
			ProposalFile:    write(t, "p", file(t, p), 0o400),
			Attestation:     a.PublicKey(),
			Proposal:        p.PublicKey(),
		}
	}
	requests[2].AttestationFile = ""
	requests[3].ProposalFile = ""
	keys, err := Load(t.Context(), xmss.Blake2s, requests, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Len(t, keys, len(requests))
	for i, k := range keys {
		require.Equal(t, requests[i].Index, k.Index)
		if i == 2 {
			require.Nil(t, k.Attestation)
		} else {
			require.Equal(t, requests[i].Attestation, k.Attestation.PublicKey())
		}
		if i == 3 {
			require.Nil(t, k.Proposal)
		} else {
			require.Equal(t, requests[i].Proposal, k.Proposal.PublicKey())
		}
	}
	require.Empty(t, log.String())
	keys, err = Load(t.Context(), xmss.Blake2s, nil, nil)
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestEveryFaultIsNamed(t *testing.T) {
	t.Parallel()
	a, b := newKey(t, 1), newKey(t, 2)
	good, other := write(t, "good", file(t, a), 0o600), write(t, "other", file(t, b), 0o600)
	broken := file(t, a)
	broken[len(broken)/2] ^= 1
	requests := []Request{
		{Index: 0, AttestationFile: good, Attestation: a.PublicKey()},
		{Index: 1, AttestationFile: other, Attestation: a.PublicKey()},
		{Index: 2, ProposalFile: good, Proposal: b.PublicKey()},
		{Index: 3, AttestationFile: filepath.Join(t.TempDir(), "missing")},
		{Index: 4, AttestationFile: write(t, "broken", broken, 0o600), Attestation: a.PublicKey()},
		{Index: 5, AttestationFile: write(t, "empty", nil, 0o600)},
		{Index: 6, AttestationFile: write(t, "huge", make([]byte, 1<<20), 0o600)},
		{Index: 7, AttestationFile: t.TempDir()},
	}
	_, err := Load(t.Context(), xmss.Blake2s, requests, nil)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 7, "one line a fault: %v", err)
	public := func(k *xmss.SecretKey) string { p := k.PublicKey(); return hex.EncodeToString(p[:]) }
	for i, want := range [][]string{
		{other, public(b), public(a), "attestation key of validator 1"},
		{good, public(a), public(b), "proposal key of validator 2"},
		{"missing"},
		{"broken"},
		{"empty"},
		{"huge"},
		{"not a regular file"},
	} {
		for _, w := range want {
			require.Contains(t, lines[i], w)
		}
	}
	var mismatch *MismatchError
	require.ErrorAs(t, err, &mismatch)
	require.ErrorIs(t, err, xmss.ErrKeyFile)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSchemeOfTheProfileIsAskedFor(t *testing.T) {
	t.Parallel()
	k := newKey(t, 1)
	_, err := Load(t.Context(), xmss.Keccak, []Request{{AttestationFile: write(t, "k", file(t, k), 0o600), Attestation: k.PublicKey()}}, nil)
	require.ErrorContains(t, err, "blake2s")
	require.ErrorContains(t, err, "keccak")
}

func TestFileThatOthersCanReadIsWarnedOf(t *testing.T) {
	t.Parallel()
	k := newKey(t, 1)
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o644: true, 0o620: true} {
		var log bytes.Buffer
		path := write(t, "key", file(t, k), mode)
		_, err := Load(t.Context(), xmss.Blake2s, []Request{{AttestationFile: path, Attestation: k.PublicKey()}}, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		require.Equal(t, warned, strings.Contains(log.String(), path), "mode %o", mode)
	}
}

func TestPipeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, _, err := LoadFile(path)
	require.ErrorContains(t, err, "not a regular file")
}

func TestLoadStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := newKey(t, 1)
	_, err := Load(ctx, xmss.Blake2s, []Request{{AttestationFile: write(t, "k", file(t, k), 0o600), Attestation: k.PublicKey()}}, nil)
	require.ErrorIs(t, err, context.Canceled)
}
