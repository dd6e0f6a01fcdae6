package signer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"aggnode/store"
	"aggnode/wire"
	"aggnode/xmss"
)

const (
	// publishers is how many goroutines hand finished votes to the network: one that is held up there costs no other vote.
	publishers = 4
	// deliverers is how many finished votes wait for the verdict of our own pipeline at once: as many as a worker there checks
	// in one batch, and a quarter of what its queue of our own products holds.
	deliverers = 16
)

// Result is what became of one key's vote: the vote, or why there is none.
type Result struct {
	Index       wire.ValidatorIndex
	Attestation *wire.SignedAttestation
	Err         error // *Refused
}

// SignVotes signs the data with the attestation keys of the indices, or of all
// local validators in ascending order when none is given. It returns the results
// in that order once all are done; each vote was published and delivered when it
// was signed. An index without a key here has its error in its place. What is
// not signed when ctx ends is refused; its position stays reserved for this root.
func (s *Signer) SignVotes(ctx context.Context, slot wire.Slot, data wire.AttestationData, indices ...wire.ValidatorIndex) []Result {
	if len(indices) == 0 {
		indices = s.voters()
	}
	b := s.newBatch(slot, data, indices)
	b.reserve(ctx)
	b.emitting(ctx)
	b.signAll(ctx)

	return b.finish()
}

// voters are the validators with an attestation key here, ascending.
func (s *Signer) voters() (indices []wire.ValidatorIndex) {
	for i := range s.validators {
		if s.validators[i].attestation != nil {
			indices = append(indices, s.validators[i].index)
		}
	}

	return indices
}

// batch is the signing of one vote by many keys: reserve, emitting, signAll, finish, in that order and by one goroutine.
type batch struct {
	// immutable
	signer *Signer
	start  time.Time
	slot   wire.Slot
	epoch  wire.Epoch
	data   wire.AttestationData
	root   wire.DataRoot

	results []Result // each written by the goroutine that took its place
	ready   []int    // places that are to be signed; immutable after reserve

	// Both hold every vote of the batch, so they are never full.
	toPublish, toDeliver chan *wire.SignedAttestation
	emitters             sync.WaitGroup // those who empty them
}

func (s *Signer) newBatch(slot wire.Slot, data wire.AttestationData, indices []wire.ValidatorIndex) *batch {
	b := &batch{
		signer:    s,
		start:     s.clock.Now(),
		slot:      slot,
		data:      data,
		root:      data.HashTreeRoot(),
		results:   make([]Result, len(indices)),
		toPublish: make(chan *wire.SignedAttestation, len(indices)),
		toDeliver: make(chan *wire.SignedAttestation, len(indices)),
	}
	for i, index := range indices {
		b.results[i].Index = index
	}

	return b
}

// reserve makes the positions of all keys durable and decides who signs.
func (b *batch) reserve(ctx context.Context) {
	epoch, ok := b.slot.Epoch()
	b.epoch = epoch
	var places []int
	var marks []store.Mark
	for i := range b.results {
		r := &b.results[i]
		v := b.signer.byIndex[r.Index]
		switch {
		case v.attestation == nil:
			r.Err = &Refused{RefusedUnknownValidator, r.Index, b.slot, errors.New("no attestation key here")}
		case b.data.Slot != b.slot:
			r.Err = &Refused{RefusedData, r.Index, b.slot, fmt.Errorf("attestation data is of slot %d", b.data.Slot)}
		case !ok:
			r.Err = &Refused{RefusedSlotRange, r.Index, b.slot, errors.New("no key has a position above 2^32-1")}
		default:
			places = append(places, i)
			marks = append(marks, store.Mark{Key: v.attestation.PublicKey(), Slot: uint64(b.slot), Root: b.root})
		}
	}
	for j, err := range b.signer.marks.Reserve(ctx, marks) {
		i := places[j]
		if err != nil {
			b.results[i].Err = refuse(b.results[i].Index, b.slot, err)

			continue
		}
		b.ready = append(b.ready, i)
	}
}

