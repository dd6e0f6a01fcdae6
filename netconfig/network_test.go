package netconfig

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// folder writes files into a new folder and returns it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}

	return dir
}

// hexKey returns the digits of the test key.
func hexKey(n int, index, role byte) string { return hex.EncodeToString(testKey(n, index, role)) }

// oneValidator is a config.yaml that is complete.
var oneValidator = "GENESIS_TIME: 1700000000\nGENESIS_VALIDATORS:\n- attestation_pubkey: " + hexKey(32, 0, 0) + "\n  proposal_pubkey: " + hexKey(32, 0, 1) + "\n"

func TestLoadAcceptsAllSpellings(t *testing.T) {
	t.Parallel()
	a, p := hexKey(32, 0, 0), hexKey(32, 0, 1)
	digits := strings.Repeat("1234567890", 7)[:64]
	exponent := strings.Repeat("12345", 12) + "67e8"
	tests := map[string]struct{ entry, attestation, proposal string }{
		"clients":              {"{attestation_pubkey: " + a + ", proposal_pubkey: " + p + "}", a, p},
		"the specification":    {"{attestation_public_key: " + a + ", proposal_public_key: " + p + "}", a, p},
		"quoted":               {"{attestation_pubkey: \"" + a + "\", proposal_pubkey: '" + p + "'}", a, p},
		"with 0x":              {"{attestation_pubkey: 0x" + a + ", proposal_pubkey: \"0X" + p + "\"}", a, p},
		"upper case":           {"{attestation_pubkey: " + strings.ToUpper(a) + ", proposal_pubkey: " + p + "}", a, p},
		"digits only":          {"{attestation_pubkey: " + digits + ", proposal_pubkey: 0x" + p + "}", digits, p},
		"what looks a float":   {"{attestation_pubkey: " + exponent + ", proposal_pubkey: " + p + "}", exponent, p},
		"a field more":         {"{attestation_pubkey: " + a + ", proposal_pubkey: " + p + ", weight: 3}", a, p},
		"one bare key":         {a, a, ""},
		"one bare key with 0x": {"'0x" + a + "'", a, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{ConfigFile: "GENESIS_TIME: 7\nSOMETHING_ELSE: [1]\nGENESIS_VALIDATORS:\n- " + tt.entry + "\n"})
			n, err := Load(dir, Overrides{})
			require.NoError(t, err)
			require.Equal(t, tt.attestation, hex.EncodeToString(n.Validators[0].AttestationKey))
			require.Equal(t, tt.proposal, hex.EncodeToString(n.Validators[0].ProposalKey))
		})
	}
}

func TestAFolderWithConfigAloneIsDevnet5(t *testing.T) {
	t.Parallel()
	n, err := Load(folder(t, map[string]string{ConfigFile: oneValidator}), Overrides{})
	require.NoError(t, err)
	require.Equal(t, "devnet5", n.Profile.Name)
	require.Equal(t, wire.EnvelopeMerged, n.Profile.Envelope)
	require.Equal(t, DefaultSlotDuration, n.SlotDuration)
	require.Equal(t, uint64(1), n.Committees)
	require.Empty(t, n.Bootnodes)
	require.Empty(t, n.Backend)
	duties, err := n.Duties("anybody")
	require.NoError(t, err)
	require.Empty(t, duties)
}

func TestOrderOfTheCommitteeCount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flag            uint64
		config, another string
		want            uint64
	}{
		"flag":                  {3, "ATTESTATION_COMMITTEE_COUNT: 4\n", "config: {attestation_committee_count: 5}\n", 3},
		"config.yaml":           {0, "ATTESTATION_COMMITTEE_COUNT: 4\n", "config: {attestation_committee_count: 5}\n", 4},
		"validator-config.yaml": {0, "", "config: {attestation_committee_count: 5}\n", 5},
		"nothing":               {0, "", "config: {}\n", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{ConfigFile: tt.config + oneValidator, ValidatorConfigFile: tt.another})
			n, err := Load(dir, Overrides{Committees: tt.flag})
			require.NoError(t, err)
			require.Equal(t, tt.want, n.Committees)
		})
	}
}

