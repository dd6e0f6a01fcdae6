package node

import (
	"time"

	"aggnode/api"
	"aggnode/pipeline"
	"aggnode/prover"
	"aggnode/wire"
)

// Status describes the node for the API, from snapshots.
func (n *Node) Status() api.Status {
	cfg, network := &n.cfg, n.cfg.Network
	slot, interval := n.clock.At()
	chainStatus := n.tree.Status()
	s := api.Status{
		Version: cfg.Version, Node: cfg.NodeID, PeerID: n.host.PeerID(), Addrs: n.host.Addrs(), Network: cfg.TopicNetwork,
		Profile: network.Profile.Name, Scheme: network.Profile.Scheme, UptimeMS: time.Since(n.started).Milliseconds(),
		GenesisTime: int64(network.GenesisTime), SlotMS: network.SlotDuration.Milliseconds(),
		BeforeGenesis: n.clock.BeforeGenesis(), Slot: uint64(slot), Interval: int(interval),
		Head: apiCheckpoint(chainStatus.Head), Finalized: apiCheckpoint(chainStatus.Finalized),
		Validators: n.registry.Len(), Committees: network.Committees, IsAggregator: n.aggregator.Enabled(),
		Budget: api.Budget{Tier: n.sched.Tier().String(), Cores: n.sched.Decision().Cores},
		Checks: n.Checks(),
	}
	for _, k := range cfg.Keys {
		s.OwnValidators = append(s.OwnValidators, uint64(k.Index))
	}
	for _, id := range n.subnets {
		s.Subnets = append(s.Subnets, uint64(id))
	}
	for _, p := range n.host.Peers() {
		s.Peers = append(s.Peers, api.Peer{ID: p.ID, Name: p.Client, Address: p.Address, Direction: p.Direction})
	}
	queues := n.pipe.Stats()
	parked := map[pipeline.Class]int{pipeline.ClassAttestation: queues.ParkedAttestations, pipeline.ClassAggregate: queues.ParkedAggregates}
	for _, q := range queues.Classes {
		s.Queues = append(s.Queues, api.Queue{
			Class: q.Class.String(), Waiting: q.Waiting, Running: q.Running, Parked: parked[q.Class],
			Capacity: q.Capacity, OldestMS: q.Oldest.Milliseconds(),
		})
	}
	c := n.cache.Stats()
	s.Caches = []api.Cache{
		{Name: "signer_sets", Entries: c.SignerSets, Capacity: c.SignerSetsMax},
		{Name: "uppers", Entries: c.Uppers, Capacity: c.UppersMax},
	}
	s.Verifier = n.verifierStatus()
	s.Prover = n.backendStatus(n.backend.proverChild)
	return s
}

func apiCheckpoint(c wire.Checkpoint) api.Checkpoint {
	return api.Checkpoint{Root: c.Root.String(), Slot: uint64(c.Slot)}
}

func (n *Node) backendStatus(c *prover.Client) *api.Backend {
	if c == nil {
		return nil
	}
	caps, _ := c.Capabilities()
	st := c.Stats()
	b := &api.Backend{
		Name: caps.Backend, Revision: caps.Revision, Scheme: caps.Scheme, Ready: st.Ready, PID: st.PID, Restarts: st.Restarts, Running: st.Running,
	}
	if !st.Oldest.IsZero() {
		b.OldestMS = time.Since(st.Oldest).Milliseconds()
	}
	if st.LastError != nil {
		b.LastError = st.LastError.Error()
	}
	return b
}
