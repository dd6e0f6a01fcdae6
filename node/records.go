package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"aggnode/pipeline"
	"aggnode/wire"
)

const (
	// keptRecords bounds the record of aggregates: 32 subnets of 16 slots.
	keptRecords = 512

	// keptProofBytes bounds the proofs that are kept for download, newest first: some 40 of lean-pq.
	keptProofBytes = 8 << 20
)

// Record is one aggregate that this node verified or published. Immutable.
type Record struct {
	ID           uint64 // ascending from 1
	Slot         wire.Slot
	DataRoot     wire.DataRoot
	Participants wire.Participants
	Own          bool
	Arrival      time.Time // of the bytes; when our own proof was ready
	Verified     time.Time // verdict
	Published    time.Time // own ones, zero otherwise
	Peers        int       // own ones: how many it was sent to
	ProofBytes   int
	Proof        []byte // nil once the bytes were let go
}

// records keeps the newest aggregates for the API. Safe for concurrent use.
type records struct {
	mu         sync.Mutex
	last       uint64   // guarded by mu
	list       []Record // guarded by mu; ascending id
	proofBytes int      // guarded by mu
}

func (r *records) add(rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	rec.ID, rec.ProofBytes = r.last, len(rec.Proof)
	r.list = append(r.list, rec)
	r.proofBytes += len(rec.Proof)
	if len(r.list) > keptRecords {
		r.proofBytes -= len(r.list[0].Proof)
		r.list = slices.Delete(r.list, 0, 1)
	}
	for i := 0; r.proofBytes > keptProofBytes && i < len(r.list); i++ {
		r.proofBytes -= len(r.list[i].Proof)
		r.list[i].Proof = nil
	}
}

// after returns the records with a larger id, oldest first.
func (r *records) after(id uint64) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.list, id+1, func(rec Record, want uint64) int {
		switch {
		case rec.ID < want:
			return -1
		case rec.ID > want:
			return 1
		}
		return 0
	})
	return slices.Clone(r.list[i:])
}

// intake is the pipeline as p2p sees it, with a record of what verified.
type intake struct {
	*pipeline.Pipeline
	records *records
	clock   interface{ Now() time.Time }
}

// Submit waits for the verdict and records an accepted aggregate.
func (i intake) Submit(ctx context.Context, item *pipeline.Item) pipeline.Outcome {
	out := i.Pipeline.Submit(ctx, item)
	if item.Aggregate != nil && out.Verdict == pipeline.Accept {
		i.records.add(Record{
			Slot: item.Slot, DataRoot: item.DataRoot, Participants: item.Aggregate.Participants,
			Arrival: item.Arrival, Verified: i.clock.Now(), Proof: item.Aggregate.Proof,
		})
	}
	return out
}

// aggregatePublisher publishes an aggregate and returns the number of peers it went to.
type aggregatePublisher interface {
	PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (peers int, err error)
}

// recordedPublisher is the way of our own aggregates to the network, with a record of what was published.
type recordedPublisher struct {
	aggregatePublisher
	records *records
	clock   interface{ Now() time.Time }
}

// PublishAggregate publishes and records.
func (p recordedPublisher) PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (int, error) {
	ready := p.clock.Now()
	peers, err := p.aggregatePublisher.PublishAggregate(ctx, a)
	if err == nil {
		p.records.add(Record{
			Slot: a.Data.Slot, DataRoot: a.Data.HashTreeRoot(), Participants: a.Participants, Own: true,
			Arrival: ready, Verified: ready, Published: p.clock.Now(), Peers: peers, Proof: a.Proof,
		})
	}
	return peers, err
}
