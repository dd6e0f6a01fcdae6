package devnet

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/netconfig"
)

func testConfig(backend, scheme, profile string) Config {
	return Config{Executable: "/bin/false", Backend: backend, Scheme: scheme, Profile: profile, Out: io.Discard}
}

func TestTheLoadFitsTheMachine(t *testing.T) {
	t.Parallel()
	c := testConfig("bundle", "blake2s", "local")
	require.NoError(t, c.validate())
	fast := c.choose(time.Millisecond)
	require.Equal(t, load{validators: 64, slotDuration: 4 * time.Second}, fast)
	slow := c.choose(time.Second)
	require.Equal(t, 4*time.Second, slow.slotDuration)
	require.Less(t, slow.validators, 64)
	require.GreaterOrEqual(t, slow.validators, 4, "two a committee: one vote alone is never aggregated")

	c = testConfig("lean-pq", "keccak", "lean-pq")
	require.NoError(t, c.validate())
	real := c.choose(400 * time.Millisecond)
	require.GreaterOrEqual(t, real.slotDuration, 8*time.Second)
	require.LessOrEqual(t, real.validators, 8)

	c.Validators, c.SlotDuration = 12, 20*time.Second
	require.Equal(t, load{validators: 12, slotDuration: 20 * time.Second}, c.choose(time.Hour), "flags win")
}

func TestTheNetworkFolderIsAnOrdinaryOne(t *testing.T) {
	t.Parallel()
	c := testConfig("bundle", "blake2s", "local")
	require.NoError(t, c.validate())
	members, err := c.members()
	require.NoError(t, err)
	require.Len(t, members, 5)
	dir := filepath.Join(t.TempDir(), "genesis")
	genesis := time.Now().Truncate(time.Second)
	require.NoError(t, c.writeNetwork(dir, load{validators: 10, slotDuration: 6 * time.Second}, members, genesis))

	n, err := netconfig.Load(dir, netconfig.Overrides{})
	require.NoError(t, err)
	require.Equal(t, "local", n.Profile.Name)
	require.Equal(t, "bundle", n.Backend)
	require.Equal(t, 6*time.Second, n.SlotDuration)
	require.EqualValues(t, 2, n.Committees)
	require.EqualValues(t, genesis.Unix(), n.GenesisTime)
	require.Len(t, n.Validators, 10)
	require.Len(t, n.Bootnodes, 5)
	shares := map[string]int{}
	for _, m := range members {
		duties, err := n.Duties(m.name)
		require.NoError(t, err)
		shares[m.name] = len(duties)
	}
	require.Equal(t, map[string]int{"aggnode_0": 3, "aggnode_1": 3, "aggnode_2": 2, "aggnode_3": 2, observerName: 0}, shares)
	require.Contains(t, c.runArgs(dir, "data", members[1]), "--is-aggregator")
	require.NotContains(t, c.runArgs(dir, "data", members[2]), "--is-aggregator")
	require.NotContains(t, c.runArgs(dir, "data", members[4]), "--is-aggregator")
	require.Nil(t, c.environ("data", members[4]), "the embedded backend needs nothing anyway")
}

func TestNodesThatOnlyVerifyGetNoPython(t *testing.T) {
	t.Parallel()
	for verifier, isBare := range map[string]bool{"": true, "native": true, "child": false, "both": false} {
		c := Config{Backend: "lean-pq", Verifier: verifier, ProverDir: "/prover"}
		for _, m := range []member{{name: "aggregator"}, {name: "validator", committee: -1}, {name: "observer", committee: -1, isObserver: true}} {
			args, environ := c.runArgs("genesis", "/data", m), c.environ("/data", m)
			if isBare && m.committee < 0 {
				require.NotContains(t, args, "--prover-dir", m.name)
				require.Equal(t, []string{"PATH=", "XDG_DATA_HOME=/data"}, environ[len(environ)-2:], m.name)
			} else {
				require.Contains(t, args, "--prover-dir", m.name)
				require.Nil(t, environ, m.name)
			}
			require.Equal(t, verifier != "", slices.Contains(args, "--aggregate-verifier"))
		}
	}
}

func TestPortsAreFreeAndDistinct(t *testing.T) {
	t.Parallel()
	list, err := freePorts(20)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, p := range list {
		for _, key := range []string{"udp" + strconv.Itoa(p.gossip), "tcp" + strconv.Itoa(p.api), "tcp" + strconv.Itoa(p.metrics)} {
			require.False(t, seen[key], key)
			seen[key] = true
		}
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.api)))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

func TestFoldersOfKilledDevnetsAreSweptAndOthersAreNot(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	gone := exec.CommandContext(t.Context(), "/bin/true")
	require.NoError(t, gone.Run())
	folder := func(name, pid string) string {
		dir := filepath.Join(tmp, tempPrefix+name)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
		if pid != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, pidFile), []byte(pid), 0o600))
		}
		return dir
	}
	dead := folder("dead", strconv.Itoa(gone.Process.Pid))
	alive := folder("alive", strconv.Itoa(os.Getpid()))
	starting := folder("starting", "")
	require.NoError(t, sweep(tmp))
	require.NoDirExists(t, dead)
	require.DirExists(t, alive)
	require.DirExists(t, starting)
}

func TestAFolderWithContentIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
	_, _, err := makeFolder(dir)
	require.ErrorContains(t, err, "--dir")
	require.ErrorContains(t, err, "not empty")
}
