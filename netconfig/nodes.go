package netconfig

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// loadNodes reads nodes.yaml: a list of node records and multiaddrs. A file that
// is not there is no nodes. names gives the names by peer id.
func loadNodes(path string, names map[string]string) ([]Node, error) {
	var entries []string
	if _, err := readYAML(path, &entries, false); err != nil {
		return nil, err
	}
	nodes := make([]Node, 0, len(entries))
	for i, text := range entries {
		n, err := ParseNode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, i, err)
		}
		n.Name = names[n.PeerID]
		nodes = append(nodes, n)
	}

	return nodes, nil
}

// ParseNode reads a node record ("enr:…") or a multiaddr
// (/ip4/A/udp/P/quic-v1/p2p/ID, or ip6).
func ParseNode(text string) (Node, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, enrPrefix) {
		e, err := DecodeENR(text)
		if err != nil {
			return Node{}, err
		}
		addr, ok := e.QUIC()
		if !ok {
			return Node{}, fmt.Errorf("node record of %s has no address with a quic or udp port", e.PeerID())
		}

		return Node{PeerID: e.PeerID(), QUIC: addr, IsAggregator: e.IsAggregator(), IsSigned: e.VerifySignature()}, nil
	}

	return parseMultiaddr(text)
}

// parseMultiaddr reads the one form of address that the network uses.
func parseMultiaddr(text string) (Node, error) {
	const form = "/ip4/ADDRESS/udp/PORT/quic-v1/p2p/ID"
	p := strings.Split(text, "/")
	if len(p) != 8 || p[0] != "" || p[1] != "ip4" && p[1] != "ip6" || p[3] != "udp" || p[5] != "quic-v1" || p[6] != "p2p" {
		return Node{}, fmt.Errorf("%q is neither a node record nor of the form %s", text, form)
	}
	addr, err := netip.ParseAddr(p[2])
	if err != nil || addr.Is4() != (p[1] == "ip4") || addr.Zone() != "" {
		return Node{}, fmt.Errorf("%q: %q is no %s address", text, p[2], p[1])
	}
	port, err := strconv.ParseUint(p[4], 10, 16)
	if err != nil || port == 0 {
		return Node{}, fmt.Errorf("%q: %q is no port", text, p[4])
	}
	if err := checkPeerID(p[7]); err != nil {
		return Node{}, err
	}

	return Node{PeerID: p[7], QUIC: netip.AddrPortFrom(addr, uint16(port))}, nil
}

// nodeConfig is what validator-config.yaml says.
type nodeConfig struct {
	committees uint64            // 0: not said
	names      map[string]string // peer id -> name
}

// validatorConfigYAML is validator-config.yaml (lean-quickstart), as far as it is
// read. Other keys are ignored.
type validatorConfigYAML struct {
	Config struct {
		Committees *uint64 `yaml:"attestation_committee_count"`
	} `yaml:"config"`
	Validators []struct {
		Name    string   `yaml:"name"`
		PrivKey hexBytes `yaml:"privkey"`
	} `yaml:"validators"`
}

// loadValidatorConfig reads validator-config.yaml. A file that is not there says
// nothing.
func loadValidatorConfig(path string) (*nodeConfig, error) {
	var y validatorConfigYAML
	if _, err := readYAML(path, &y, false); err != nil {
		return nil, err
	}
	c := &nodeConfig{names: make(map[string]string, len(y.Validators))}
	if y.Config.Committees != nil {
		if c.committees = *y.Config.Committees; c.committees == 0 {
			return nil, fmt.Errorf("%s: attestation_committee_count must be positive", path)
		}
	}
	for _, v := range y.Validators {
		if len(v.PrivKey) == 0 {
			continue // a node whose key is elsewhere has no peer id here
		}
		if len(v.PrivKey) != 32 {
			return nil, fmt.Errorf("%s: node %q: privkey of %d bytes, must be 32", path, v.Name, len(v.PrivKey))
		}
		id, err := PeerIDOfKey([32]byte(v.PrivKey))
		if err != nil {
			return nil, fmt.Errorf("%s: node %q: privkey: %w", path, v.Name, err)
		}
		if other, ok := c.names[id]; ok && other != v.Name {
			return nil, fmt.Errorf("%s: nodes %q and %q have the same privkey", path, other, v.Name)
		}
		c.names[id] = v.Name
	}

	return c, nil
}