func TestOverridesGoBeforeTheFolder(t *testing.T) {
	t.Parallel()
	other := folder(t, map[string]string{"c.yaml": oneValidator, "n.yaml": "- " + exampleENR + "\n", "v.yaml": "me: [0]\n"})
	dir := folder(t, map[string]string{
		ConfigFile:  "MILLISECONDS_PER_SLOT: 8000\n" + oneValidator,
		ProfileFile: "profile: local\nscheme: keccak\nbackend: bundle\n",
	})
	n, err := Load(dir, Overrides{})
	require.NoError(t, err)
	require.Equal(t, 8*time.Second, n.SlotDuration)
	require.Equal(t, "local", n.Profile.Name)
	require.Equal(t, wire.SchemeKeccak, n.Profile.Scheme)

	n, err = Load(dir, Overrides{SlotDuration: 12 * time.Second, Scheme: wire.SchemeBlake2s, Backend: "lean-pq"})
	require.NoError(t, err)
	require.Equal(t, 12*time.Second, n.SlotDuration)
	require.Equal(t, "local", n.Profile.Name)
	require.Equal(t, wire.SchemeBlake2s, n.Profile.Scheme)
	require.Equal(t, "lean-pq", n.Backend)

	n, err = Load(dir, Overrides{
		Profile: "devnet5", Envelope: wire.EnvelopePair,
		ConfigFile: filepath.Join(other, "c.yaml"), NodesFile: filepath.Join(other, "n.yaml"), ValidatorsFile: filepath.Join(other, "v.yaml"), KeyDir: "/keys",
	})
	require.NoError(t, err)
	require.Equal(t, DefaultSlotDuration, n.SlotDuration)
	require.Equal(t, wire.SchemeBlake2s, n.Profile.Scheme, "the scheme of the file belongs to the profile of the file")
	require.Equal(t, wire.EnvelopePair, n.Profile.Envelope)
	require.Len(t, n.Bootnodes, 1)
	duties, err := n.Duties("me")
	require.NoError(t, err)
	require.Equal(t, []ValidatorDuty{{
		AttestationKeyFile: "/keys/validator_0_attester_key_sk.ssz", ProposalKeyFile: "/keys/validator_0_proposer_key_sk.ssz",
	}}, duties)
}

func TestTheRegistryLimitOfALocalNetwork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		o    Overrides
		want int
	}{
		"not said":                   {"profile: local\n", Overrides{}, wire.DefaultRegistryLimit},
		"said":                       {"profile: local\nregistry_limit: 16384\n", Overrides{}, 16384},
		"said for the profile asked": {"profile: local\nregistry_limit: 64\n", Overrides{Profile: "local", Envelope: wire.EnvelopeMerged}, 64},
		"dropped with its profile":   {"profile: local\nregistry_limit: 64\n", Overrides{Profile: "devnet5"}, wire.DefaultRegistryLimit},
		"that of all others":         {"profile: lean-pq\nregistry_limit: 4096\n", Overrides{}, wire.DefaultRegistryLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := Load(folder(t, map[string]string{ConfigFile: oneValidator, ProfileFile: tt.file}), tt.o)
			require.NoError(t, err)
			require.Equal(t, tt.want, n.Profile.RegistryLimit)
		})
	}
}

