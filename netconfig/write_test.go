package netconfig

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testKey returns n bytes that tell who they belong to.
func testKey(n int, index, role byte) []byte {
	k := bytes.Repeat([]byte{0xa0 + role}, n)
	k[0], k[n-1] = index, index

	return k
}

// testSpec is a network of three nodes and five validators, one node without
// any.
func testSpec() GenesisSpec {
	s := GenesisSpec{
		GenesisTime:    1700000000,
		SlotDuration:   6 * time.Second,
		Committees:     2,
		ActiveEpochLog: 16,
		Profile:        "local",
		Scheme:         wire.SchemeKeccak,
		Backend:        "bundle",
	}
	for i, count := range []int{3, 2, 0} {
		n := NodeSpec{
			Name:         fmt.Sprintf("aggnode_%d", i),
			IP:           netip.MustParseAddr("127.0.0.1"),
			QUICPort:     uint16(9001 + i),
			MetricsPort:  uint16(8081 + i),
			APIPort:      uint16(5051 + i),
			PrivateKey:   [32]byte(testKey(32, byte(i+1), 7)),
			IsAggregator: i < 2,
			Count:        count,
		}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range byte(5) {
		s.Validators = append(s.Validators, ValidatorSpec{
			AttestationKey:    testKey(32, i, 0),
			ProposalKey:       testKey(32, i, 1),
			AttestationSecret: []byte(fmt.Sprintf("attestation secret %d", i)),
			ProposalSecret:    []byte(fmt.Sprintf("proposal secret %d", i)),
		})
	}

	return s
}

// readTree returns all files below dir and their modes.
func readTree(t *testing.T, dir string) (files map[string]string, modes map[string]fs.FileMode) {
	t.Helper()
	files, modes = map[string]string{}, map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		files[name], modes[name] = string(b), info.Mode()

		return err
	}))

	return files, modes
}

// TestWrittenFolderMatchesGolden compares every byte of a folder. The golden
// files were made by this package; each was read by eye.
func TestWrittenFolderMatchesGolden(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "folder")
	if *update {
		require.NoError(t, os.RemoveAll(golden))
		require.NoError(t, Write(golden, testSpec()))
	}
	dir := filepath.Join(t.TempDir(), "new", "net")
	require.NoError(t, Write(dir, testSpec()))
	want, _ := readTree(t, golden)
	got, modes := readTree(t, dir)
	require.Equal(t, want, got)
	for name, mode := range modes {
		isSecret := filepath.Ext(name) == ".key" || bytes.Contains([]byte(name), []byte("_sk.")) || name == ValidatorConfigFile
		if isSecret {
			require.Equal(t, fs.FileMode(0o600), mode, name)
		} else {
			require.Equal(t, fs.FileMode(0o644), mode, name)
		}
	}
	info, err := os.Stat(filepath.Join(dir, KeyDir))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
}