// emitting starts the goroutines that publish and deliver what is signed. One does not wait for the other: neither a
// network that is stuck nor a pipeline that is full keeps a vote from the other place.
func (b *batch) emitting(ctx context.Context) {
	each := func(goroutines int, votes <-chan *wire.SignedAttestation, emit func(context.Context, *wire.SignedAttestation) error) {
		for range min(goroutines, len(b.ready)) {
			b.emitters.Go(func() {
				for vote := range votes {
					b.signer.warnEmit(vote, emit(ctx, vote))
				}
			})
		}
	}
	each(publishers, b.toPublish, b.signer.publish)
	each(deliverers, b.toDeliver, b.signer.deliver)
}

// signAll signs what is ready and returns after the last signature.
func (b *batch) signAll(ctx context.Context) {
	share(len(b.ready), b.signer.cfg.Parallel, 1, func(n int) { b.sign(ctx, &b.results[b.ready[n]]) })
	close(b.toPublish)
	close(b.toDeliver)
}

// finish waits until everything is published and delivered, and counts what was refused.
func (b *batch) finish() []Result {
	b.emitters.Wait()
	for i := range b.results {
		if err := b.results[i].Err; err != nil {
			b.signer.metrics.refuse(roleAttestation, err)
		}
	}

	return b.results
}

// sign makes one vote and passes it on.
func (b *batch) sign(ctx context.Context, r *Result) {
	s := b.signer
	start := s.clock.Now()
	sig, err := s.signSafely(ctx, s.byIndex[r.Index].attestation, b.epoch, b.root)
	if err != nil {
		r.Err = refuse(r.Index, b.slot, err)

		return
	}
	now := s.clock.Now()
	s.metrics.signatures.Inc()
	s.metrics.signing.Observe(now.Sub(start).Seconds())
	s.metrics.production.Observe(now.Sub(b.start).Seconds())
	r.Attestation = &wire.SignedAttestation{ValidatorIndex: r.Index, Data: b.data, Signature: sig}
	b.toDeliver <- r.Attestation
	b.toPublish <- r.Attestation
	// Every processor may be signing, and the runtime takes one away after 10 ms only: give the vote its turn now.
	runtime.Gosched()
}

// errKey marks an error that came out of a key.
var errKey = errors.New("key")

// signSafely signs and turns a panic into an error.
func (s *Signer) signSafely(ctx context.Context, key secretKey, epoch wire.Epoch, root [xmss.MessageSize]byte) (sig []byte, err error) {
	defer s.recovered(&err)
	sig, err = key.Sign(ctx, uint32(epoch), root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errKey, err)
	}

	return sig, nil
}

// recovered is deferred around work that must not take other keys with it.
func (s *Signer) recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	*err = fmt.Errorf("%w: panic: %v", errKey, p)
	if s.stackWarn.allow(s.clock.Now()) {
		s.log.Error("panic in a signing duty", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// warnEmit logs, at most once a minute, that a vote did not get where it should.
func (s *Signer) warnEmit(vote *wire.SignedAttestation, err error) {
	if err != nil && s.emitWarn.allow(s.clock.Now()) {
		s.log.Warn("vote not sent or not taken by this node", "slot", uint64(vote.Data.Slot),
			"validator_index", uint64(vote.ValidatorIndex), "error", err.Error())
	}
}

func (s *Signer) publish(ctx context.Context, vote *wire.SignedAttestation) (err error) {
	defer s.countFailure(stagePublish, &err)
	defer s.recovered(&err)
	if _, err = s.publisher.PublishAttestation(ctx, vote); err != nil {
		return err
	}
	s.metrics.published.Observe(s.clock.Now().Sub(s.clock.IntervalStart(vote.Data.Slot, 1)).Seconds())

	return nil
}

func (s *Signer) deliver(ctx context.Context, vote *wire.SignedAttestation) (err error) {
	defer s.countFailure(stageDeliver, &err)
	defer s.recovered(&err)
	r := s.deliverer.SubmitAttestation(ctx, vote)
	if r == wire.ReasonNone || r == wire.ReasonDuplicate { // a peer may have sent it back before
		return nil
	}

	return fmt.Errorf("own pipeline: %s", r)
}

// countFailure is deferred around a stage after signing.
func (s *Signer) countFailure(stage string, err *error) {
	if *err != nil {
		s.metrics.emitFailed.WithLabelValues(stage).Inc()
	}
}
