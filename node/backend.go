package node

import (
	"cmp"
	"context"
	"fmt"

	"aggnode/prover"
	"aggnode/prover/bundle"
	"aggnode/scheduler"
	"aggnode/xmss"
)

// proofChecker checks proofs: the verifier child or the embedded backend.
type proofChecker interface {
	Verify(ctx context.Context, c prover.Claim, proof []byte) error
}

// proofMaker makes proofs: the prover child or the embedded backend.
type proofMaker interface {
	Prove(ctx context.Context, j prover.Job) (prover.Result, error)
	Capabilities() (prover.Capabilities, bool)
	Ready() bool
}

// noMemoryLimit is more than any machine has. The watch of a child's memory also moves a running prover when the budget
// changes, so there is always one.
const noMemoryLimit = 1 << 46

// backend is what makes and checks proofs in this node.
type backend struct {
	checker proofChecker // nil with --no-proofs
	maker   proofMaker

	verifierChild *prover.Client // nil for the embedded backend
	proverChild   *prover.Client // nil for the embedded backend and for nodes that do not aggregate
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
	command, environ := cfg.ProverCommand, []string(nil)
	if cfg.Backend == BackendLeanPQ {
		env, err := prover.Locate(cfg.ProverDir)
		if err != nil {
			return nil, fmt.Errorf("%w: run `aggnode prover install`, or name its folder with --prover-dir", err)
		}
		if command, environ, err = prover.LeanPQ(env); err != nil {
			return nil, err
		}
	}
	base := prover.Config{
		Command: command, Env: environ, Scheme: cfg.Network.Profile.Scheme,
		Logger: cfg.Logger.With("component", "prover"), Registerer: cfg.Registry,
	}
	verifier := base
	verifier.Role = prover.RoleVerify
	verifier.Calls = max(1, cfg.Workers-1)
	verifier.Threads = verifier.Calls // a check runs on one thread (20 ms with 1 or 2); more would only crowd the set-up
	verifier.Spare = true
	verifier.Place = sched.Place(scheduler.ClassVerifier)
	b := &backend{maker: absentMaker{}}
	var err error
	if b.verifierChild, err = prover.New(verifier); err != nil {
		return nil, err
	}
	b.checker = b.verifierChild
	if !cfg.IsAggregator {
		return b, nil
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
	maker.MemoryMax = cmp.Or(cfg.ProverMemory, noMemoryLimit)
	maker.Watch = sched.Watch(scheduler.ClassProver)
	if b.proverChild, err = prover.New(maker); err != nil {
		return nil, err
	}
	b.maker = b.proverChild
	return b, nil
}

// whyNoProver explains a prover that is not ready.
func (b *backend) whyNoProver() error {
	if b.proverChild == nil {
		return nil
	}
	return b.proverChild.Stats().LastError
}
