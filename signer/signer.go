package signer

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/store"
	"aggnode/wire"
	"aggnode/xmss"
)

// lastInterval is the first interval in which a vote is not made any more: an
// aggregate of it could not reach the next proposer before interval 4.
const lastInterval = 3

// Config configures a [Signer].
type Config struct {
	// Validators is the size of the registry, which tells who proposes.
	Validators int
	// Parallel is how many goroutines sign; 0 means GOMAXPROCS.
	Parallel int
	// Pace is called before each subtree that is prepared in the background. It
	// blocks while votes wait to be checked, no longer than until; its error is
	// that of ctx. Nil never blocks.
	Pace func(ctx context.Context, until time.Time) error
	// Ordinarily runs what computes for milliseconds, a search or the preparation of
	// a key, on the calling goroutine, and returns when it has ended: not at the
	// priority that the node has for gossip, or its own disk and timers would wait.
	// Nil calls it and no more.
	Ordinarily func(work func())
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Keys are the keys of one validator; a nil key means that its duties are done
// elsewhere.
type Keys struct {
	Index       wire.ValidatorIndex
	Attestation *xmss.SecretKey
	Proposal    *xmss.SecretKey
}

// marks reserves one-time positions durably.
type marks interface {
	Reserve(ctx context.Context, marks []store.Mark) []error
}

// clock is the slot clock.
type clock interface {
	Now() time.Time
	At() (wire.Slot, wire.Interval)
	SlotStart(s wire.Slot) time.Time
	IntervalStart(s wire.Slot, i wire.Interval) time.Time
	WaitUntil(ctx context.Context, t time.Time) error
}

// dataSource says what to vote for.
type dataSource interface {
	AttestationData(slot wire.Slot) wire.AttestationData
	// WaitBlock returns once a block of the slot is known, or when ctx ends.
	WaitBlock(ctx context.Context, slot wire.Slot) error
}

// publisher sends a vote to the network.
type publisher interface {
	PublishAttestation(ctx context.Context, a *wire.SignedAttestation) (peers int, err error)
}

// deliverer gives a vote to our own pipeline and waits for its verdict.
type deliverer interface {
	SubmitAttestation(ctx context.Context, a *wire.SignedAttestation) wire.Reason
}

// secretKey is what the duties need of an xmss.SecretKey.
type secretKey interface {
	PublicKey() xmss.PublicKey
	Prepare(ctx context.Context, epoch uint32) error
	Begin(ctx context.Context, epoch uint32, trials int) error
	Search(ctx context.Context, epoch uint32, message [xmss.MessageSize]byte) (reveal func() []byte, err error)
}

// validator is one validator with keys here. Immutable.
type validator struct {
	index       wire.ValidatorIndex
	attestation secretKey // nil: none
	proposal    secretKey // nil: none
}

// Signer does the duties of local validators. Safe for concurrent use.
type Signer struct {
	// immutable
	cfg        Config
	log        *slog.Logger
	metrics    *metrics
	validators []validator                       // ascending by index
	byIndex    map[wire.ValidatorIndex]validator // the same
	marks      marks
	clock      clock
	data       dataSource
	publisher  publisher
	deliverer  deliverer

	warming    atomic.Bool    // a background preparation runs
	background sync.WaitGroup // it, and early searches; waited for by Run
	early      earlyState     // searches that wait for their duty
	stackWarn  limiter
	emitWarn   limiter
	warmWarn   limiter
}

// New returns a signer of the keys, which may be none. It refuses an index or a
// public key that is there twice, naming both places.
func New(cfg Config, keys []Keys, marks marks, clock clock, data dataSource, pub publisher, deliver deliverer) (*Signer, error) {
	validators := make([]validator, len(keys))
	for i, k := range keys {
		validators[i].index = k.Index
		if k.Attestation != nil {
			validators[i].attestation = k.Attestation
		}
		if k.Proposal != nil {
			validators[i].proposal = k.Proposal
		}
	}

	return newSigner(cfg, validators, marks, clock, data, pub, deliver)
}

// newSigner is New over any kind of key.
func newSigner(cfg Config, validators []validator, marks marks, clock clock, data dataSource, pub publisher, deliver deliverer) (*Signer, error) {
	if cfg.Validators < 1 {
		return nil, fmt.Errorf("signer: registry of %d validators", cfg.Validators)
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = runtime.GOMAXPROCS(0)
	}
	if cfg.Ordinarily == nil {
		cfg.Ordinarily = func(work func()) { work() }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	validators = slices.Clone(validators)
	slices.SortFunc(validators, func(a, b validator) int { return int(int64(a.index) - int64(b.index)) })
	byIndex, err := checkValidators(cfg, validators)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	m.validators.Set(float64(len(validators)))

	return &Signer{
		cfg:        cfg,
		log:        cfg.Logger,
		metrics:    m,
		validators: validators,
		byIndex:    byIndex,
		marks:      marks,
		clock:      clock,
		data:       data,
		publisher:  pub,
		deliverer:  deliver,
	}, nil
}

// checkValidators indexes the validators and refuses what is there twice.
func checkValidators(cfg Config, validators []validator) (map[wire.ValidatorIndex]validator, error) {
	byIndex := make(map[wire.ValidatorIndex]validator, len(validators))
	owners := make(map[xmss.PublicKey]string)
	for _, v := range validators {
		if v.index >= wire.ValidatorIndex(cfg.Validators) {
			return nil, fmt.Errorf("signer: validator %d is not in the registry of %d", v.index, cfg.Validators)
		}
		if _, twice := byIndex[v.index]; twice {
			return nil, fmt.Errorf("signer: keys of validator %d are given twice", v.index)
		}
		byIndex[v.index] = v
		for _, role := range []role{roleAttestation, roleProposal} {
			key := v.key(role)
			if key == nil {
				continue
			}
			owner := fmt.Sprintf("%s key of validator %d", role, v.index)
			if other, twice := owners[key.PublicKey()]; twice {
				return nil, fmt.Errorf("signer: %s and %s are the same key", other, owner)
			}
			owners[key.PublicKey()] = owner
		}
	}

	return byIndex, nil
}

// key returns the key of the role, nil when there is none.
func (v *validator) key(r role) secretKey {
	switch r {
	case roleAttestation:
		return v.attestation
	case roleProposal:
		return v.proposal
	case roleUnknown:
	}

	return nil
}

// HasProposalKey reports whether this node signs the blocks of v.
func (s *Signer) HasProposalKey(v wire.ValidatorIndex) bool { return s.byIndex[v].proposal != nil }

// Run does the duty of each slot, and prepares keys beside that: those of the first duty that is still ahead at the start,
// where [Signer.Warm] left any, and those of the next slot after each duty. It blocks until ctx ends and all its work has
// stopped, and never fails.
func (s *Signer) Run(ctx context.Context) error {
	defer s.background.Wait()
	if len(s.validators) == 0 {
		<-ctx.Done()

		return nil
	}
	next := s.firstDuty()
	s.warmFirst(ctx, next)
	for {
		timer, slot := s.clock.IntervalStart(next, 1), next
		if s.clock.Now().Before(timer) {
			s.background.Go(func() { s.searchEarly(ctx, slot) })
		}
		if s.clock.WaitUntil(ctx, timer) != nil {
			return nil
		}
		if late := s.clock.Now().Sub(s.clock.IntervalStart(next, lastInterval)); late >= 0 {
			missed := next
			next = max(next+1, s.firstDuty())
			s.metrics.missed.Add(float64(next - missed))
			s.log.Warn("votes missed: the node was not on time", "slot", uint64(missed), "slots", uint64(next-missed))

			continue
		}
		s.duty(ctx, next)
		next++
	}
}

// firstDuty returns the first slot whose duty is not over: this one up to and
// including interval 1, else the next.
func (s *Signer) firstDuty() wire.Slot {
	slot, interval := s.clock.At()
	if interval > 1 {
		slot++
	}

	return slot
}

// duty votes with all keys in one slot and starts the preparation for the next.
func (s *Signer) duty(ctx context.Context, slot wire.Slot) {
	dutyCtx, cancel := s.withDeadline(ctx, s.clock.SlotStart(slot+1))
	defer cancel()
	start := s.clock.IntervalStart(slot, 1)
	half := s.clock.IntervalStart(slot, 2).Sub(start) / 2
	blockCtx, cancelBlock := s.withDeadline(dutyCtx, start.Add(half))
	noBlock := s.data.WaitBlock(blockCtx, slot) != nil
	cancelBlock()
	if ctx.Err() != nil {
		return
	}
	if noBlock {
		s.metrics.noBlock.Inc()
	}
	data := s.data.AttestationData(slot)
	b := s.newBatch(slot, data, s.voters())
	b.early = s.takeEarly(slot, b.root)
	b.emitting(dutyCtx)
	b.signAll(dutyCtx)
	s.warmNext(ctx, slot+1)
	s.logVotes(slot, &data, b.finish(), noBlock, s.clock.Now().Sub(s.clock.SlotStart(slot)))
}

// withDeadline ends ctx at a time of the slot clock.
func (s *Signer) withDeadline(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, t.Sub(s.clock.Now()))
}

// logVotes logs the one line of a slot.
func (s *Signer) logVotes(slot wire.Slot, data *wire.AttestationData, results []Result, noBlock bool, took time.Duration) {
	var first error
	refused := 0
	for i := range results {
		if results[i].Err != nil {
			refused++
			if first == nil {
				first = results[i].Err
			}
		}
	}
	args := []any{
		"slot", uint64(slot), "votes", len(results) - refused, "head_slot", uint64(data.Head.Slot),
		"block", !noBlock, "into_slot_ms", took.Milliseconds(),
	}
	if refused > 0 {
		s.log.Warn("votes refused", append(args, "refused", refused, "first", first.Error())...)

		return
	}
	s.log.Info("votes signed", args...)
}
