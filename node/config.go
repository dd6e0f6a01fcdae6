package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"aggnode/netconfig"
	"aggnode/scheduler"
	"aggnode/signer"
	"aggnode/telemetry"
	"aggnode/verify"
	"aggnode/wire"
)

// Backend names what makes and checks proofs.
type Backend string

// The backends.
const (
	BackendNone    Backend = ""        // only with Config.NoProofs
	BackendLeanPQ  Backend = "lean-pq" // py-lean-pq in children
	BackendBundle  Backend = "bundle"  // embedded, profile local only
	BackendCommand Backend = "command" // any program that speaks the prover protocol
)

// ProverClass is how the prover child is placed beside the node.
type ProverClass string

// The classes; empty means default.
const (
	ProverDefault ProverClass = "default" // the lowest priority
	ProverPlain   ProverClass = "plain"   // like the node itself: what other clients do, for comparisons
)

// Config is everything that one node needs. Paths and names were resolved by the caller.
type Config struct {
	Version string
	Network *netconfig.Network // required
	NodeID  string             // our name in the network folder; may be empty
	NodeKey [32]byte           // secp256k1 identity

	DataDir      string // required; locked while the node exists
	ListenIP     netip.Addr
	GossipPort   int
	HTTPAddress  string
	APIPort      int
	MetricsPort  int
	TopicNetwork string           // network name in topics
	Bootnodes    []netconfig.Node // besides those of the network folder

	IsAggregator bool
	Subnets      []wire.SubnetID // as an aggregator, besides those of our validators
	Keys         []signer.Keys

	Backend       Backend
	NoProofs      bool
	ProverDir     string
	ProverCommand []string

	AggregateVerifier AggregateVerifier // who checks proofs; empty: by the backend

	ProverThreads int
	ProverClass   ProverClass
	ProverMemory  int64            // bytes; 0: no limit
	Budget        scheduler.Budget // what the operator allows the prover at start; without a tier: auto
	RealTime      bool             // the node, not its children, at real-time priority where the system allows it; not beside a plain prover
	Workers       int              // verification workers; 0: GOMAXPROCS

	Logger   *slog.Logger         // required
	Levels   *telemetry.Levels    // switches log levels at run time; may be nil
	Registry *prometheus.Registry // required
	Tracer   trace.TracerProvider // required

	newNative nativeMaker // a seam for tests; nil: verify.NewNative
}

// DefaultBackend is the backend that a profile runs with unless told otherwise; BackendNone where no backend of this
// program can check the profile's proofs.
func DefaultBackend(p *wire.Profile) Backend {
	switch p.Name {
	case "lean-pq":
		return BackendLeanPQ
	case "local":
		return BackendBundle
	}
	return BackendNone
}

func (c *Config) validate() error {
	switch {
	case c.Network == nil || c.Logger == nil || c.Registry == nil || c.Tracer == nil:
		return errors.New("node: network, logger, registry and tracer are required")
	case c.DataDir == "":
		return errors.New("node: a data directory is required")
	case c.ProverClass != "" && c.ProverClass != ProverDefault && c.ProverClass != ProverPlain:
		return fmt.Errorf("--prover-class %s: must be default or plain", c.ProverClass)
	case c.Workers < 0:
		return fmt.Errorf("--verify-workers %d: must not be negative", c.Workers)
	}
	if c.newNative == nil {
		c.newNative = verify.NewNative
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	for _, s := range c.Subnets {
		if uint64(s) >= c.Network.Committees {
			return fmt.Errorf("--aggregate-subnet-ids %d: the network has %d committees", s, c.Network.Committees)
		}
	}
	return c.validateBackend()
}

// validateBackend refuses a profile that nothing here can check, and a backend that does not belong to the profile.
func (c *Config) validateBackend() error {
	p := c.Network.Profile
	switch c.Backend {
	case BackendNone:
		switch {
		case !c.NoProofs:
			return fmt.Errorf("profile %s has no verifying backend in this program: plug in its leanVM with --backend command --prover-command CMD "+
				"(docs/prover-protocol.md), or run with --no-proofs", p.Name)
		case c.IsAggregator:
			return fmt.Errorf("--is-aggregator: profile %s runs without a prover (--no-proofs), nothing can be aggregated", p.Name)
		}
	case BackendBundle:
		if !p.AllowsBundle {
			return fmt.Errorf("--backend bundle: profile %s does not admit it (profile local does): its proofs are the signatures themselves", p.Name)
		}
	case BackendLeanPQ:
		if p.Scheme != wire.SchemeKeccak {
			return fmt.Errorf("--backend lean-pq has scheme keccak, profile %s has scheme %s", p.Name, p.Scheme)
		}
	case BackendCommand:
		if len(c.ProverCommand) == 0 {
			return errors.New("--backend command needs --prover-command")
		}
	default:
		return fmt.Errorf("--backend %s: must be lean-pq, bundle or command", c.Backend)
	}
	if c.NoProofs && c.Backend != BackendNone {
		return fmt.Errorf("--no-proofs together with --backend %s: choose one", c.Backend)
	}
	return c.validateVerifier()
}

// subnets are the attestation subnets that the node takes part in: those of its validators and, for an aggregator, the
// configured ones; an aggregator with neither serves subnet 0 (leanSpec cli/run.py).
func (c *Config) subnets() []wire.SubnetID {
	set := map[wire.SubnetID]bool{}
	for _, k := range c.Keys {
		set[wire.SubnetOf(k.Index, c.Network.Committees)] = true
	}
	if c.IsAggregator {
		for _, s := range c.Subnets {
			set[s] = true
		}
		if len(set) == 0 {
			set[0] = true
		}
	}
	out := make([]wire.SubnetID, 0, len(set))
	for s := range set {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// aggregated are the subnets whose votes this node aggregates. Where ids were given, those alone: our validators' other
// subnets have aggregators of their own.
func (c *Config) aggregated(all []wire.SubnetID) []wire.SubnetID {
	if len(c.Subnets) > 0 {
		return c.Subnets
	}
	return all
}

// Check reports what New would refuse, without opening anything.
func (c *Config) Check() error { return c.validateBackend() }