func TestLoadReadsWhatWriteWrote(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	dir := t.TempDir()
	require.NoError(t, Write(dir, spec))
	n, err := Load(dir, Overrides{})
	require.NoError(t, err)

	require.Equal(t, spec.GenesisTime, n.GenesisTime)
	require.Equal(t, spec.SlotDuration, n.SlotDuration)
	require.Equal(t, spec.Committees, n.Committees)
	require.Equal(t, "local", n.Profile.Name)
	require.Equal(t, wire.SchemeKeccak, n.Profile.Scheme)
	require.Equal(t, "bundle", n.Backend)
	require.Len(t, n.Validators, len(spec.Validators))
	for i, v := range spec.Validators {
		require.Equal(t, wire.Validator{AttestationKey: v.AttestationKey, ProposalKey: v.ProposalKey, Index: wire.ValidatorIndex(i)}, n.Validators[i])
	}
	require.Len(t, n.Bootnodes, len(spec.Nodes))
	for i, want := range spec.Nodes {
		got := n.Bootnodes[i]
		id, err := PeerIDOfKey(want.PrivateKey)
		require.NoError(t, err)
		require.Equal(t, Node{
			Name: want.Name, PeerID: id, QUIC: netip.AddrPortFrom(want.IP, want.QUICPort),
			IsAggregator: want.IsAggregator, IsSigned: true,
		}, got)
		require.Equal(t, want.Name, n.NodeNames[id])
		key, err := LoadNodeKey(filepath.Join(dir, want.Name+".key"))
		require.NoError(t, err)
		require.Equal(t, want.PrivateKey, key)
	}

	// Round robin: one each in turn, the first node has one more.
	for i, want := range [][]wire.ValidatorIndex{{0, 2, 4}, {1, 3}, nil} {
		duties, err := n.Duties(spec.Nodes[i].Name)
		require.NoError(t, err)
		var got []wire.ValidatorIndex
		for _, d := range duties {
			got = append(got, d.Index)
			for file, secret := range map[string][]byte{
				d.AttestationKeyFile: spec.Validators[d.Index].AttestationSecret,
				d.ProposalKeyFile:    spec.Validators[d.Index].ProposalSecret,
			} {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, secret, b)
			}
		}
		require.Equal(t, want, got)
	}

	state, err := os.ReadFile(filepath.Join(dir, GenesisStateFile))
	require.NoError(t, err)
	decoded, err := n.Profile.DecodeState(state)
	require.NoError(t, err)
	root, err := decoded.HashTreeRoot(n.Profile)
	require.NoError(t, err)
	block, _, err := n.Profile.GenesisBlock(n.GenesisTime, n.Validators)
	require.NoError(t, err)
	require.Equal(t, block.StateRoot, root)
}

func TestADefaultSlotIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.SlotDuration, spec.Scheme, spec.Backend, spec.Committees = 0, "", "", 0
	dir := t.TempDir()
	require.NoError(t, Write(dir, spec))
	b, err := os.ReadFile(filepath.Join(dir, ConfigFile))
	require.NoError(t, err)
	require.NotContains(t, string(b), "MILLISECONDS_PER_SLOT")
	n, err := Load(dir, Overrides{})
	require.NoError(t, err)
	require.Equal(t, DefaultSlotDuration, n.SlotDuration)
	require.Equal(t, uint64(1), n.Committees)
	require.Equal(t, wire.SchemeBlake2s, n.Profile.Scheme)
	require.Empty(t, n.Backend)
}

func TestTheRegistryLimitIsWrittenDown(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.RegistryLimit = len(spec.Validators)
	dir := t.TempDir()
	require.NoError(t, Write(dir, spec))
	n, err := Load(dir, Overrides{})
	require.NoError(t, err)
	require.Equal(t, spec.RegistryLimit, n.Profile.RegistryLimit)
}

func TestAValidatorWithoutSecretsHasNoDuty(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.Validators[2].AttestationSecret, spec.Validators[2].ProposalSecret = nil, nil
	spec.Validators[4].ProposalSecret = nil
	dir := t.TempDir()
	require.NoError(t, Write(dir, spec))
	n, err := Load(dir, Overrides{})
	require.NoError(t, err)
	duties, err := n.Duties("aggnode_0")
	require.NoError(t, err)
	require.Len(t, duties, 2)
	require.Equal(t, wire.ValidatorIndex(4), duties[1].Index)
	require.Empty(t, duties[1].ProposalKeyFile)
	require.NotEmpty(t, duties[1].AttestationKeyFile)
}

func TestWriteRefusesAFolderWithContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("x"), 0o600))
	require.ErrorContains(t, Write(dir, testSpec()), "is not empty")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	spec := testSpec()
	spec.Overwrite = true
	require.NoError(t, os.WriteFile(filepath.Join(dir, "aggnode_0.key"), []byte("old"), 0o644))
	require.NoError(t, Write(dir, spec))
	info, err := os.Stat(filepath.Join(dir, "aggnode_0.key"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode(), "the mode of the old file does not stay")
	_, err = os.Stat(filepath.Join(dir, "mine"))
	require.NoError(t, err)

	file := filepath.Join(dir, "mine")
	require.Error(t, Write(file, spec))
}

