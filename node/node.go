package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"aggnode/aggregate"
	"aggnode/api"
	"aggnode/chain"
	"aggnode/chain/proposer"
	"aggnode/netconfig"
	"aggnode/p2p"
	"aggnode/pipeline"
	"aggnode/pubkeycache"
	"aggnode/scheduler"
	"aggnode/signer"
	"aggnode/store"
	"aggnode/verify"
	"aggnode/wire"
	"aggnode/xmss"
)

// Node is one assembled node. Make it with New, run it once with Run.
type Node struct {
	// immutable
	cfg        Config
	log        *slog.Logger
	clock      *chain.Clock
	monitor    *chain.Monitor
	tree       *chain.Tree
	sched      *scheduler.Scheduler
	signals    *signals
	backend    *backend
	registry   *pubkeycache.Registry
	cache      *pubkeycache.Cache
	pipe       *pipeline.Pipeline
	pool       *aggregate.Pool
	aggregator *aggregate.Aggregator
	host       *p2p.Host
	store      *store.Store
	signer     *signer.Signer     // nil without validator keys
	proposer   *proposer.Proposer // nil without keys, and where the envelope needs a prover for blocks
	aggregates *api.AggregateLog
	servers    *api.Server
	subnets    []wire.SubnetID
	started    time.Time
}

