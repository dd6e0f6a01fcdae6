package signer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

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

// errKey marks an error that came out of a key.
var errKey = errors.New("key")

// signSafely signs and turns a panic into an error.
func (s *Signer) signSafely(ctx context.Context, key secretKey, epoch wire.Epoch, root [xmss.MessageSize]byte) ([]byte, error) {
	reveal, err := s.searchSafely(ctx, key, epoch, root)
	if err != nil {
		return nil, err
	}

	return s.revealSafely(reveal)
}

// searchSafely does the long part of a signature and turns a panic into an error.
func (s *Signer) searchSafely(ctx context.Context, key secretKey, epoch wire.Epoch, root [xmss.MessageSize]byte) (reveal func() []byte, err error) {
	defer s.recovered(&err)
	s.cfg.Ordinarily(func() { reveal, err = key.Search(ctx, uint32(epoch), root) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errKey, err)
	}

	return reveal, nil
}

// revealSafely does the rest and turns a panic into an error.
func (s *Signer) revealSafely(reveal func() []byte) (sig []byte, err error) {
	defer s.recovered(&err)

	return reveal(), nil
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
