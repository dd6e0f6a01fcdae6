package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"aggnode/chain"
	"aggnode/netconfig/devkeys"
	"aggnode/pipeline"
	"aggnode/pubkeycache"
	"aggnode/scheduler"
	"aggnode/signer"
	"aggnode/store"
	"aggnode/verify"
	"aggnode/wire"
	"aggnode/xmss"
)

// dutyNetwork is a network of the embedded keys, all of which vote here.
type dutyNetwork struct {
	profile    *wire.Profile
	scheme     xmss.Scheme
	validators []wire.Validator
	keys       []signer.Keys
}

func newDutyNetwork(cfg *DutyConfig) (*dutyNetwork, error) {
	profile, err := wire.LookupProfile("local", cfg.Scheme)
	if err != nil {
		return nil, err
	}
	n := &dutyNetwork{profile: profile}
	if n.scheme, err = xmss.SchemeByName(profile.Scheme); err != nil {
		return nil, err
	}
	attestation, proposal, err := devkeys.Load(profile.Scheme)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Validators {
		index := wire.ValidatorIndex(i)
		key, err := xmss.ParseSecretKey(attestation[i].File)
		if err != nil {
			return nil, fmt.Errorf("embedded key %d: %w", i, err)
		}
		n.keys = append(n.keys, signer.Keys{Index: index, Attestation: key})
		n.validators = append(n.validators, wire.Validator{
			Index: index, AttestationKey: attestation[i].PublicKey[:], ProposalKey: proposal[i].PublicKey[:],
		})
	}
	return n, nil
}

// run lives through the slots and returns what was seen of them, in order. Its signer, journal, pipeline and clock are those
// of a node; there are no blocks, so all votes are for genesis.
func (n *dutyNetwork) run(ctx context.Context, cfg *DutyConfig, dir string, sched *scheduler.Scheduler) (slots []dutySlot, err error) {
	first := cfg.firstSlot()
	genesis := time.Now().Add(-time.Duration(first-leadSlots) * cfg.SlotDuration)
	clock := chain.NewClock(genesis, cfg.SlotDuration, nil)
	journal, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	pipe, tree, err := n.pipeline(cfg, clock)
	if err != nil {
		return nil, err
	}
	seen := &dutyRecorder{
		clock: clock, profile: n.profile, marks: journal.Marks(), pipe: pipe,
		first: first, slots: make([]dutySlot, cfg.Slots),
	}
	pacer := sched.Pacer(pipe.VotesWait)
	s, err := signer.New(signer.Config{
		Validators: len(n.validators), Logger: cfg.Logger, Ordinarily: sched.Ordinarily,
		Pace: func(ctx context.Context, until time.Time) error { return pacer.Until(until).Pace(ctx) },
	}, n.keys, seen, clock, dutyChain{tree, clock, cfg.BlockAtTimer}, seen, seen)
	if err != nil {
		return nil, err
	}
	s.Warm(ctx)
	running, stop := context.WithCancel(ctx)
	var stages sync.WaitGroup
	var pipeErr error
	stages.Go(func() { pipeErr = pipe.Run(running) })
	stages.Go(func() { _ = s.Run(running) }) // never fails
	for quarter := 1; quarter <= 4 && err == nil; quarter++ {
		done := cfg.Slots * quarter / 4
		err = clock.WaitUntil(ctx, clock.SlotStart(first+wire.Slot(done)))
		say(cfg.Progress, "%d of %d slots", done, cfg.Slots)
	}
	stop()
	stages.Wait()
	return seen.slots, errors.Join(err, pipeErr)
}

