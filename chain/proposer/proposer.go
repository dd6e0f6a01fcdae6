package proposer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// Config configures a [Proposer].
type Config struct {
	// Profile is the network line; its envelope must be the pair.
	Profile *wire.Profile
	// Validators is the size of the registry, which tells who proposes.
	Validators int
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// clock is the slot clock.
type clock interface {
	Now() time.Time
	SlotStart(s wire.Slot) time.Time
	IntervalStart(s wire.Slot, i wire.Interval) time.Time
	Ticks(ctx context.Context, f func(wire.Slot, wire.Interval))
}

// chainView is the head view.
type chainView interface {
	AttestationData(slot wire.Slot) wire.AttestationData
	IsAncestor(a, b wire.Root) bool
	Included(head wire.Root, data wire.DataRoot) wire.Participants
}

// aggregates gives the widest verified aggregate of the best attestation data
// for a block of the slot.
type aggregates interface {
	BestForBlock(slot wire.Slot) (*wire.SignedAggregate, bool)
}

// blockSigner holds proposal keys.
type blockSigner interface {
	SignBlock(ctx context.Context, v wire.ValidatorIndex, slot wire.Slot, root wire.Root) ([]byte, error)
	HasProposalKey(v wire.ValidatorIndex) bool
}

// deliverer gives a block to our own pipeline and waits for its verdict.
type deliverer interface {
	SubmitBlock(ctx context.Context, b *wire.SignedBlock) wire.Reason
}

// publisher sends a block to the network.
type publisher interface {
	PublishBlock(ctx context.Context, b *wire.SignedBlock) error
}

// Proposer does the block duties of local validators.
type Proposer struct {
	// immutable
	cfg        Config
	log        *slog.Logger
	metrics    *metrics
	clock      clock
	chain      chainView
	aggregates aggregates
	signer     blockSigner
	deliverer  deliverer
	publisher  publisher
}

// New returns a proposer.
func New(cfg Config, clock clock, chain chainView, aggs aggregates, signer blockSigner, deliver deliverer, pub publisher) (*Proposer, error) {
	switch {
	case cfg.Profile == nil:
		return nil, fmt.Errorf("proposer: no profile")
	case cfg.Validators < 1:
		return nil, fmt.Errorf("proposer: registry of %d validators", cfg.Validators)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}

	return &Proposer{
		cfg:        cfg,
		log:        cfg.Logger,
		metrics:    m,
		clock:      clock,
		chain:      chain,
		aggregates: aggs,
		signer:     signer,
		deliverer:  deliver,
		publisher:  pub,
	}, nil
}

// Run does the duties of the slots to come until ctx ends. It never fails.
func (p *Proposer) Run(ctx context.Context) error {
	p.clock.Ticks(ctx, func(slot wire.Slot, interval wire.Interval) {
		if interval == 0 && p.isOurs(slot) {
			p.duty(ctx, slot)
		}
	})

	return nil
}

// isOurs reports whether this node makes the block of the slot. Slot 0 is
// genesis.
func (p *Proposer) isOurs(slot wire.Slot) bool {
	return slot > 0 && p.signer.HasProposalKey(p.proposer(slot))
}

// proposer returns whose turn a slot is (leanSpec containers/identifiers.py).
func (p *Proposer) proposer(slot wire.Slot) wire.ValidatorIndex {
	return wire.ValidatorIndex(uint64(slot) % uint64(p.cfg.Validators))
}

// duty makes one block and logs its one line.
func (p *Proposer) duty(ctx context.Context, slot wire.Slot) {
	ctx, cancel := context.WithTimeout(ctx, p.clock.IntervalStart(slot, 2).Sub(p.clock.Now()))
	defer cancel()
	block, outcome, err := p.Propose(ctx, slot)
	into := p.clock.Now().Sub(p.clock.SlotStart(slot))
	p.metrics.outcomes.WithLabelValues(outcome.String()).Inc()
	args := []any{
		"slot", uint64(slot), "validator_index", uint64(p.proposer(slot)), "outcome", outcome.String(), "into_slot_ms", into.Milliseconds(),
	}
	if block != nil {
		participants := 0
		for i := range block.Block.Body.Attestations {
			participants += block.Block.Body.Attestations[i].Participants.Count()
		}
		args = append(args, "parent", block.Block.ParentRoot.Short(), "participants", participants)
	}
	if outcome != OutcomePublished {
		if err != nil {
			args = append(args, "error", err.Error())
		}
		p.log.Warn("block not published", args...)

		return
	}
	p.metrics.delay.Observe(into.Seconds())
	p.log.Info("block published", args...)
}