func TestALocalNetworkMayHaveMoreValidatorsThanOthers(t *testing.T) {
	t.Parallel()
	const n = wire.DefaultRegistryLimit + 1
	var keys strings.Builder
	for i := range n {
		fmt.Fprintf(&keys, "- %064x\n", i)
	}
	dir := folder(t, map[string]string{ConfigFile: "GENESIS_TIME: 1\nGENESIS_VALIDATORS:\n" + keys.String(), ProfileFile: "profile: local\nregistry_limit: 8192\n"})
	network, err := Load(dir, Overrides{})
	require.NoError(t, err)
	require.Len(t, network.Validators, n)
	_, err = Load(dir, Overrides{Profile: "devnet5"})
	require.ErrorContains(t, err, "4097 validators, must be 1 to 4096")
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	a, p := hexKey(32, 0, 0), hexKey(32, 0, 1)
	pair := func(a, p string) string { return "- {attestation_pubkey: " + a + ", proposal_pubkey: " + p + "}\n" }
	head := "GENESIS_TIME: 1\nGENESIS_VALIDATORS:\n"
	full := must(DecodeENR(exampleENR))
	bare := (&ENR{pairs: []enrPair{full.pairs[0], full.pairs[2]}}).String()
	tests := map[string]struct {
		files map[string]string
		o     Overrides
		want  []string
	}{
		"no config.yaml":            {nil, Overrides{}, []string{"config.yaml", "no such file"}},
		"no YAML":                   {map[string]string{ConfigFile: "a: [\n"}, Overrides{}, []string{"config.yaml"}},
		"an empty config.yaml":      {map[string]string{ConfigFile: ""}, Overrides{}, []string{"GENESIS_TIME is missing"}},
		"a time in nanoseconds":     {map[string]string{ConfigFile: "GENESIS_TIME: 17000000000000000000\n"}, Overrides{}, []string{"GENESIS_TIME"}},
		"a negative time":           {map[string]string{ConfigFile: "GENESIS_TIME: -1\n"}, Overrides{}, []string{"config.yaml"}},
		"no validators":             {map[string]string{ConfigFile: head}, Overrides{}, []string{"GENESIS_VALIDATORS is empty"}},
		"too many validators":       {map[string]string{ConfigFile: head + strings.Repeat("- aa\n", 4097)}, Overrides{}, []string{"config.yaml", "4097 validators, must be 1 to 4096"}},
		"another validator count":   {map[string]string{ConfigFile: "VALIDATOR_COUNT: 2\n" + oneValidator}, Overrides{}, []string{"VALIDATOR_COUNT is 2", "1 entries"}},
		"no committees":             {map[string]string{ConfigFile: "ATTESTATION_COMMITTEE_COUNT: 0\n" + oneValidator}, Overrides{}, []string{"ATTESTATION_COMMITTEE_COUNT"}},
		"no committees elsewhere":   {map[string]string{ConfigFile: oneValidator, ValidatorConfigFile: "config: {attestation_committee_count: 0}\n"}, Overrides{}, []string{"validator-config.yaml", "attestation_committee_count"}},
		"a slot of 4001 ms":         {map[string]string{ConfigFile: "MILLISECONDS_PER_SLOT: 4001\n" + oneValidator}, Overrides{}, []string{"MILLISECONDS_PER_SLOT", "4.001s"}},
		"a slot of a day":           {map[string]string{ConfigFile: "MILLISECONDS_PER_SLOT: 86400000\n" + oneValidator}, Overrides{}, []string{"more than an hour"}},
		"a slot flag of 10 ms":      {map[string]string{ConfigFile: oneValidator}, Overrides{SlotDuration: 10 * time.Millisecond}, []string{"slot duration 10ms"}},
		"a key that is no text":     {map[string]string{ConfigFile: head + pair("[1]", p)}, Overrides{}, []string{"line 3", "hexadecimal"}},
		"a key that is no hex":      {map[string]string{ConfigFile: head + pair("0xzz", p)}, Overrides{}, []string{"line 3", "0xzz"}},
		"half a validator":          {map[string]string{ConfigFile: head + "- {attestation_pubkey: " + a + "}\n"}, Overrides{}, []string{"line 3", "proposal_pubkey"}},
		"keys of devnet-4":          {map[string]string{ConfigFile: head + pair(hexKey(52, 0, 0), hexKey(52, 0, 1))}, Overrides{}, []string{"attester key of validator 0 has 52 bytes", "profile devnet5 (scheme blake2s) has keys of 32 bytes"}},
		"the same key twice":        {map[string]string{ConfigFile: head + pair(a, p) + pair(hexKey(32, 1, 0), p)}, Overrides{}, []string{"validators 0 (proposer) and 1 (proposer)"}},
		"the same in two roles":     {map[string]string{ConfigFile: head + pair(a, p) + pair(p, hexKey(32, 1, 1))}, Overrides{}, []string{"validators 0 (proposer) and 1 (attester)"}},
		"both keys of one equal":    {map[string]string{ConfigFile: head + pair(a, a)}, Overrides{}, []string{"validators 0 (attester) and 0 (proposer)"}},
		"the same bare key twice":   {map[string]string{ConfigFile: head + "- " + a + "\n- " + a + "\n"}, Overrides{}, []string{"validators 0 (attester) and 1 (attester)"}},
		"an unknown profile":        {map[string]string{ConfigFile: oneValidator, ProfileFile: "profile: devnet9\n"}, Overrides{}, []string{"aggnode.yaml", `"devnet9"`}},
		"an unknown profile flag":   {map[string]string{ConfigFile: oneValidator}, Overrides{Profile: "devnet9"}, []string{`unknown profile "devnet9"`, "devnet5"}},
		"a scheme that is not its":  {map[string]string{ConfigFile: oneValidator}, Overrides{Scheme: wire.SchemeKeccak}, []string{`"devnet5"`, `"keccak"`}},
		"a limit of devnet5":        {map[string]string{ConfigFile: oneValidator, ProfileFile: "registry_limit: 8192\n"}, Overrides{}, []string{"aggnode.yaml", "registry limit 8192", `"devnet5" is 4096`}},
		"a limit of zero":           {map[string]string{ConfigFile: oneValidator, ProfileFile: "profile: local\nregistry_limit: 0\n"}, Overrides{}, []string{"aggnode.yaml", "registry limit 0: must be 1 to 16384"}},
		"a limit past the largest":  {map[string]string{ConfigFile: oneValidator, ProfileFile: "profile: local\nregistry_limit: 16385\n"}, Overrides{}, []string{"registry limit 16385"}},
		"a limit that is exceeded":  {map[string]string{ConfigFile: head + pair(a, p) + pair(hexKey(32, 1, 0), hexKey(32, 1, 1)), ProfileFile: "profile: local\nregistry_limit: 1\n"}, Overrides{}, []string{"config.yaml", "2 validators, must be 1 to 1"}},
		"a wrong key in ours":       {map[string]string{ConfigFile: oneValidator, ProfileFile: "profil: local\n"}, Overrides{}, []string{"aggnode.yaml", "profil"}},
		"a node that is no node":    {map[string]string{ConfigFile: oneValidator, NodesFile: "- " + exampleENR + "\n- enr:xx\n"}, Overrides{}, []string{"nodes.yaml", "entry 1"}},
		"a record without address":  {map[string]string{ConfigFile: oneValidator, NodesFile: "- " + bare + "\n"}, Overrides{}, []string{"entry 0", "no address"}},
		"a short node key":          {map[string]string{ConfigFile: oneValidator, ValidatorConfigFile: "validators: [{name: x, privkey: aabb}]\n"}, Overrides{}, []string{`node "x"`, "2 bytes"}},
		"a zero node key":           {map[string]string{ConfigFile: oneValidator, ValidatorConfigFile: "validators: [{name: x, privkey: " + strings.Repeat("0", 64) + "}]\n"}, Overrides{}, []string{`node "x"`, "not a secp256k1"}},
		"one key for two nodes":     {map[string]string{ConfigFile: oneValidator, ValidatorConfigFile: "validators: [{name: x, privkey: " + a + "}, {name: y, privkey: " + a + "}]\n"}, Overrides{}, []string{`"x" and "y"`}},
		"a folder as a config file": {map[string]string{ConfigFile: oneValidator}, Overrides{ConfigFile: "."}, []string{"not a regular file"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(folder(t, tt.files), tt.o)
			require.Error(t, err)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestNodesMayBeRecordsOrAddresses(t *testing.T) {
	t.Parallel()
	const id = "16Uiu2HAmSH2XVgZqYHWucap5kuPzLnt2TsNQkoppVxB5eJGvaXwm" // of exampleENR
	dir := folder(t, map[string]string{
		ConfigFile: oneValidator,
		NodesFile: "- " + exampleENR + "\n- \"/ip4/10.0.0.2/udp/9001/quic-v1/p2p/12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq\"\n" +
			"- /ip6/::1/udp/9002/quic-v1/p2p/QmVMT29id3TUASyfZZ6k9hmNyc2nYabCo4uMSpDw4zrgDk\n",
		ValidatorConfigFile: "validators:\n- name: gean_0\n  privkey: 0xb71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291\n- name: keyless\n",
	})
	n, err := Load(dir, Overrides{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{id: "gean_0"}, n.NodeNames)
	require.Len(t, n.Bootnodes, 3)
	require.Equal(t, "gean_0", n.Bootnodes[0].Name)
	require.True(t, n.Bootnodes[0].IsSigned)
	require.Equal(t, "/ip4/127.0.0.1/udp/30303/quic-v1/p2p/"+id, n.Bootnodes[0].Multiaddr())
	require.Equal(t, "/ip4/10.0.0.2/udp/9001/quic-v1/p2p/12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq", n.Bootnodes[1].Multiaddr())
	require.Equal(t, "/ip6/::1/udp/9002/quic-v1/p2p/QmVMT29id3TUASyfZZ6k9hmNyc2nYabCo4uMSpDw4zrgDk", n.Bootnodes[2].Multiaddr())
}

func TestLoadNodes(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"good": "- " + exampleENR + "\n", "bad": "- enr:x\n", "none": "[]\n"})
	nodes, err := LoadNodes(filepath.Join(dir, "good"))
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	nodes, err = LoadNodes(filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Empty(t, nodes)
	_, err = LoadNodes(filepath.Join(dir, "bad"))
	require.ErrorContains(t, err, "entry 0")
	_, err = LoadNodes(filepath.Join(dir, "missing"))
	require.ErrorContains(t, err, "missing: no such file")
}

func TestParseNodeRefuses(t *testing.T) {
	t.Parallel()
	const id = "16Uiu2HAmSH2XVgZqYHWucap5kuPzLnt2TsNQkoppVxB5eJGvaXwm"
	for _, text := range []string{
		"",
		"enode://abc",
		"/ip4/127.0.0.1/tcp/9000/p2p/" + id,
		"/ip4/127.0.0.1/udp/9000/quic/p2p/" + id,
		"/ip4/127.0.0.1/udp/9000/quic-v1",
		"/ip4/127.0.0.1/udp/0/quic-v1/p2p/" + id,
		"/ip4/127.0.0.1/udp/65536/quic-v1/p2p/" + id,
		"/ip4/::1/udp/9000/quic-v1/p2p/" + id,
		"/ip6/127.0.0.1/udp/9000/quic-v1/p2p/" + id,
		"/ip6/fe80::1%eth0/udp/9000/quic-v1/p2p/" + id,
		"/ip4/127.0.0.1/udp/9000/quic-v1/p2p/" + id[:len(id)-1],
		"/ip4/127.0.0.1/udp/9000/quic-v1/p2p/0OIl",
		"/ip4/127.0.0.1/udp/9000/quic-v1/p2p/",
		"/ip4/127.0.0.1/udp/9000/quic-v1/p2p/" + strings.Repeat("1", 1000),
		"/ip4/127.0.0.1/udp/9000/quic-v1/p2p/" + id + "/x",
	} {
		_, err := ParseNode(text)
		require.Error(t, err, text)
	}
}

func TestDutiesReadAllForms(t *testing.T) {
	t.Parallel()
	two := oneValidator + "- attestation_pubkey: " + hexKey(32, 1, 0) + "\n  proposal_pubkey: " + hexKey(32, 1, 1) + "\n"
	both := func(dir string, i int) ValidatorDuty {
		v := wire.ValidatorIndex(i)

		return ValidatorDuty{v, filepath.Join(dir, KeyDir, SecretKeyFile(v, RoleAttester)), filepath.Join(dir, KeyDir, SecretKeyFile(v, RoleProposer))}
	}
	tests := map[string]struct {
		files map[string]string
		want  func(dir string) []ValidatorDuty
	}{
		"validators.yaml": {map[string]string{ValidatorsFile: "me: [1, 0]\nyou: []\n"}, func(dir string) []ValidatorDuty {
			return []ValidatorDuty{both(dir, 0), both(dir, 1)}
		}},
		"validators.yaml below a key": {map[string]string{ValidatorsFile: "validators:\n  me: [1]\n"}, func(dir string) []ValidatorDuty {
			return []ValidatorDuty{both(dir, 1)}
		}},
		"a node called validators": {map[string]string{ValidatorsFile: "validators: [0]\nme: [1]\n"}, func(dir string) []ValidatorDuty {
			return []ValidatorDuty{both(dir, 1)}
		}},
		"others only": {map[string]string{ValidatorsFile: "you: [1]\n"}, func(string) []ValidatorDuty { return nil }},
		"annotated": {map[string]string{
			ValidatorsFile: "me: [1]\n",
			AnnotatedFile:  "me:\n- {index: 0, pubkey_hex: \"0x" + hexKey(32, 0, 1) + "\", privkey_file: validator_0_proposer_key_sk.ssz}\n- {index: 0, privkey_file: validator_0_attester_key_sk.ssz}\n",
		}, func(dir string) []ValidatorDuty { return []ValidatorDuty{both(dir, 0)} }},
		"annotated with one role": {map[string]string{
			AnnotatedFile: "me:\n- {index: 1, privkey_file: my-attester}\n",
		}, func(dir string) []ValidatorDuty {
			return []ValidatorDuty{{Index: 1, AttestationKeyFile: filepath.Join(dir, KeyDir, "my-attester")}}
		}},
		"annotated without us": {map[string]string{ValidatorsFile: "me: [1]\n", AnnotatedFile: "you: []\n"}, func(string) []ValidatorDuty { return nil }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.files[ConfigFile] = two
			dir := folder(t, tt.files)
			n, err := Load(dir, Overrides{})
			require.NoError(t, err)
			got, err := n.Duties("me")
			require.NoError(t, err)
			require.ElementsMatch(t, tt.want(dir), got)
		})
	}
}

func TestDutiesRefuse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"an index past the end":   {map[string]string{ValidatorsFile: "me: [1]\n"}, []string{"validators.yaml", `"me"`, "index 1", "1 validators"}},
		"the same index twice":    {map[string]string{ValidatorsFile: "me: [0, 0]\n"}, []string{"index 0 twice"}},
		"no list":                 {map[string]string{ValidatorsFile: "me: {a: 1}\n"}, []string{"validators.yaml", `"me"`}},
		"annotated past the end":  {map[string]string{AnnotatedFile: "me: [{index: 1, privkey_file: attester}]\n"}, []string{"annotated_validators.yaml", "index 1"}},
		"no role":                 {map[string]string{AnnotatedFile: "me: [{index: 0, privkey_file: key}]\n"}, []string{`"key"`, "attester and proposer"}},
		"both roles":              {map[string]string{AnnotatedFile: "me: [{index: 0, privkey_file: attester_proposer}]\n"}, []string{"attester and proposer"}},
		"a role in the path only": {map[string]string{AnnotatedFile: "me: [{index: 0, privkey_file: attester/key}]\n"}, []string{"attester and proposer"}},
		"a path outside":          {map[string]string{AnnotatedFile: "me: [{index: 0, privkey_file: ../attester}]\n"}, []string{"inside the key folder"}},
		"an absolute path":        {map[string]string{AnnotatedFile: "me: [{index: 0, privkey_file: /attester}]\n"}, []string{"inside the key folder"}},
		"two keys for one role":   {map[string]string{AnnotatedFile: "me: [{index: 0, privkey_file: attester1}, {index: 0, privkey_file: attester2}]\n"}, []string{"two attester keys"}},
		"another key":             {map[string]string{AnnotatedFile: "me: [{index: 0, pubkey_hex: aabb, privkey_file: attester}]\n"}, []string{"0xaabb", hexKey(32, 0, 0)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.files[ConfigFile] = oneValidator
			n, err := Load(folder(t, tt.files), Overrides{})
			require.NoError(t, err)
			_, err = n.Duties("me")
			require.Error(t, err)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestLoadNodeKey(t *testing.T) {
	t.Parallel()
	digits := hex.EncodeToString(exampleKey[:])
	for name, content := range map[string]string{
		"bare": digits, "a newline": digits + "\n", "0x": "0x" + digits, "upper case": strings.ToUpper(digits), "all": " 0x" + digits + "\r\n",
	} {
		dir := folder(t, map[string]string{"k": content})
		key, err := LoadNodeKey(filepath.Join(dir, "k"))
		require.NoError(t, err, name)
		require.Equal(t, exampleKey, key, name)
	}
	for name, tt := range map[string]struct{ content, want string }{
		"empty":   {"", "0 characters"},
		"short":   {digits[1:], "63 characters"},
		"no hex":  {"zz" + digits[2:], "not hexadecimal"},
		"zero":    {strings.Repeat("0", 64), "not a secp256k1"},
		"too big": {strings.Repeat("f", 64), "not a secp256k1"},
	} {
		dir := folder(t, map[string]string{"k": tt.content})
		_, err := LoadNodeKey(filepath.Join(dir, "k"))
		require.ErrorContains(t, err, tt.want, name)
		require.NotContains(t, err.Error(), digits[2:10], "a key is never in an error")
	}
	_, err := LoadNodeKey("/no/such/file")
	require.ErrorIs(t, err, os.ErrNotExist)
}
