package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/netconfig"
	"aggnode/xmss"
)

// runCommand runs the program in process.
func runCommand(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	err = root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestGenesisWritesAFolderThatANodeCanUse(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "genesis")
	out, err := runCommand(t, "genesis", "--out", dir, "--nodes", "3", "--committees", "2", "--validators", "7",
		"--profile", "local", "--scheme", "blake2s", "--insecure-devnet-keys", "--slot-duration", "6s", "--registry-limit", "16384")
	require.NoError(t, err)
	require.Contains(t, out, "aggnode run --custom-network-config-dir "+dir)

	n, err := netconfig.Load(dir, netconfig.Overrides{})
	require.NoError(t, err)
	require.Len(t, n.Validators, 7)
	require.Equal(t, 16384, n.Profile.RegistryLimit)
	require.Len(t, n.Bootnodes, 3)

	out, err = runCommand(t, "config", "check", "--custom-network-config-dir", dir, "--node-id", "aggnode_0", "--data-dir", t.TempDir())
	require.NoError(t, err)
	require.Contains(t, out, "profile local, scheme blake2s, backend bundle, 7 validators (3 ours) in 2 committees, 3 bootnodes, slots of 6s")

	_, err = runCommand(t, "genesis", "--out", dir, "--insecure-devnet-keys", "--profile", "local")
	require.ErrorContains(t, err, "not empty")
}

func TestGenesisMakesFreshKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "genesis")
	_, err := runCommand(t, "genesis", "--out", dir, "--nodes", "1", "--profile", "local", "--active-epoch", "9")
	require.NoError(t, err)
	out, err := runCommand(t, "config", "check", "--custom-network-config-dir", dir, "--node-id", "aggnode_0", "--data-dir", t.TempDir())
	require.NoError(t, err)
	require.Contains(t, out, "1 validators (1 ours)")
}

func TestKeysGenesisAndProfileMustFitTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "genesis")
	_, err := runCommand(t, "genesis", "--out", dir, "--nodes", "2", "--profile", "local", "--insecure-devnet-keys")
	require.NoError(t, err)
	check := func(args ...string) error {
		_, err := runCommand(t, append([]string{"config", "check", "--custom-network-config-dir", dir, "--node-id", "aggnode_0", "--data-dir", t.TempDir()}, args...)...)
		return err
	}
	require.NoError(t, check())
	require.ErrorContains(t, check("--scheme", "keccak"), "keccak", "key files are of another scheme")
	require.ErrorContains(t, check("--profile", "devnet5", "--backend", ""), "devnet5", "no backend")
	require.ErrorContains(t, check("--profile", "nonsense"), "nonsense")
	require.ErrorContains(t, check("--attestation-committee-count", "-1"), "--attestation-committee-count")
	require.ErrorContains(t, check("--bootnodes", "enr:broken"), "--bootnodes")
	require.ErrorContains(t, check("--node-key", "/nonexistent"), "--node-key")

	// One node's key in the other's place: both keys are named.
	a := filepath.Join(dir, netconfig.KeyDir, netconfig.SecretKeyFile(0, netconfig.RoleAttester))
	b, err := os.ReadFile(filepath.Join(dir, netconfig.KeyDir, netconfig.SecretKeyFile(1, netconfig.RoleAttester)))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a, b, 0o600))
	key, err := xmss.ParseSecretKey(b)
	require.NoError(t, err)
	pk := key.PublicKey()
	require.ErrorContains(t, check(), hexOf(pk[:]))
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
	}
	return s.String()
}

func TestKeygenNeverOverwrites(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	out, err := runCommand(t, "keygen", "--scheme", "blake2s", "--end", "511", "--out", file, "--json")
	require.NoError(t, err)
	var answer struct {
		PublicKey string `json:"public_key"`
		Bytes     int    `json:"bytes"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, b, answer.Bytes)
	key, err := xmss.ParseSecretKey(b)
	require.NoError(t, err)
	pk := key.PublicKey()
	require.Equal(t, hexOf(pk[:]), answer.PublicKey)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, err = runCommand(t, "keygen", "--out", file)
	require.ErrorContains(t, err, "exists")
}

func TestPrintedSettingsAreAFileForConfig(t *testing.T) {
	out, err := runCommand(t, "config", "print", "--api-port", "7000", "--aggregate-subnet-ids", "0,2", "--slot-duration", "8s")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	again, err := runCommand(t, "config", "print", "--config", file)
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Contains(t, out, "api-port: 7000")
	require.Contains(t, out, "slot-duration: 8s")
}

func TestWrongUseNamesTheFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "--custom-network-config-dir"},
		{[]string{"run", "--no-such-flag"}, "--no-such-flag"},
		{[]string{"verify"}, "--proof"},
		{[]string{"verify", "--proof", "/nonexistent"}, "--proof"},
		{[]string{"genesis"}, "--out"},
		{[]string{"genesis", "--out", "x", "--profile", "local", "--scheme", "rot13"}, "rot13"},
		{[]string{"genesis", "--out", "x", "--nodes", "0"}, "--nodes"},
		{[]string{"genesis", "--out", "x", "--validators", "65", "--insecure-devnet-keys"}, "--validators 65"},
		{[]string{"genesis", "--out", "x", "--profile", "local", "--registry-limit", "3"}, "--validators 4: must be 1 to 3"},
		{[]string{"genesis", "--out", "x", "--profile", "lean-pq", "--registry-limit", "8192"}, "--registry-limit"},
		{[]string{"keygen"}, "--out"},
		{[]string{"keygen", "--out", "x", "--scheme", "rot13"}, "--scheme rot13"},
		{[]string{"prover", "check"}, "--backend lean-pq"},
		{[]string{"devnet", "--backend", "rot13"}, "--backend rot13"},
		{[]string{"devnet", "--backend", "bundle", "--scheme", "rot13"}, "--scheme rot13"},
		{[]string{"devnet", "--backend", "bundle", "--nodes", "1", "--committees", "2"}, "--nodes 1"},
		{[]string{"devnet", "--backend", "bundle", "--validators", "65"}, "--validators 65"},
		{[]string{"devnet", "--backend", "bundle", "--slot-duration", "1s"}, "--slot-duration 1s"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			_, err := runCommand(t, c.args...)
			require.ErrorContains(t, err, c.want)
		})
	}
}
