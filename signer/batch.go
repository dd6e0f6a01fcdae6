package signer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"aggnode/store"
	"aggnode/wire"
)

// batch is the signing of one vote by many keys: emitting, signAll, finish, in that order and by one goroutine.
//
// A key's search for its randomizer takes nearly all of the time of a signature and gives nothing away, so it runs while the
// positions are being recorded. What makes a signature of it is kept until the disk has the position.
type batch struct {
	// immutable
	signer *Signer
	start  time.Time
	slot   wire.Slot
	epoch  wire.Epoch
	data   wire.AttestationData
	root   wire.DataRoot
	places []int        // in results, of those that are to be signed
	marks  []store.Mark // of the places
	early  *early       // searches of all voters that were begun before; nil for none

	results []Result // each written by the goroutine that settles its place

	mu         sync.Mutex
	isRecorded bool     // guarded by mu
	refusals   []error  // guarded by mu: what the journal said to each place; immutable once isRecorded
	found      []search // guarded by mu: finished, not yet settled

	// Both hold every vote of the batch, so they are never full.
	toPublish, toDeliver chan *wire.SignedAttestation
	emitters             sync.WaitGroup // those who empty them
}

// search is the outcome of a key's search.
type search struct {
	n      int // of the place
	reveal func() []byte
	err    error
	took   time.Duration
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
	epoch, ok := slot.Epoch()
	b.epoch = epoch
	for i, index := range indices {
		r := &b.results[i]
		r.Index = index
		v := s.byIndex[index]
		switch {
		case v.attestation == nil:
			r.Err = &Refused{RefusedUnknownValidator, index, slot, errors.New("no attestation key here")}
		case data.Slot != slot:
			r.Err = &Refused{RefusedData, index, slot, fmt.Errorf("attestation data is of slot %d", data.Slot)}
		case !ok:
			r.Err = &Refused{RefusedSlotRange, index, slot, errors.New("no key has a position above 2^32-1")}
		default:
			b.places = append(b.places, i)
			b.marks = append(b.marks, store.Mark{Key: v.attestation.PublicKey(), Slot: uint64(slot), Root: b.root})
		}
	}

	return b
}

// emitting starts the goroutines that publish and deliver what is signed. One does not wait for the other: neither a
// network that is stuck nor a pipeline that is full keeps a vote from the other place.
func (b *batch) emitting(ctx context.Context) {
	each := func(goroutines int, votes <-chan *wire.SignedAttestation, emit func(context.Context, *wire.SignedAttestation) error) {
		for range min(goroutines, len(b.places)) {
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

// signAll records the positions and signs, and returns after the last signature.
func (b *batch) signAll(ctx context.Context) {
	var recording sync.WaitGroup
	recording.Go(func() { b.record(ctx) })
	share(len(b.places), b.signer.cfg.Parallel, 1, func(n int) { b.search(ctx, n) })
	recording.Wait()
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

// record makes the positions of all keys durable and settles what was found meanwhile.
func (b *batch) record(ctx context.Context) {
	refusals := b.signer.marks.Reserve(ctx, b.marks)
	b.mu.Lock()
	b.isRecorded, b.refusals = true, refusals
	b.mu.Unlock()
	b.settle()
}

// search looks for the randomizer of a place, unless the place is known to be refused, and settles it if its position is on
// disk; else record does.
func (b *batch) search(ctx context.Context, n int) {
	found := search{n: n}
	if !b.isRefused(n) {
		v := b.results[b.places[n]].Index
		if b.early != nil {
			found = b.early.search(ctx, b.signer, v, b.epoch)
		} else {
			found = b.signer.searchTimed(ctx, b.signer.byIndex[v].attestation, b.epoch, b.root)
		}
		found.n = n
	}
	b.mu.Lock()
	b.found = append(b.found, found)
	isRecorded := b.isRecorded
	b.mu.Unlock()
	if isRecorded {
		b.settle()
	}
}

// isRefused reports whether the journal has said no to a place.
func (b *batch) isRefused(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.isRecorded && b.refusals[n] != nil
}

// settle ends what was found. The positions must have been recorded.
func (b *batch) settle() {
	b.mu.Lock()
	found := b.found
	b.found = nil
	b.mu.Unlock()
	for i := range found {
		b.sign(&found[i])
	}
}

// sign makes one vote of a search and passes it on.
func (b *batch) sign(found *search) {
	s := b.signer
	r := &b.results[b.places[found.n]]
	start := s.clock.Now()
	err := b.refusals[found.n]
	if err == nil {
		err = found.err
	}
	var sig []byte
	if err == nil {
		sig, err = s.revealSafely(found.reveal)
	}
	if err != nil {
		r.Err = refuse(r.Index, b.slot, err)

		return
	}
	now := s.clock.Now()
	s.metrics.signatures.Inc()
	s.metrics.signing.Observe((found.took + now.Sub(start)).Seconds())
	s.metrics.production.Observe(now.Sub(b.start).Seconds())
	r.Attestation = &wire.SignedAttestation{ValidatorIndex: r.Index, Data: b.data, Signature: sig}
	b.toDeliver <- r.Attestation
	b.toPublish <- r.Attestation
	// Every processor may be signing, and the runtime takes one away after 10 ms only: give the vote its turn now.
	runtime.Gosched()
}
