package p2p

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// quick has slots short enough for several judgements in a test.
func quick(cfg *Config, _ *fakeIntake) { cfg.SlotDuration = 200 * time.Millisecond }

func TestForgerIsDisconnectedAndHonestRelayStays(t *testing.T) {
	t.Parallel()
	n := start(t, quick)
	forger, honest := stranger(t), stranger(t)
	dialTo(t, forger, n)
	dialTo(t, honest, n)
	n.intake.set(func(f *fakeIntake) {
		f.scores[string(forger.ID())] = pipeline.PeerScore{Rejected: 1}
		f.scores[string(honest.ID())] = pipeline.PeerScore{Rejected: 99, Verified: 1}
	})
	require.Eventually(t, func() bool { return !n.connectedTo(forger.ID()) }, patience, time.Millisecond)
	require.True(t, n.connectedTo(honest.ID()))
	require.Equal(t, 1, count(n.metrics.peerDisconnects.WithLabelValues("rejects")))
	require.Contains(t, n.logs.String(), "cause=rejects")
	eventually(t, n.metrics.disconnections.WithLabelValues("inbound", "local_close"), 1)
}

func TestPeerWithoutIdentifyStillGetsGossip(t *testing.T) {
	t.Parallel()
	h := stranger(t)
	h.RemoveStreamHandler(identify.ID)
	gossip := gossiper(t, h)
	topic, err := gossip.Join(subnet1.Name(wire.DefaultNetwork))
	require.NoError(t, err)
	sub, err := topic.Subscribe()
	require.NoError(t, err)
	defer sub.Cancel()
	h.SetStreamHandler(statusProtocol, func(s network.Stream) {
		_ = wire.WriteChunk(s, wire.ResponseSuccess, theirStatus.AppendSSZ(nil))
		_ = s.Close()
	})

	n := start(t, func(cfg *Config, _ *fakeIntake) {
		cfg.Bootnodes = []Bootnode{{Multiaddr: h.Addrs()[0].String() + "/p2p/" + h.ID().String()}}
	})
	n.meshed(t, subnet1, 1)
	peers, err := n.PublishAttestation(t.Context(), vote(t, 1))
	require.NoError(t, err)
	require.Equal(t, 1, peers)
	msg, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, msg.GetData())
	require.Nil(t, msg.From)
	require.Nil(t, msg.Seqno)
	require.Nil(t, msg.Signature)
	require.Nil(t, msg.Key)
	require.Equal(t, 1, count(n.metrics.identifyFailed))
	require.Equal(t, 1, strings.Count(n.logs.String(), "peer refuses identify, gossip is offered"))
	require.Zero(t, count(n.metrics.peerDisconnects.WithLabelValues("no_streams")))
}

func TestPeerThatAcceptsNoStreamIsLeftWithBackoff(t *testing.T) {
	t.Parallel()
	h := stranger(t)
	h.RemoveStreamHandler(identify.ID)
	h.SetStreamHandler(statusProtocol, func(s network.Stream) { _, _ = io.ReadAll(s) })
	n := start(t, nil)
	impatient(n)
	require.NoError(t, n.session.Load().host.Connect(t.Context(), *host.InfoFromHost(h)))
	eventually(t, n.metrics.peerDisconnects.WithLabelValues("no_streams"), 1)
	require.Contains(t, n.logs.String(), "peer refuses identify and accepts no further stream")
	require.Eventually(t, func() bool { return !n.connectedTo(h.ID()) }, patience, time.Millisecond)
	require.True(t, n.book.inBackoff(h.ID(), time.Now()))
}

func TestIdentifyAndPing(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	h := stranger(t)
	dialTo(t, h, n)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, (<-ping.Ping(ctx, h, n.id)).Error)
	version, err := h.Peerstore().Get(n.id, "ProtocolVersion")
	require.NoError(t, err)
	require.Equal(t, "/ipfs/0.1.0", version)
	supported, err := h.Peerstore().SupportsProtocols(n.id, "/meshsub/1.2.0", "/meshsub/1.1.0", statusProtocol, ping.ID)
	require.NoError(t, err)
	require.ElementsMatch(t, []protocol.ID{"/meshsub/1.2.0", "/meshsub/1.1.0", statusProtocol, ping.ID}, supported)
	supported, err = h.Peerstore().SupportsProtocols(n.id, "/meshsub/1.3.0", "/floodsub/1.0.0", "/libp2p/circuit/relay/0.2.0/hop")
	require.NoError(t, err)
	require.Empty(t, supported)
	require.True(t, strings.HasPrefix(n.PeerID(), "16Uiu2"), "a secp256k1 identity")
}

