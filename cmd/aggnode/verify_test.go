package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func proofFile(name string) string {
	return filepath.Join("..", "..", "leanproof", "testdata", "proofs", name+".bin")
}

func TestVerifyPrintsEveryClaimWithoutAnInstallation(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for name, want := range map[string][2]int{"eight": {8, 0}, "sph1": {0, 1}, "sph": {2, 1}} {
		out, err := runCommand(t, "verify", "--proof", proofFile(name), "--json")
		require.NoError(t, err, name)
		var a verifyAnswer
		require.NoError(t, json.Unmarshal([]byte(out), &a))
		require.True(t, a.Valid)
		require.Equal(t, "native", a.Verifier)
		require.Equal(t, want, [2]int{len(a.Claims), len(a.SPHINCS)}, name)
		for _, c := range append(a.Claims, a.SPHINCS...) {
			require.Len(t, c.PublicKey, 64)
			require.Len(t, c.Message, 64)
		}
	}
	out, err := runCommand(t, "verify", "--proof", proofFile("sph"))
	require.NoError(t, err)
	require.Contains(t, out, "3 claims")
	require.Contains(t, out, "leanSPHINCS public key")
}

func TestVerifyRefusesWithTheStageAndCodeOne(t *testing.T) {
	t.Parallel()
	proof, err := os.ReadFile(proofFile("two"))
	require.NoError(t, err)
	proof[len(proof)-1] ^= 1
	file := filepath.Join(t.TempDir(), "altered")
	require.NoError(t, os.WriteFile(file, proof, 0o600))
	out, err := runCommand(t, "verify", "--proof", file)
	require.Equal(t, exitError(1), err)
	require.Contains(t, out, "refused: check proof: opening")

	_, err = runCommand(t, "verify", "--proof", proofFile("two"), "--child", "--prover-dir", t.TempDir())
	require.ErrorContains(t, err, "aggnode prover install")
}
