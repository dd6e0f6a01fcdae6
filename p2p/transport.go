package p2p

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	// protocolVersion is what the other clients tell in identify.
	protocolVersion = "/ipfs/0.1.0"

	// connGrace keeps a new connection from being closed before it had time to
	// enter a mesh: some heartbeats of 700 ms.
	connGrace = 20 * time.Second

	// statusStreams is the number of Status streams that one peer may have
	// open at a time, and statusStreamsTotal that of all peers.
	statusStreams      = 4
	statusStreamsTotal = 128

	// dialTimeout bounds one attempt to connect. A QUIC handshake takes two
	// round trips; unreachable hosts never answer.
	dialTimeout = 10 * time.Second
)

// newLibHost makes the libp2p host: QUIC alone, secp256k1 identity, identify and
// ping. It does not listen yet.
func (h *Host) newLibHost() (host.Host, error) {
	limits, err := resourceManager(h.cfg.MaxPeers)
	if err != nil {
		return nil, fmt.Errorf("set resource limits: %w", err)
	}
	conns, err := connmgr.NewConnManager(max(1, h.cfg.MaxPeers*3/4), h.cfg.MaxPeers, connmgr.WithGracePeriod(connGrace))
	if err != nil {
		return nil, fmt.Errorf("set connection limits: %w", err)
	}
	for _, b := range h.bootnodes {
		conns.Protect(b.ID, "bootnode")
	}
	lib, err := libp2p.New(
		libp2p.Identity(h.key),
		libp2p.Transport(libp2pquic.NewTransport),
		libp2p.NoListenAddrs,
		libp2p.ResourceManager(limits),
		libp2p.ConnectionManager(conns),
		libp2p.ConnectionGater(gater{book: h.book, metrics: h.metrics}),
		libp2p.ProtocolVersion(protocolVersion),
		libp2p.UserAgent(h.cfg.UserAgent),
		libp2p.Ping(true),
		libp2p.DisableRelay(),
		// The library's own metrics carry labels that we do not bound.
		libp2p.DisableMetrics(),
		libp2p.WithDialTimeout(dialTimeout),
		// The black hole detectors stop dialling UDP for good after a hundred
		// failures, which a devnet whose other nodes start later produces.
		libp2p.UDPBlackHoleSuccessCounter(nil),
		libp2p.IPv6BlackHoleSuccessCounter(nil),
	)
	if err != nil {
		return nil, fmt.Errorf("create the libp2p host: %w", err)
	}

	return lib, nil
}

// resourceManager returns limits for a node with at most maxPeers peers: room for
// twice as many connections, since two nodes may dial each other at once, all of
// which may come from one address (devnets on one machine).
func resourceManager(maxPeers int) (network.ResourceManager, error) {
	scaling := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaling)
	conns := rcmgr.LimitVal(2 * maxPeers)
	partial := rcmgr.PartialLimitConfig{
		System:    rcmgr.ResourceLimits{Conns: conns, ConnsInbound: conns, ConnsOutbound: conns},
		Transient: rcmgr.ResourceLimits{Conns: conns, ConnsInbound: conns, ConnsOutbound: conns},
	}
	partial.Protocol = map[protocolID]rcmgr.ResourceLimits{
		statusProtocol: {Streams: statusStreamsTotal, StreamsInbound: statusStreamsTotal, StreamsOutbound: statusStreamsTotal},
	}
	partial.ProtocolPeer = map[protocolID]rcmgr.ResourceLimits{
		statusProtocol: {Streams: 2 * statusStreams, StreamsInbound: statusStreams, StreamsOutbound: statusStreams},
	}
	limiter := rcmgr.NewFixedLimiter(partial.Build(scaling.AutoScale()))

	return rcmgr.NewResourceManager(limiter, rcmgr.WithMetricsDisabled(), rcmgr.WithLimitPerSubnet(
		[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: 2 * maxPeers}},
		[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: 2 * maxPeers}},
	))
}

// listen opens the UDP socket. The library's error says neither which port nor
// why, so the socket is tried once more by hand where it failed.
func (h *Host) listen(lib host.Host) error {
	text := quicMultiaddr(h.cfg.ListenIP, h.cfg.Port)
	addr, err := ma.NewMultiaddr(text)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", text, err)
	}
	err = lib.Network().Listen(addr)
	if err == nil {
		return nil
	}
	endpoint := netip.AddrPortFrom(h.cfg.ListenIP, uint16(h.cfg.Port)) //nolint:gosec // validated
	conn, probe := net.ListenUDP("udp", net.UDPAddrFromAddrPort(endpoint))
	switch {
	case probe == nil:
		_ = conn.Close()
	case errors.Is(probe, syscall.EADDRINUSE):
		return fmt.Errorf("UDP port %d is in use: choose another with --gossipsub-port: %w", h.cfg.Port, probe)
	default:
		err = probe
	}

	return fmt.Errorf("listen on UDP %s (--gossipsub-port): %w", endpoint, err)
}
