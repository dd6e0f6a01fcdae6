package pipeline

import "aggnode/wire"

// Bounds of the queues (ARCHITECTURE.md, Queues).
const (
	// blockBound is the number of queued blocks: one a slot is normal, and a
	// check takes well under a millisecond. Guess, not measured.
	blockBound = 16

	// minAttestationBound and maxAttestationBound clamp two slots of all that
	// honest peers can send on the subscribed subnets. At 0.1 ms a check the
	// larger one is 0.8 s of one worker.
	minAttestationBound = 256
	maxAttestationBound = 8192

	// aggregateBound and aggregateBytes bound queued aggregates: 64 at the worst
	// measured 160 ms on one worker is 10 s, beyond any use.
	aggregateBound = 64
	aggregateBytes = 32 << 20

	// aggregatesPerPeer is what one peer may have queued while all workers are
	// busy.
	aggregatesPerPeer = 4

	// minParkedAttestations keeps the park useful on networks of a few validators.
	minParkedAttestations = 16
	// maxParkedHeads is the number of unknown blocks that votes may wait for.
	maxParkedHeads = 32

	// Parked aggregates are not verified, so they get little room.
	parkedAggregateBound    = 16
	parkedAggregateBytes    = 8 << 20
	parkedAggregatesPerPeer = 2

	// Our own products. The signer signs with as many goroutines as there are
	// processors and each waits for its vote, the session has one proof at a
	// time and the proposer one block a slot.
	localAttestationBound = 64
	localAggregateBound   = 16
	localBlockBound       = 4

	// maxBatch is the number of votes over the same data that a worker takes at
	// once: the lanes of the widest hash implementation.
	maxBatch = 16

	// waitingPerExtra is how many aggregates wait for each that a worker takes
	// beside the first. Eight at once take 7 times as long as one (leanproof, Intel
	// Xeon with AVX-512, 2026-12): with four waiting for each, what the first waits
	// longer is at most a fifth of what the last one waits anyway.
	waitingPerExtra = 4
)

// Limits are the bounds of a pipeline, for those who must not be narrower
// (invariant 2). All but Workers count items.
type Limits struct {
	Workers int
	// Blocks, Attestations and Aggregates are the class bounds.
	Blocks, Attestations, Aggregates int
	// ParkedBlocks is 0: blocks without a parent wait in chain, and Submit does
	// not wait for them.
	ParkedBlocks int
	// ParkedAttestations and ParkedAggregates wait for a head beyond the class
	// bounds.
	ParkedAttestations, ParkedAggregates int
}

// limitsFor returns the bounds for a registry of validators in committees, of
// which subnets are subscribed.
func limitsFor(validators int, committees uint64, subnets, workers int) Limits {
	perSubnet := (uint64(validators) + committees - 1) / committees // at most Profile.RegistryLimit
	twoSlots := 2 * int(perSubnet) * subnets

	return Limits{
		Workers:            workers,
		Blocks:             blockBound,
		Attestations:       min(max(twoSlots, minAttestationBound), maxAttestationBound),
		Aggregates:         aggregateBound,
		ParkedAttestations: min(max(twoSlots, minParkedAttestations), maxAttestationBound),
		ParkedAggregates:   parkedAggregateBound,
	}
}

// capacity returns the bound of a class.
func (l Limits) capacity(c Class) int {
	switch c {
	case ClassUnknown:
		return 0
	case ClassBlock:
		return l.Blocks
	case ClassAttestation:
		return l.Attestations
	case ClassAggregate:
		return l.Aggregates
	case ClassLocal:
		return localAttestationBound + localAggregateBound + localBlockBound
	}

	return 0
}

// Window of slots. A vote or an aggregate is admitted from one interval before
// its slot starts (leanSpec fork_choice.py, GOSSIP_DISPARITY_INTERVALS) until
// this many slots after its slot started.
const (
	attestationSlots wire.Slot = 2
	aggregateSlots   wire.Slot = 3
	blockSlots       wire.Slot = 2
)