func TestPortInUseNamesTheFlag(t *testing.T) {
	t.Parallel()
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	cfg := testConfig(t)
	addr, ok := taken.LocalAddr().(*net.UDPAddr)
	require.True(t, ok)
	cfg.Port = addr.Port
	h, err := New(cfg, newFakeIntake(), fakeChain{})
	require.NoError(t, err)
	err = h.Run(t.Context())
	require.ErrorContains(t, err, "--gossipsub-port")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, h.Run(t.Context()), "twice")

	cfg.Port = AnyPort
	cfg.ListenIP = netip.MustParseAddr("192.0.2.1") // TEST-NET-1: not ours
	h, err = New(cfg, newFakeIntake(), fakeChain{})
	require.NoError(t, err)
	require.ErrorContains(t, h.Run(t.Context()), "--gossipsub-port")
}

// TestBootnodeThatRestartsIsFoundAgain also shows that an ordered stop leaves no
// back-off behind: after a PRUNE the mesh would stay empty for a minute.
func TestBootnodeThatRestartsIsFoundAgain(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	boot := start(t, func(cfg *Config, _ *fakeIntake) { cfg.PrivateKey = key })
	entry := bootnodeOf(boot)
	n := start(t, func(cfg *Config, _ *fakeIntake) { cfg.Bootnodes = []Bootnode{entry} })
	n.meshed(t, subnet1, 1)
	port := udpPort(t, boot)
	boot.stop()
	n.meshed(t, subnet1, 0)
	eventually(t, n.metrics.disconnections.WithLabelValues("outbound", "remote_close"), 1)
	again := start(t, func(cfg *Config, _ *fakeIntake) { cfg.PrivateKey, cfg.Port = key, port })
	again.meshed(t, subnet1, 1)
	n.meshed(t, subnet1, 1)
	require.Equal(t, 2, count(n.metrics.connections.WithLabelValues("outbound", "success")))
}

// udpPort returns the port that a node listens on.
func udpPort(t *testing.T, n *testNode) int {
	t.Helper()
	info, err := bootnodeOf(n).addrInfo()
	require.NoError(t, err)
	text, err := info.Addrs[0].ValueForProtocol(0x0111) // udp
	require.NoError(t, err)
	port, err := net.LookupPort("udp", text)
	require.NoError(t, err)

	return port
}

func TestUnreachableBootnodeIsCountedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	h := stranger(t) // another identity than the entry says
	entry := Bootnode{Name: "gone_0", Multiaddr: h.Addrs()[0].String() + "/p2p/" + knownPeerID}
	n := start(t, func(cfg *Config, _ *fakeIntake) { cfg.Bootnodes = []Bootnode{entry} })
	eventually(t, n.metrics.connections.WithLabelValues("outbound", "error"), 1)
	require.Equal(t, 1, strings.Count(n.logs.String(), "bootnode is not reachable"))
}

func TestBootnodesSkipOurselvesAndMerge(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	_, id, err := identity(cfg.PrivateKey)
	require.NoError(t, err)
	cfg.Bootnodes = []Bootnode{
		{PeerID: id.String(), IP: netip.MustParseAddr("10.0.0.1"), Port: 9000},
		{PeerID: knownPeerID, IP: netip.MustParseAddr("10.0.0.2"), Port: 9001},
		{Multiaddr: "/dns4/example.org/udp/9002/quic-v1/p2p/" + knownPeerID},
		{PeerID: knownPeerID, IP: netip.MustParseAddr("2001:db8::1"), Port: 9003},
	}
	h, err := New(cfg, newFakeIntake(), fakeChain{})
	require.NoError(t, err)
	require.Len(t, h.bootnodes, 1)
	var addrs []string
	for _, a := range h.bootnodes[0].Addrs {
		addrs = append(addrs, a.String())
	}
	require.Equal(t, []string{
		"/ip4/10.0.0.2/udp/9001/quic-v1", "/dns4/example.org/udp/9002/quic-v1", "/ip6/2001:db8::1/udp/9003/quic-v1",
	}, addrs)
}

func TestDialResults(t *testing.T) {
	t.Parallel()
	require.Equal(t, "timeout", dialResult(context.DeadlineExceeded))
	require.Equal(t, "timeout", dialResult(&net.OpError{Op: "dial", Err: timeoutError{}}))
	require.Equal(t, "error", dialResult(errors.New("connection refused")))
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
