package node

import (
	"context"
	"fmt"
	"time"

	"aggnode/internal/lanes"
	"aggnode/wire"
)

// announce says once, at start, what this node is and what it will need.
func (n *Node) announce() {
	cfg, net := &n.cfg, n.cfg.Network
	place := n.sched.Placement()
	n.log.Info("node",
		"version", cfg.Version, "node_id", cfg.NodeID, "peer", n.host.PeerID(),
		"profile", net.Profile.Name, "scheme", net.Profile.Scheme, "backend", string(cfg.Backend),
		"validators", len(net.Validators), "own_validators", len(cfg.Keys), "committees", net.Committees, "subnets", subnetList(n.subnets),
		"is_aggregator", cfg.IsAggregator, "slot_ms", net.SlotDuration.Milliseconds(), "genesis", n.clock.Genesis().UTC().Format(time.RFC3339))
	for _, note := range n.pipe.Notes() {
		n.log.Warn(note)
	}
	n.log.Info("placement of the prover", "tier", place.Tier.String(), "why", place.Reason)
	if refused := lanes.Refused(); len(refused) > 0 {
		n.log.Warn("vector instructions of this CPU are not used: they gave other hashes than portable code", "refused", refused, "used", lanes.Current())
	}
	if cfg.NoProofs {
		n.log.Warn("running with --no-proofs: aggregates are forwarded on their structure alone and never pooled")
	}
}

// announceBackend says once what memory the children will need, when they are set up: that takes seconds.
func (n *Node) announceBackend(ctx context.Context) error {
	var args []any
	var total int64
	add := func(name string, need int64) {
		total += need
		args = append(args, name+"_mib", need>>20)
	}
	if c := n.backend.verifierInUse(); c != nil && c.WaitReady(ctx) == nil {
		caps, _ := c.Capabilities()
		add("verifier", caps.SetupMemory)
		if !n.backend.compare {
			add("verifier_spare", caps.SetupMemory)
		}
	}
	if c := n.backend.proverChild; c != nil && c.WaitReady(ctx) == nil {
		caps, _ := c.Capabilities()
		n.backend.fitVerifier(caps.Revision)
		raw := min(n.pool.Expected(), caps.MaxRaw)
		add("prover", caps.MemoryNeed(raw, 0))
		add("prover_with_two_children", caps.MemoryNeed(raw, 2))
		total -= caps.MemoryNeed(raw, 0) // the larger of the two is the one to provide for
		if c.Stats().NoSpare == "" {
			add("prover_spare", caps.SetupMemory)
		}
	}
	if total > 0 {
		n.log.Info("memory for the proof backend", append(args, "total_mib", total>>20)...)
	}
	<-ctx.Done()
	return nil
}

func subnetList(subnets []wire.SubnetID) string { return fmt.Sprint(subnets) }
