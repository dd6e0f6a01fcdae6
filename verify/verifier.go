package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/wire"
	"aggnode/xmss"
)

// maxEpoch is the last slot for which a signature can exist: an epoch is a leaf number of 32 bits.
const maxEpoch = math.MaxUint32

// proofChecker answers whether a proof makes exactly a claim. nil: it does. prover.Client and the embedded backends are
// proof checkers. Safe for concurrent use.
type proofChecker interface {
	Verify(ctx context.Context, claim prover.Claim, proof []byte) error
}

// ProofCheck is one question to a proof checker. Immutable.
type ProofCheck struct {
	Claim prover.Claim
	Proof []byte
}

// sharingChecker is a proof checker for which several proofs are less work than one after the other. It answers each.
type sharingChecker interface {
	VerifyBatch(ctx context.Context, checks []ProofCheck) []error
}

// Config says what is checked. Profile is required.
type Config struct {
	Profile *wire.Profile // sizes and block envelope of the network

	// NoProofs is for a network whose proofs nothing here can check: aggregates that pass the structural checks are
	// answered with ReasonUnverified, and no checker is needed. They must never be pooled.
	NoProofs bool

	// ProverBusy tells whether our own prover is at work; it splits the check times into idle and busy. Nil: never.
	ProverBusy func() bool

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
	Tracer     trace.Tracer          // default: no-op
}

func (c *Config) validate(reg *pubkeycache.Registry, cache *pubkeycache.Cache, checker proofChecker) error {
	switch {
	case c.Profile == nil:
		return errors.New("verify: no profile")
	case reg == nil || cache == nil:
		return errors.New("verify: no registry or cache")
	case checker == nil && !c.NoProofs:
		return errors.New("verify: no proof checker")
	case c.Profile.Scheme != reg.Scheme().String():
		return fmt.Errorf("verify: profile %s has scheme %s, the registry %s", c.Profile.Name, c.Profile.Scheme, reg.Scheme())
	case c.Profile.SignatureSize != reg.Scheme().SignatureSize():
		return fmt.Errorf("verify: profile %s has signatures of %d bytes, scheme %s of %d",
			c.Profile.Name, c.Profile.SignatureSize, reg.Scheme(), reg.Scheme().SignatureSize())
	}
	return nil
}

// Verifier checks attestations, aggregates and blocks of one network. Safe for concurrent use; all fields are immutable
// or have their own lock.
type Verifier struct {
	profile    *wire.Profile
	scheme     xmss.Scheme
	noProofs   bool
	proverBusy func() bool
	registry   *pubkeycache.Registry
	cache      *pubkeycache.Cache
	checker    proofChecker
	sharing    sharingChecker // checker, where it is one; else nil
	metrics    *metrics
	notice     *notice
	tracer     trace.Tracer
	scratch    sync.Pool // of *scratch
}

// New makes a verifier over a registry and its cache. checker may be nil only with Config.NoProofs.
func New(cfg Config, reg *pubkeycache.Registry, cache *pubkeycache.Cache, checker proofChecker) (*Verifier, error) {
	if err := cfg.validate(reg, cache, checker); err != nil {
		return nil, err
	}
	v := &Verifier{
		profile:    cfg.Profile,
		scheme:     reg.Scheme(),
		noProofs:   cfg.NoProofs,
		proverBusy: cfg.ProverBusy,
		registry:   reg,
		cache:      cache,
		checker:    checker,
		metrics:    newMetrics(cfg.Registerer),
		notice:     newNotice(cfg.Logger, cfg.Profile),
		tracer:     cfg.Tracer,
	}
	v.sharing, _ = checker.(sharingChecker)
	v.scratch.New = func() any { return new(scratch) }
	if v.proverBusy == nil {
		v.proverBusy = func() bool { return false }
	}
	if v.tracer == nil {
		v.tracer = noop.NewTracerProvider().Tracer("")
	}
	return v, nil
}

// ended returns the reason for an item whose context is over: its deadline passed, or the node stops.
func ended(ctx context.Context) (wire.Reason, bool) {
	switch err := ctx.Err(); {
	case err == nil:
		return wire.ReasonNone, false
	case errors.Is(err, context.DeadlineExceeded):
		return wire.ReasonExpired, true
	default:
		return wire.ReasonStopping, true
	}
}