func TestWriteRefusesAnInconsistentSpec(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		edit func(*GenesisSpec)
		want string
	}{
		"an unknown profile":        {func(s *GenesisSpec) { s.Profile = "devnet6" }, `unknown profile "devnet6"`},
		"a scheme of another":       {func(s *GenesisSpec) { s.Profile = "devnet5" }, `no scheme "keccak"`},
		"a short slot":              {func(s *GenesisSpec) { s.SlotDuration = 995 * time.Millisecond }, "slot duration 995ms"},
		"an uneven slot":            {func(s *GenesisSpec) { s.SlotDuration = 4001 * time.Millisecond }, "multiple of 5 ms"},
		"no validators":             {func(s *GenesisSpec) { s.Validators = nil }, "0 validators"},
		"too many validators":       {func(s *GenesisSpec) { s.Validators = slices.Repeat(s.Validators, 820) }, "4100 validators"},
		"past the registry limit":   {func(s *GenesisSpec) { s.RegistryLimit = 4 }, "5 validators, must be 1 to 4"},
		"no registry limit":         {func(s *GenesisSpec) { s.RegistryLimit = -1 }, "registry limit -1"},
		"a limit of another":        {func(s *GenesisSpec) { s.Profile, s.RegistryLimit = "lean-pq", 64 }, `"lean-pq" is 4096`},
		"no proposal key":           {func(s *GenesisSpec) { s.Validators[1].ProposalKey = nil }, "validator 1 has no proposal key"},
		"a key of another length":   {func(s *GenesisSpec) { s.Validators[1].ProposalKey = make([]byte, 52) }, "proposer key of validator 1 has 52 bytes, profile local (scheme keccak) has keys of 32 bytes"},
		"the same key twice":        {func(s *GenesisSpec) { s.Validators[3].AttestationKey = s.Validators[1].AttestationKey }, "validators 1 (attester) and 3 (attester)"},
		"both keys of one equal":    {func(s *GenesisSpec) { s.Validators[3].ProposalKey = s.Validators[3].AttestationKey }, "validators 3 (attester) and 3 (proposer)"},
		"no nodes":                  {func(s *GenesisSpec) { s.Nodes = nil }, "no nodes"},
		"a name that is a path":     {func(s *GenesisSpec) { s.Nodes[0].Name = "../x" }, `node name "../x"`},
		"two nodes of one name":     {func(s *GenesisSpec) { s.Nodes[1].Name = s.Nodes[0].Name }, "two nodes are called"},
		"two nodes of one key":      {func(s *GenesisSpec) { s.Nodes[1].PrivateKey = s.Nodes[0].PrivateKey }, "same private key"},
		"two nodes at one port":     {func(s *GenesisSpec) { s.Nodes[1].QUICPort = s.Nodes[0].QUICPort }, "same address 127.0.0.1:9001"},
		"counts that do not add up": {func(s *GenesisSpec) { s.Nodes[1].Count = 1 }, "run 4 validators, there are 5"},
		"a negative count":          {func(s *GenesisSpec) { s.Nodes[1].Count = -1 }, "has -1 validators"},
		"no port":                   {func(s *GenesisSpec) { s.Nodes[1].QUICPort = 0 }, "needs an address and a port"},
		"no private key":            {func(s *GenesisSpec) { s.Nodes[1].PrivateKey = [32]byte{} }, "not a secp256k1 private key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := testSpec()
			tt.edit(&spec)
			dir := filepath.Join(t.TempDir(), "net")
			require.ErrorContains(t, Write(dir, spec), tt.want)
			_, err := os.Stat(dir)
			require.ErrorIs(t, err, fs.ErrNotExist, "nothing is written")
		})
	}
}
