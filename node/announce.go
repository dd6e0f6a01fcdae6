package node

import (
	"context"
	"fmt"
	"time"

	"aggnode/prover"
	"aggnode/scheduler"
	"aggnode/wire"
)

// announce says once, at start, what this node is and what it will need.
func (n *Node) announce() {
	cfg, net := &n.cfg, n.cfg.Network
	machine := n.sched.Machine()
	n.log.Info("node",
		"version", cfg.Version, "node_id", cfg.NodeID, "peer", n.host.PeerID(),
		"profile", net.Profile.Name, "scheme", net.Profile.Scheme, "backend", string(cfg.Backend),
		"validators", len(net.Validators), "own_validators", len(cfg.Keys), "committees", net.Committees, "subnets", subnetList(n.subnets),
		"is_aggregator", cfg.IsAggregator, "slot_ms", net.SlotDuration.Milliseconds(), "genesis", n.clock.Genesis().UTC().Format(time.RFC3339))
	n.log.Info("placement", "tier", n.sched.Tier().String(), "cpus", machine.CPUs, "cgroup", machine.Cgroup.String(), "workers", n.pipe.Limits().Workers)
	for _, note := range n.pipe.Notes() {
		n.log.Warn(note)
	}
	if machine.Cgroup == scheduler.CgroupV1 {
		n.log.Info("cgroup v1 host: the prover is kept apart by its priority alone (tier T0)")
	}
	if cfg.NoProofs {
		n.log.Warn("running with --no-proofs: aggregates are forwarded on their structure alone and never pooled")
	}
}

// announceBackend waits for the children in the background of Run and says what they need: set-up takes seconds.
func (n *Node) announceBackend(ctx context.Context) error {
	report := func(name string, c *prover.Client, raw int, spare bool) {
		if c == nil || c.WaitReady(ctx) != nil {
			return // the client logs why
		}
		caps, _ := c.Capabilities()
		need := caps.MemoryNeed(raw, 0)
		if name == "verifier" {
			need = caps.SetupMemory
			if spare {
				need *= 2
			}
		}
		args := []any{"role", name, "backend", caps.Backend, "revision", caps.Revision, "scheme", caps.Scheme, "memory_mib", need >> 20}
		if caps.HelloProve > 0 {
			args = append(args, "first_proof_ms", caps.HelloProve.Milliseconds(), "threads", caps.Threads)
		}
		n.log.Info("proof backend ready", args...)
	}
	report("verifier", n.backend.verifierChild, 0, true)
	expected := n.pool.Expected()
	report("prover", n.backend.proverChild, expected, false)
	<-ctx.Done()
	return nil
}

func subnetList(subnets []wire.SubnetID) string { return fmt.Sprint(subnets) }
