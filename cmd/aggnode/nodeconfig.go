package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"aggnode/netconfig"
	"aggnode/node"
	"aggnode/signer"
	"aggnode/signer/keystore"
	"aggnode/wire"
	"aggnode/xmss"
)

// nodeConfig resolves paths, names and keys of the settings. It reads the network folder and the key files.
func (s *settings) nodeConfig(ctx context.Context, log *slog.Logger) (*node.Config, error) {
	network, err := s.loadNetwork()
	if err != nil {
		return nil, err
	}
	if s.DataDir == "" {
		home, err := dataHome()
		if err != nil {
			return nil, err
		}
		s.DataDir = filepath.Join(home, "nodes", nodeName(s))
	}
	if s.CheckpointSync != "" {
		log.Warn("--checkpoint-sync-url is accepted and not used: this node follows gossip from genesis", "url", s.CheckpointSync)
	}
	budget, err := s.budget()
	if err != nil {
		return nil, err
	}
	cfg := &node.Config{
		Version: buildVersion(), Network: network, NodeID: s.NodeID, DataDir: s.DataDir,
		GossipPort: s.GossipsubPort, HTTPAddress: s.HTTPAddress, APIPort: s.APIPort, MetricsPort: s.MetricsPort,
		TopicNetwork: s.Network, IsAggregator: s.IsAggregator,
		NoProofs: s.NoProofs, AggregateVerifier: node.AggregateVerifier(s.Verifier), ProverDir: s.ProverDir, ProverCommand: s.ProverCommand,
		Budget: budget, RealTime: s.BudgetRealTime,
		ProverThreads: s.ProverThreads, ProverClass: node.ProverClass(s.ProverClass), ProverMemory: s.ProverMemory << 20, Workers: s.Workers,
	}
	if cfg.ListenIP, err = netip.ParseAddr(s.ListenAddress); err != nil {
		return nil, fmt.Errorf("--listen-address: %w", err)
	}
	for _, id := range s.Subnets {
		if id < 0 {
			return nil, fmt.Errorf("--aggregate-subnet-ids %d: must not be negative", id)
		}
		cfg.Subnets = append(cfg.Subnets, wire.SubnetID(id))
	}
	if len(s.Subnets) > 0 && !s.IsAggregator {
		log.Warn("--aggregate-subnet-ids has no effect without --is-aggregator")
	}
	if cfg.Bootnodes, err = readBootnodes(s.Bootnodes); err != nil {
		return nil, err
	}
	cfg.Backend = s.backend(network)
	if cfg.NodeKey, err = s.readNodeKey(log); err != nil {
		return nil, err
	}
	if cfg.Keys, err = s.loadKeys(ctx, network, log); err != nil {
		return nil, err
	}
	return cfg, nil
}

func (s *settings) loadNetwork() (*netconfig.Network, error) {
	if s.NetworkDir == "" && s.Genesis == "" {
		return nil, errors.New("--custom-network-config-dir DIR is required: the folder with config.yaml and nodes.yaml (`aggnode genesis` makes one)")
	}
	if s.Committees < 0 {
		return nil, fmt.Errorf("--attestation-committee-count %d: must not be negative", s.Committees)
	}
	dir := s.NetworkDir
	if dir == "" {
		dir = filepath.Dir(s.Genesis)
	}
	return netconfig.Load(dir, netconfig.Overrides{
		Profile: s.Profile, Scheme: s.Scheme, Backend: s.Backend,
		Committees: uint64(s.Committees), SlotDuration: s.SlotDuration,
		ConfigFile: s.Genesis, KeyDir: s.KeysDir,
	})
}

// backend is the flag, the network folder, or the profile's own.
func (s *settings) backend(network *netconfig.Network) node.Backend {
	switch {
	case s.NoProofs && s.Backend == "":
		return node.BackendNone
	case s.Backend != "":
		return node.Backend(s.Backend)
	case len(s.ProverCommand) > 0:
		return node.BackendCommand
	case network.Backend != "":
		return node.Backend(network.Backend)
	}
	return node.DefaultBackend(network.Profile)
}

// readBootnodes takes ENRs, multiaddrs and files with a list of them.
func readBootnodes(entries []string) ([]netconfig.Node, error) {
	var out []netconfig.Node
	for _, entry := range entries {
		if strings.HasPrefix(entry, "enr:") || strings.HasPrefix(entry, "/") && strings.Contains(entry, "/p2p/") {
			n, err := netconfig.ParseNode(entry)
			if err != nil {
				return nil, fmt.Errorf("--bootnodes %s: %w", entry, err)
			}
			out = append(out, n)
			continue
		}
		nodes, err := netconfig.LoadNodes(entry)
		if err != nil {
			return nil, fmt.Errorf("--bootnodes: %w", err)
		}
		out = append(out, nodes...)
	}
	return out, nil
}

func (s *settings) readNodeKey(log *slog.Logger) ([32]byte, error) {
	path, create, err := s.nodeKeyFile()
	if err != nil {
		return [32]byte{}, err
	}
	if create {
		var key [32]byte
		if _, err := rand.Read(key[:]); err != nil {
			return key, fmt.Errorf("make a node key: %w", err)
		}
		if err := os.MkdirAll(s.DataDir, 0o700); err != nil {
			return key, fmt.Errorf("--data-dir: %w", err)
		}
		if err := os.WriteFile(path, []byte(hex.EncodeToString(key[:])+"\n"), 0o600); err != nil {
			return key, fmt.Errorf("write the node key: %w", err)
		}
		log.Info("made a network identity", "file", path)
		return key, nil
	}
	key, err := netconfig.LoadNodeKey(path)
	if err != nil {
		return key, fmt.Errorf("--node-key: %w", err)
	}
	return key, nil
}

// loadKeys reads the key files of our validators. A node that the network folder does not name has none.
func (s *settings) loadKeys(ctx context.Context, network *netconfig.Network, log *slog.Logger) ([]signer.Keys, error) {
	if s.NodeID == "" {
		return nil, nil
	}
	duties, err := network.Duties(s.NodeID)
	if err != nil || len(duties) == 0 {
		return nil, err
	}
	scheme, err := xmss.SchemeByName(network.Profile.Scheme)
	if err != nil {
		return nil, err
	}
	requests := make([]keystore.Request, 0, len(duties))
	for _, d := range duties {
		if uint64(d.Index) >= uint64(len(network.Validators)) {
			return nil, fmt.Errorf("node %s runs validator %d, but the genesis has %d validators", s.NodeID, d.Index, len(network.Validators))
		}
		v := network.Validators[d.Index]
		r := keystore.Request{Index: d.Index, AttestationFile: d.AttestationKeyFile, ProposalFile: d.ProposalKeyFile}
		copy(r.Attestation[:], v.AttestationKey)
		copy(r.Proposal[:], v.ProposalKey)
		requests = append(requests, r)
	}
	loaded, err := keystore.Load(ctx, scheme, requests, log.With("component", "keystore"))
	if err != nil {
		return nil, err
	}
	keys := make([]signer.Keys, len(loaded))
	for i, k := range loaded {
		keys[i] = signer.Keys{Index: k.Index, Attestation: k.Attestation, Proposal: k.Proposal}
	}
	return keys, nil
}
