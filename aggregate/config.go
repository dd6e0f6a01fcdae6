package aggregate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"aggnode/prover"
	"aggnode/wire"
)

const (
	// defaultMinInputs is the fewest raw votes and children of a job: a proof over one of either has no value.
	defaultMinInputs = 2
	// defaultMaxChildren is 2: each child costs 1.5 s and 0.5 GiB with lean-pq 0.7.
	defaultMaxChildren = 2
)

// aggregator makes proofs. One call at a time is made.
type aggregator interface {
	// Prove proves a job. The deadline of ctx is hard: the prover is killed then.
	Prove(ctx context.Context, j prover.Job) (prover.Result, error)
	// Capabilities returns what the loaded prover can do; false before one was loaded.
	Capabilities() (prover.Capabilities, bool)
	Ready() bool
}

// budget grants processor time for one job.
type budget interface {
	Acquire(ctx context.Context) (release func(), err error)
}

// selfChecker verifies our own proofs like anybody's.
type selfChecker interface {
	CheckAggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason
}

// publisher hands an aggregate to the network. peers is how many it went to; none is no error.
type publisher interface {
	PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (peers int, err error)
}

// Config says how an aggregator works. The zero value of a field means its default.
type Config struct {
	Enabled bool          // start in the aggregator role
	Profile *wire.Profile // required
	Network string        // name of the network: part of trace ids
	Subnets []wire.SubnetID
	// Committees is the number of attestation subnets; default 1.
	Committees uint64

	MinInputs   int // raw votes plus children of a job; default 2
	MaxChildren int // children of a job, at most; default 2, negative for none

	// Costs is what the cost model learnt in earlier runs. It is read at start and whenever Place answers otherwise, and
	// holds what this run learnt when Run has returned; nil starts from the hello job and forgets.
	Costs *Costs
	// Place returns the placement tier of the prover and its budget in cores. Required with Costs.
	Place func() (tier string, cores float64)

	// WhyUnavailable explains a prover that is not ready; nil and a nil error say nothing.
	WhyUnavailable func() error

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
	Tracer     trace.Tracer          // default: none
}

func (c *Config) validate() error {
	switch {
	case c.Profile == nil:
		return errors.New("aggregator config: no profile")
	case c.Costs != nil && c.Place == nil:
		return errors.New("aggregator config: costs need a place")
	case c.MinInputs < 0:
		return fmt.Errorf("aggregator config: at least %d inputs", c.MinInputs)
	}
	return nil
}
