package node

import (
	"context"
	"fmt"
	"time"

	"aggnode/api"
	"aggnode/prover"
	"aggnode/scheduler"
	"aggnode/verify"
	"aggnode/wire"
)

// AggregateVerifier names who checks the proofs of aggregates.
type AggregateVerifier string

// Who checks. Empty means native with the backend lean-pq and the child with another program behind the protocol.
const (
	VerifierNative AggregateVerifier = "native" // this process: proofs of lean-pq
	VerifierChild  AggregateVerifier = "child"  // a verifier child of the backend
	VerifierBoth   AggregateVerifier = "both"   // this process, with a child that is asked about some proofs too
)

// verifier is the setting or what it stands for; empty where proofs are not checked by one of the two.
func (c *Config) verifier() AggregateVerifier {
	switch {
	case c.AggregateVerifier != "":
		return c.AggregateVerifier
	case c.Backend == BackendLeanPQ:
		return VerifierNative
	case c.Backend == BackendCommand:
		return VerifierChild
	}
	return ""
}

// nativeMaker is verify.NewNative.
type nativeMaker func(ctx context.Context, compute func(context.Context, func()) error, threadCPU func() time.Duration) (*verify.Native, error)

func (c *Config) validateVerifier() error {
	switch c.AggregateVerifier {
	case "":
		return nil
	case VerifierNative, VerifierChild, VerifierBoth:
	default:
		return fmt.Errorf("--aggregate-verifier %s: must be native, child or both", c.AggregateVerifier)
	}
	switch scheme := c.Network.Profile.Scheme; {
	case c.Backend != BackendLeanPQ && c.Backend != BackendCommand:
		return fmt.Errorf("--aggregate-verifier %s: only the backends lean-pq and command have a choice", c.AggregateVerifier)
	case c.AggregateVerifier != VerifierChild && scheme != wire.SchemeKeccak:
		return fmt.Errorf("--aggregate-verifier %s: proofs of lean-pq are of scheme keccak, profile %s has scheme %s",
			c.AggregateVerifier, c.Network.Profile.Name, scheme)
	}
	return nil
}

// newVerifier decides who checks proofs, and makes the child for it where there can be one: noChild tells why not. A native
// check that fails its self-test leaves the child, and without a child there is no node.
func (b *backend) newVerifier(cfg *Config, base prover.Config, noChild error, sched *scheduler.Scheduler) error {
	who, logger := cfg.verifier(), cfg.Logger.With("component", "verify")
	var err error
	if who != VerifierChild {
		if b.native, err = cfg.newNative(context.Background(), sched.Compute, scheduler.ThreadCPU); err != nil {
			if noChild != nil {
				return fmt.Errorf("proofs can not be checked here: %w; nor by a child: %w", err, noChild)
			}
			logger.Error("proofs are checked by a child for want of a native check", "error", err)
		}
	}
	switch {
	case noChild == nil:
		base.Role = prover.RoleVerify
		base.Calls = max(1, cfg.Workers-1)
		base.Threads = base.Calls        // a check runs on one thread (20 ms with 1 or 2); more would only crowd the set-up
		base.Spare = who != VerifierBoth // a second opinion can wait
		base.Place = sched.Place(scheduler.ClassVerifier)
		if b.verifierChild, err = prover.New(base); err != nil {
			return err
		}
	case who != VerifierNative:
		return noChild
	}
	b.arbiter = verify.NewArbiter(verify.ArbiterConfig{Compare: b.compare, Logger: logger, Registerer: cfg.Registry}, b.native, b.verifierChild)
	return nil
}

// runVerifierChild runs the child from when it is needed.
func (b *backend) runVerifierChild(ctx context.Context) error {
	if !b.compare {
		select {
		case <-b.arbiter.ChildOnly():
		case <-ctx.Done():
			return nil
		}
	}
	return b.verifierChild.Run(ctx)
}

// nativeBatch is how many waiting aggregates a worker may take at once where they are checked natively: of more the pass over
// the guest's table, which they share, would not get much cheaper.
const nativeBatch = 8

// batch is how many aggregates the checker may get at once.
func (b *backend) batch() int {
	if b.arbiter != nil && b.arbiter.IsNative() {
		return nativeBatch
	}
	return 1
}

// fitVerifier has a child check what a prover of an unknown version makes, and its kin in the network.
func (b *backend) fitVerifier(revision string) {
	if b.native != nil && !b.native.Knows(revision) {
		b.arbiter.UseChild(fmt.Sprintf("the prover is %q, the native check knows %q only", revision, b.native.Prover()))
	}
}

// verifierInUse is the child that checks or compares, nil where none is running.
func (b *backend) verifierInUse() *prover.Client {
	if b.arbiter != nil && b.arbiter.IsNative() && !b.compare {
		return nil
	}
	return b.verifierChild
}

// checkVerifier judges who checks. A second opinion that is missing keeps nobody from checking.
func (n *Node) checkVerifier() api.Check {
	const name = "verifier"
	b := n.backend
	switch {
	case n.cfg.NoProofs:
		return api.Check{Name: name, Detail: "no_backend: running with --no-proofs"}
	case b.arbiter == nil:
		return api.Check{Name: name, OK: true} // embedded: always there
	case !b.arbiter.IsNative():
		check := childCheck(name, b.verifierChild, true)
		if check.OK {
			check.Detail = b.arbiter.Why()
		}
		return check
	case b.compare:
		if second := childCheck(name, b.verifierChild, true); !second.OK {
			return api.Check{Name: name, OK: true, Detail: "native, without a second opinion: " + second.Detail}
		}
		return api.Check{Name: name, OK: true, Detail: "native, compared with a child"}
	}
	return api.Check{Name: name, OK: true, Detail: "native"}
}

// verifierStatus describes who checks, nil for the embedded backend.
func (n *Node) verifierStatus() *api.Backend {
	b := n.backend
	if b.arbiter == nil || !b.arbiter.IsNative() {
		return n.backendStatus(b.verifierChild)
	}
	return &api.Backend{Name: string(VerifierNative), Revision: b.native.Prover(), Scheme: n.cfg.Network.Profile.Scheme, Ready: true}
}
