package p2p

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// Limits of the configuration.
const (
	// defaultMaxPeers is the number of connected peers above which the
	// connection manager closes the least useful ones. A mesh of twelve peers
	// on each of a few topics is served well below it; devnets have tens of
	// nodes. Guess, not measured.
	defaultMaxPeers = 128

	// maxBootnodes bounds the dialling goroutines, one a bootnode.
	maxBootnodes = 512

	// defaultPort is the gossip port of the other clients (protocol 5.1).
	defaultPort = 9000
)

// AnyPort as Config.Port asks the system for a free UDP port.
const AnyPort = -1

// Bootnode is a peer that the host keeps connected to. Either Multiaddr is set,
// with its /p2p/ part, or PeerID, IP and Port.
type Bootnode struct {
	// Name is for logs alone and may be empty.
	Name string
	// PeerID is the text form, 16Uiu2….
	PeerID string
	// IP and Port are the QUIC endpoint.
	IP   netip.Addr
	Port uint16
	// Multiaddr is the whole address, /ip4/…/udp/…/quic-v1/p2p/….
	Multiaddr string
}

// Config is what a Host needs to know. The zero value of a field means the
// default named at it; the other fields are required.
type Config struct {
	// PrivateKey is the secp256k1 identity key, big-endian.
	PrivateKey [32]byte
	// ListenIP is the address to bind; invalid means 0.0.0.0.
	ListenIP netip.Addr
	// Port is the UDP port; 0 means 9000, AnyPort a free one.
	Port int
	// Bootnodes are dialled until they answer, and again when they go. The
	// host's own entry is skipped.
	Bootnodes []Bootnode
	// Network is the network part of topic names; "" means
	// wire.DefaultNetwork.
	Network string
	// Profile encodes what is published.
	Profile *wire.Profile
	// Committees is the number of attestation subnets; 0 means 1. Each is a topic
	// that is prepared at start, and more of them than validators make no sense:
	// at most Profile.RegistryLimit.
	Committees uint64
	// Subnets are the attestation subnets to take part in. The others are
	// joined for publishing alone.
	Subnets []wire.SubnetID
	// SlotDuration sets the seen window, the validator deadline and the rhythm
	// in which peers are judged.
	SlotDuration time.Duration
	// Names maps peer ids (text) to node names. Its values are the closed set
	// of the client label; every other peer is "unknown".
	Names map[string]string
	// UserAgent is what identify says of us; "" means "aggnode".
	UserAgent string
	// MaxPeers is the number of connected peers above which the least useful
	// are closed; 0 means 128.
	MaxPeers int
	// Logger may be nil: nothing is logged then.
	Logger *slog.Logger
	// Registerer may be nil: metrics are kept but not exported then.
	Registerer prometheus.Registerer
}

// withDefaults returns the configuration with its defaults filled in.
func (c Config) withDefaults() Config {
	if !c.ListenIP.IsValid() {
		c.ListenIP = netip.IPv4Unspecified()
	}
	switch c.Port {
	case 0:
		c.Port = defaultPort
	case AnyPort:
		c.Port = 0
	}
	if c.Network == "" {
		c.Network = wire.DefaultNetwork
	}
	if c.Committees == 0 {
		c.Committees = 1
	}
	if c.UserAgent == "" {
		c.UserAgent = "aggnode"
	}
	if c.MaxPeers == 0 {
		c.MaxPeers = defaultMaxPeers
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}

	return c
}

// validate reports the first fault of a configuration with its defaults.
func (c Config) validate() error {
	switch {
	case c.Profile == nil:
		return errors.New("p2p: no profile")
	case c.SlotDuration <= 0:
		return fmt.Errorf("p2p: slot duration %v is not positive", c.SlotDuration)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("p2p: port %d is not a UDP port", c.Port)
	case c.Committees > uint64(c.Profile.RegistryLimit):
		return fmt.Errorf("p2p: %d committees, at most %d", c.Committees, c.Profile.RegistryLimit)
	case len(c.Bootnodes) > maxBootnodes:
		return fmt.Errorf("p2p: %d bootnodes, at most %d", len(c.Bootnodes), maxBootnodes)
	case c.MaxPeers < 1:
		return fmt.Errorf("p2p: at most %d peers leaves nobody to talk to", c.MaxPeers)
	}
	for _, s := range c.Subnets {
		if uint64(s) >= c.Committees {
			return fmt.Errorf("p2p: subnet %d does not exist with %d committees", s, c.Committees)
		}
	}

	return nil
}

// identity returns the libp2p form of a secp256k1 key and the peer id that
// follows from it. A key outside the group's order is refused: libp2p would
// reduce it silently and the peer id would belong to another key.
func identity(key [32]byte) (crypto.PrivKey, peer.ID, error) {
	priv, err := crypto.UnmarshalSecp256k1PrivateKey(key[:])
	if err != nil {
		return nil, "", fmt.Errorf("read the node key: %w", err)
	}
	raw, err := priv.Raw()
	if err != nil {
		return nil, "", fmt.Errorf("read the node key: %w", err)
	}
	if [32]byte(raw) != key || key == [32]byte{} {
		return nil, "", errors.New("the node key is not a secp256k1 private key: zero, or not below the group order")
	}
	id, err := peer.IDFromPrivateKey(priv)
	if err != nil {
		return nil, "", fmt.Errorf("derive the peer id: %w", err)
	}

	return priv, id, nil
}

// addrInfo returns the dial form of a bootnode.
func (b Bootnode) addrInfo() (peer.AddrInfo, error) {
	text := b.Multiaddr
	if text == "" {
		if !b.IP.IsValid() || b.Port == 0 || b.PeerID == "" {
			return peer.AddrInfo{}, fmt.Errorf("bootnode %q: needs a multiaddr, or a peer id with address and port", b.Name)
		}
		text = quicMultiaddr(b.IP, int(b.Port)) + "/p2p/" + b.PeerID
	}
	addr, err := ma.NewMultiaddr(text)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("bootnode %q: read %q: %w", b.Name, text, err)
	}
	info, err := peer.AddrInfoFromP2pAddr(addr)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("bootnode %q: read %q: %w", b.Name, text, err)
	}
	if len(info.Addrs) == 0 || !speaksQUIC(info.Addrs[0]) {
		return peer.AddrInfo{}, fmt.Errorf("bootnode %q: %q is not a QUIC address (/udp/PORT/quic-v1)", b.Name, text)
	}

	return *info, nil
}

// quicMultiaddr returns the QUIC address of an endpoint, without a peer id.
func quicMultiaddr(ip netip.Addr, port int) string {
	ip = ip.Unmap()
	version := "ip4"
	if ip.Is6() {
		version = "ip6"
	}

	return fmt.Sprintf("/%s/%s/udp/%d/quic-v1", version, ip.WithZone(""), port)
}

// speaksQUIC reports whether the address is one of QUIC version 1.
func speaksQUIC(addr ma.Multiaddr) bool {
	_, err := addr.ValueForProtocol(ma.P_QUIC_V1)

	return err == nil
}