// pipeline makes what checks our own votes.
func (n *dutyNetwork) pipeline(cfg *DutyConfig, clock *chain.Clock) (*pipeline.Pipeline, *chain.Tree, error) {
	registry, err := pubkeycache.NewRegistry(n.scheme, n.validators)
	if err != nil {
		return nil, nil, err
	}
	cache, err := pubkeycache.New(pubkeycache.Config{}, registry, nil)
	if err != nil {
		return nil, nil, err
	}
	verifier, err := verify.New(verify.Config{Profile: n.profile, NoProofs: true}, registry, cache, nil)
	if err != nil {
		return nil, nil, err
	}
	genesis := wire.Root{1} // of a block that nobody sees
	tree, err := chain.NewTree(chain.Config{Profile: n.profile, Validators: len(n.validators), GenesisRoot: genesis}, clock)
	if err != nil {
		return nil, nil, err
	}
	pipe, err := pipeline.New(pipeline.Config{
		Profile: n.profile, Validators: len(n.validators), Network: wire.DefaultNetwork,
		Committees: 1, Subnets: []wire.SubnetID{0}, SlotDuration: cfg.SlotDuration, Logger: cfg.Logger,
	}, clock, verifier, tree, sink{})
	return pipe, tree, err
}

// dutyChain says what to vote for. The slot's block, which changes nothing, is known at the slot's start or at the timer of the
// votes.
type dutyChain struct {
	*chain.Tree
	clock   *chain.Clock
	atTimer bool
}

func (c dutyChain) WaitBlock(ctx context.Context, slot wire.Slot) error {
	if !c.atTimer {
		return nil
	}
	return c.clock.WaitUntil(ctx, c.clock.IntervalStart(slot, 1))
}

// dutySlot is what was seen of one slot; times are from the duty's timer.
type dutySlot struct {
	begun     time.Duration // the signer asks for the positions: how late its timer was
	reserved  time.Duration // the positions are on disk
	signed    time.Duration // the last vote comes to the network
	published time.Duration // the last vote is encoded for it
	votes     int           // published
	verified  int           // taken by the pipeline
}

// dutyRecorder stands between the signer and its journal, network and pipeline. Safe for concurrent use.
type dutyRecorder struct {
	// immutable
	clock   *chain.Clock
	profile *wire.Profile
	marks   *store.Marks
	pipe    *pipeline.Pipeline
	first   wire.Slot

	mu    sync.Mutex
	slots []dutySlot // guarded by mu
}

// note changes what is known of a slot, if it is one that counts.
func (r *dutyRecorder) note(slot wire.Slot, change func(s *dutySlot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := int(slot) - int(r.first); i >= 0 && i < len(r.slots) {
		change(&r.slots[i])
	}
}

// since is the time since the duty's timer of a slot.
func (r *dutyRecorder) since(slot wire.Slot) time.Duration {
	return r.clock.Now().Sub(r.clock.IntervalStart(slot, 1))
}

// Reserve is the journal's.
func (r *dutyRecorder) Reserve(ctx context.Context, marks []store.Mark) []error {
	slot := wire.Slot(marks[0].Slot) // never empty: there are keys
	begun := r.since(slot)
	errs := r.marks.Reserve(ctx, marks)
	reserved := r.since(slot)
	r.note(slot, func(s *dutySlot) { s.begun, s.reserved = begun, reserved })
	return errs
}

// PublishAttestation does what the node does up to the library of the network: it encodes and compresses.
func (r *dutyRecorder) PublishAttestation(_ context.Context, a *wire.SignedAttestation) (peers int, err error) {
	signed := r.since(a.Data.Slot)
	ssz, err := r.profile.EncodeAttestation(a)
	if err != nil {
		return 0, err
	}
	wire.Compress(nil, ssz)
	published := r.since(a.Data.Slot)
	r.note(a.Data.Slot, func(s *dutySlot) {
		s.signed, s.published = max(s.signed, signed), max(s.published, published)
		s.votes++
	})
	return 0, nil
}

// SubmitAttestation is the pipeline's.
func (r *dutyRecorder) SubmitAttestation(ctx context.Context, a *wire.SignedAttestation) wire.Reason {
	reason := r.pipe.SubmitLocal(ctx, &pipeline.Item{Attestation: a}).Reason
	if reason == wire.ReasonNone {
		r.note(a.Data.Slot, func(s *dutySlot) { s.verified++ })
	}
	return reason
}