// New assembles a node. It opens the data directory and starts nothing else; Close gives it back.
func New(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Logger.With("component", "node"), aggregates: api.NewAggregateLog(), subnets: cfg.subnets(), started: time.Now()}
	if err := registerMetrics(cfg.Registry, cfg.Network.Committees, n.subnets); err != nil {
		return nil, err
	}
	for _, step := range []func() error{n.makeChain, n.makeChecks, n.makeAggregation, n.makeDuties, n.makeHost, n.makeServers} {
		if err := step(); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

// Close gives back the data directory, control groups and, after a New without Run, the ports. Call it after Run, or instead of it.
func (n *Node) Close() {
	if n.servers != nil {
		_ = n.servers.Close() // after Run they are closed already
	}
	if n.sched != nil {
		if err := n.sched.Close(); err != nil {
			n.log.Error("give back the place of the prover", "error", err)
		}
	}
	if n.store == nil {
		return
	}
	if err := n.store.Close(); err != nil {
		n.log.Error("close the data directory", "error", err)
	}
}

func (n *Node) component(name string) *slog.Logger { return n.cfg.Logger.With("component", name) }

// makeChain makes the clock and the block tree.
func (n *Node) makeChain() error {
	network := n.cfg.Network
	n.clock = chain.NewClock(time.Unix(int64(network.GenesisTime), 0), network.SlotDuration, nil)
	var err error
	if n.monitor, err = chain.NewMonitor(chain.MonitorConfig{Logger: n.component("chain"), Registerer: n.cfg.Registry}, n.clock); err != nil {
		return err
	}
	_, genesisRoot, err := network.Profile.GenesisBlock(network.GenesisTime, network.Validators)
	if err != nil {
		return fmt.Errorf("compute the genesis block: %w", err)
	}
	var local []wire.ValidatorIndex
	for _, k := range n.cfg.Keys {
		local = append(local, k.Index)
	}
	n.tree, err = chain.NewTree(chain.Config{
		Profile: network.Profile, Validators: len(network.Validators), GenesisRoot: genesisRoot, Local: local,
		OnImport: func(root wire.Root, _ wire.Slot) { n.pipe.HeadImported(root) },
		Logger:   n.component("chain"), Registerer: n.cfg.Registry,
	}, n.clock)
	return err
}

// makeChecks makes everything from the backend to the pipeline.
func (n *Node) makeChecks() error {
	cfg, network := &n.cfg, n.cfg.Network
	scheme, err := xmss.SchemeByName(network.Profile.Scheme)
	if err != nil {
		return fmt.Errorf("profile %s: %w", network.Profile.Name, err)
	}
	if n.registry, err = pubkeycache.NewRegistry(scheme, network.Validators); err != nil {
		return err
	}
	if n.cache, err = pubkeycache.New(pubkeycache.Config{}, n.registry, cfg.Registry); err != nil {
		return err
	}
	n.signals = &signals{n: n}
	if n.sched, err = scheduler.New(scheduler.Config{
		Budget: cfg.placed(cfg.Budget), MemoryMax: cfg.ProverMemory, RealTime: cfg.RealTime && cfg.ProverClass != ProverPlain,
		Signals: n.signals, Logger: n.component("scheduler"), Registerer: cfg.Registry, Tracer: cfg.Tracer.Tracer("aggnode/scheduler"),
	}); err != nil {
		return err
	}
	if n.backend, err = newBackend(cfg, n.sched); err != nil {
		return err
	}
	verifier, err := verify.New(verify.Config{
		Profile: network.Profile, NoProofs: cfg.NoProofs,
		ProverBusy: func() bool { return n.aggregator.Busy() },
		Logger:     n.component("verify"), Registerer: cfg.Registry, Tracer: cfg.Tracer.Tracer("aggnode/verify"),
	}, n.registry, n.cache, n.checker())
	if err != nil {
		return err
	}
	if n.pool, err = aggregate.NewPool(aggregate.PoolConfig{
		Committees: network.Committees, Subnets: cfg.aggregated(n.subnets),
		Logger: n.component("aggregate"), Registerer: cfg.Registry,
	}, n.registry, n.clock); err != nil {
		return err
	}
	n.pipe, err = pipeline.New(pipeline.Config{
		Profile: network.Profile, Network: cfg.TopicNetwork,
		Validators: len(network.Validators), Committees: network.Committees, Subnets: n.subnets,
		Workers: cfg.Workers, SlotDuration: network.SlotDuration, AggregateBatch: n.backend.batch,
		Republish:  func(it *pipeline.Item) { n.host.Republish(it) },
		EarlyBlock: n.tree.ObserveArrival,
		OnWork:     func(w pipeline.Work) { w.Report(n.signals) }, ThreadCPU: scheduler.ThreadCPU,
		Logger: n.component("pipeline"), Registerer: cfg.Registry, Tracer: cfg.Tracer.Tracer("aggnode/pipeline"),
	}, n.clock, verifier, n.tree, n.pool)
	return err
}

// makeAggregation makes the aggregator. Nodes without the role have one too: it says so, once a slot and in its metrics.
func (n *Node) makeAggregation() error {
	cfg, network := &n.cfg, n.cfg.Network
	var err error
	n.aggregator, err = aggregate.NewAggregator(aggregate.Config{
		Enabled: cfg.IsAggregator, Profile: network.Profile, Network: cfg.TopicNetwork,
		Subnets: cfg.aggregated(n.subnets), Committees: network.Committees,
		Costs: n.backend.costs, Place: n.proverPlace,
		WhyUnavailable: n.backend.whyNoProver,
		Logger:         n.component("aggregate"), Registerer: cfg.Registry, Tracer: cfg.Tracer.Tracer("aggnode/aggregate"),
	}, n.pool, n.clock, n.backend.maker, n.sched, n.pipe, recordedPublisher{lateHost{n}, n.aggregates, n.clock})
	return err
}

// makeDuties takes the data directory and makes signer and proposer of our validators.
func (n *Node) makeDuties() error {
	cfg, network := &n.cfg, n.cfg.Network
	var err error
	if n.store, err = store.Open(cfg.DataDir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if len(cfg.Keys) == 0 {
		return nil
	}
	pacer := n.sched.Pacer(n.pipe.VotesWait)
	n.signer, err = signer.New(signer.Config{
		Ordinarily: n.sched.Ordinarily,
		Pace:       func(ctx context.Context, until time.Time) error { return pacer.Until(until).Pace(ctx) },
		Validators: len(network.Validators), Logger: n.component("signer"), Registerer: cfg.Registry,
	}, cfg.Keys, n.store.Marks(), n.clock, n.tree, lateHost{n}, ownProducts{n.pipe})
	if err != nil {
		return err
	}
	if network.Profile.Envelope != wire.EnvelopePair {
		n.log.Info("no block duties: this profile's blocks need a merged proof", "profile", network.Profile.Name)
		return nil
	}
	n.proposer, err = proposer.New(proposer.Config{
		Profile: network.Profile, Validators: len(network.Validators), Logger: n.component("proposer"), Registerer: cfg.Registry,
	}, n.clock, n.tree, n.pool, n.signer, ownProducts{n.pipe}, lateHost{n})
	return err
}

// makeHost makes the network side.
func (n *Node) makeHost() error {
	cfg, network := &n.cfg, n.cfg.Network
	var boot []p2p.Bootnode
	for _, list := range [][]netconfig.Node{network.Bootnodes, cfg.Bootnodes} {
		for _, b := range list {
			boot = append(boot, p2p.Bootnode{Name: b.Name, PeerID: b.PeerID, IP: b.QUIC.Addr(), Port: b.QUIC.Port()})
		}
	}
	var err error
	n.host, err = p2p.New(p2p.Config{
		PrivateKey: cfg.NodeKey, ListenIP: cfg.ListenIP, Port: cfg.GossipPort, Bootnodes: boot,
		Network: cfg.TopicNetwork, Profile: network.Profile, Committees: network.Committees, Subnets: n.subnets,
		SlotDuration: network.SlotDuration, Names: network.NodeNames, UserAgent: "aggnode/" + cfg.Version,
		Logger: n.component("p2p"), Registerer: cfg.Registry,
	}, intake{n.pipe, n.aggregates, n.clock}, statusWithoutBlocks{n.tree})
	return err
}

// makeServers binds the HTTP ports.
func (n *Node) makeServers() error {
	cfg := &n.cfg
	sources := api.Sources{Metrics: cfg.Registry, Health: n, Status: n, Aggregates: n.aggregates, Role: aggregatorRole{n}}
	if cfg.Levels != nil {
		sources.LogLevels = cfg.Levels
	}
	if n.backend.proverChild != nil {
		sources.Budget = operatorBudget{n}
	}
	token, err := api.LoadToken(cfg.DataDir)
	if err != nil {
		return err
	}
	n.servers, err = api.New(api.Config{
		Token:       token,
		MetricsAddr: net.JoinHostPort(cfg.HTTPAddress, strconv.Itoa(cfg.MetricsPort)),
		APIAddr:     net.JoinHostPort(cfg.HTTPAddress, strconv.Itoa(cfg.APIPort)),
		Logger:      n.component("api"), Registerer: cfg.Registry,
	}, sources)
	return err
}

// statusWithoutBlocks is what peers are told of our chain while we serve no blocks: head = finalized. A higher head would
// make them choose us to sync from.
type statusWithoutBlocks struct{ tree *chain.Tree }

func (s statusWithoutBlocks) Status() wire.Status {
	finalized := s.tree.Finalized()
	return wire.Status{Finalized: finalized, Head: finalized}
}

// lateHost publishes through the host, which is made after those who publish: it takes the pipeline, they feed it.
type lateHost struct{ n *Node }

func (l lateHost) PublishAttestation(ctx context.Context, a *wire.SignedAttestation) (int, error) {
	return l.n.host.PublishAttestation(ctx, a)
}

func (l lateHost) PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (int, error) {
	return l.n.host.PublishAggregate(ctx, a)
}

func (l lateHost) PublishBlock(ctx context.Context, b *wire.SignedBlock) error {
	return l.n.host.PublishBlock(ctx, b)
}

// ownProducts delivers our own votes and blocks to our own pipeline: gossip does not bring them back.
type ownProducts struct{ pipe *pipeline.Pipeline }

func (o ownProducts) SubmitAttestation(ctx context.Context, a *wire.SignedAttestation) wire.Reason {
	return o.pipe.SubmitLocal(ctx, &pipeline.Item{Attestation: a}).Reason
}

func (o ownProducts) SubmitBlock(ctx context.Context, b *wire.SignedBlock) wire.Reason {
	return o.pipe.SubmitLocal(ctx, &pipeline.Item{Block: b}).Reason
}
