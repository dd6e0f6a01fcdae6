package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"aggnode/netconfig"
	"aggnode/netconfig/devkeys"
	"aggnode/signer"
	"aggnode/signer/keystore"
	"aggnode/telemetry"
	"aggnode/wire"
	"aggnode/xmss"
)

// testNetwork is a network folder with devnet keys on free loopback ports.
type testNetwork struct {
	dir     string
	network *netconfig.Network
}

func freeUDPPort(t *testing.T) uint16 {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer c.Close()
	return uint16(c.LocalAddr().(*net.UDPAddr).Port)
}

func newTestNetwork(t *testing.T, nodes, validators int, scheme string) *testNetwork {
	t.Helper()
	attestation, proposal, err := devkeys.Load(scheme)
	require.NoError(t, err)
	spec := netconfig.GenesisSpec{
		GenesisTime: uint64(time.Now().Unix() + 2), SlotDuration: 2 * time.Second, Committees: 1, ActiveEpochLog: 16,
		Profile: "local", Scheme: scheme, Backend: "bundle",
	}
	for v := range validators {
		spec.Validators = append(spec.Validators, netconfig.ValidatorSpec{
			AttestationKey: attestation[v].PublicKey[:], AttestationSecret: attestation[v].File,
			ProposalKey: proposal[v].PublicKey[:], ProposalSecret: proposal[v].File,
		})
	}
	for i := range nodes {
		count := validators / nodes
		if i < validators%nodes {
			count++
		}
		spec.Nodes = append(spec.Nodes, netconfig.NodeSpec{
			Name: fmt.Sprintf("aggnode_%d", i), IP: netip.MustParseAddr("127.0.0.1"), QUICPort: freeUDPPort(t),
			PrivateKey: sha256.Sum256([]byte{byte(i), 1}), Count: count,
		})
	}
	dir := filepath.Join(t.TempDir(), "genesis")
	require.NoError(t, netconfig.Write(dir, spec))
	n, err := netconfig.Load(dir, netconfig.Overrides{})
	require.NoError(t, err)
	return &testNetwork{dir: dir, network: n}
}

// config is the configuration of node i; the first node aggregates.
func (n *testNetwork) config(t *testing.T, i int) Config {
	t.Helper()
	name := fmt.Sprintf("aggnode_%d", i)
	registry, err := telemetry.NewRegistry(telemetry.Info{Name: name, Version: "test"})
	require.NoError(t, err)
	key, err := netconfig.LoadNodeKey(filepath.Join(n.dir, name+".key"))
	require.NoError(t, err)
	logger := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelInfo})).With("node", name)
	return Config{
		Version: "test", Network: n.network, NodeID: name, NodeKey: key,
		DataDir: filepath.Join(t.TempDir(), name), ListenIP: netip.MustParseAddr("127.0.0.1"), GossipPort: int(n.network.Bootnodes[i].QUIC.Port()),
		HTTPAddress: "127.0.0.1", TopicNetwork: wire.DefaultNetwork,
		IsAggregator: i == 0, Keys: n.keys(t, name), Backend: BackendBundle,
		Logger: logger, Registry: registry, Tracer: noop.NewTracerProvider(),
	}
}

func (n *testNetwork) keys(t *testing.T, node string) []signer.Keys {
	t.Helper()
	duties, err := n.network.Duties(node)
	require.NoError(t, err)
	var requests []keystore.Request
	for _, d := range duties {
		v := n.network.Validators[d.Index]
		requests = append(requests, keystore.Request{
			Index: d.Index, AttestationFile: d.AttestationKeyFile, ProposalFile: d.ProposalKeyFile,
			Attestation: xmss.PublicKey(v.AttestationKey), Proposal: xmss.PublicKey(v.ProposalKey),
		})
	}
	scheme, err := xmss.SchemeByName(n.network.Profile.Scheme)
	require.NoError(t, err)
	loaded, err := keystore.Load(t.Context(), scheme, requests, nil)
	require.NoError(t, err)
	var keys []signer.Keys
	for _, k := range loaded {
		keys = append(keys, signer.Keys{Index: k.Index, Attestation: k.Attestation, Proposal: k.Proposal})
	}
	return keys
}

// testLog writes to the test's log only when asked to: a node logs from goroutines that may outlive a failed test.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	if os.Getenv("AGGNODE_TEST_LOG") != "" {
		_, _ = os.Stderr.Write(b)
	}
	return len(b), nil
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testLog{t}, nil))
}

// start runs a node until the test ends, and checks that it stops in order.
func start(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		n.Close()
	})
	return n
}
