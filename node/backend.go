package node

import (
	"context"
	"fmt"

	"aggnode/aggregate"
	"aggnode/prover"
	"aggnode/prover/bundle"
	"aggnode/scheduler"
	"aggnode/verify"
	"aggnode/xmss"
)

// proofChecker checks proofs: this process, the verifier child, or the embedded backend.
type proofChecker interface {
	Verify(ctx context.Context, c prover.Claim, proof []byte) error
}

// proofMaker makes proofs: the prover child or the embedded backend.
type proofMaker interface {
	Prove(ctx context.Context, j prover.Job) (prover.Result, error)
	Capabilities() (prover.Capabilities, bool)
	Ready() bool
}

// backend is what makes and checks proofs in this node.
type backend struct {
	checker proofChecker // nil with --no-proofs
	maker   proofMaker

	arbiter       *verify.Arbiter // nil without a choice of who checks: for the embedded backend and with --no-proofs
	native        *verify.Native  // nil where this process does not check
	compare       bool            // a child is asked for a second opinion
	verifierChild *prover.Client  // nil where there can be none; it runs only when it is needed
	proverChild   *prover.Client  // nil for the embedded backend and for nodes that do not aggregate

	costs *aggregate.Costs // of the prover child, nil without one
}

// absentMaker stands where this node makes no proofs.
type absentMaker struct{}

func (absentMaker) Prove(context.Context, prover.Job) (prover.Result, error) {
	return prover.Result{}, prover.ErrUnavailable
}

func (absentMaker) Capabilities() (prover.Capabilities, bool) { return prover.Capabilities{}, false }
func (absentMaker) Ready() bool                               { return false }

// newBackend makes the clients of the configured backend. It starts nothing.
func newBackend(cfg *Config, sched *scheduler.Scheduler) (*backend, error) {
	switch cfg.Backend {
	case BackendNone:
		return &backend{maker: absentMaker{}}, nil
	case BackendBundle:
		scheme, err := xmss.SchemeByName(cfg.Network.Profile.Scheme)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", cfg.Network.Profile.Name, err)
		}
		b := bundle.New(scheme)
		return &backend{checker: b, maker: b}, nil
	case BackendLeanPQ, BackendCommand:
		return newChildren(cfg, sched)
	}
	return nil, fmt.Errorf("unknown backend %s", cfg.Backend)
}

func newChildren(cfg *Config, sched *scheduler.Scheduler) (*backend, error) {
	base := prover.Config{
		Scheme: cfg.Network.Profile.Scheme, Logger: cfg.Logger.With("component", "prover"), Registerer: cfg.Registry,
		Available: func() int64 { return scheduler.AvailableMemory("", "") },
	}
	noChild := childCommand(cfg, &base)
	b := &backend{maker: absentMaker{}, compare: cfg.verifier() == VerifierBoth}
	if err := b.newVerifier(cfg, base, noChild, sched); err != nil {
		return nil, err
	}
	if !cfg.IsAggregator {
		return b, nil
	}
	if noChild != nil {
		return nil, noChild
	}
	maker := base
	maker.Role = prover.RoleProve
	maker.Threads = cfg.ProverThreads
	if cpus := sched.Placement().ProverCPUs; maker.Threads == 0 && cpus != nil {
		maker.Threads = len(cpus) // read once by the backend, when it starts
	}
	maker.Place = sched.Place(scheduler.ClassProver)
	if cfg.ProverClass == ProverPlain {
		maker.Place = sched.Place(scheduler.ClassVerifier)
	}
	maker.Spare = true
	maker.MemoryMax = cfg.ProverMemory
	maker.Watch = sched.Watch(scheduler.ClassProver)
	var err error
	if b.proverChild, err = prover.New(maker); err != nil {
		return nil, err
	}
	b.maker, b.costs = b.proverChild, loadCosts(cfg.DataDir, base.Logger)
	return b, nil
}

// childCommand fills in what a child runs. The error says why there can be none.
func childCommand(cfg *Config, child *prover.Config) error {
	if cfg.Backend == BackendCommand {
		child.Command = cfg.ProverCommand
		return nil
	}
	env, err := prover.Locate(cfg.ProverDir)
	if err != nil {
		return fmt.Errorf("%w: run `aggnode prover install`, or name its folder with --prover-dir", err)
	}
	child.Command, child.Env, err = prover.LeanPQ(env)
	return err
}

// whyNoProver explains a prover that is not ready.
func (b *backend) whyNoProver() error {
	if b.proverChild == nil {
		return nil
	}
	return b.proverChild.Stats().LastError
}
