package node

import (
	"context"

	"aggnode/api"
	"aggnode/chain"
	"aggnode/pipeline"
	"aggnode/wire"
)

// intake is the pipeline as p2p sees it, with a record of the aggregates that verified.
type intake struct {
	*pipeline.Pipeline
	log   *api.AggregateLog
	clock *chain.Clock
}

// Submit waits for the verdict and records an accepted aggregate.
func (i intake) Submit(ctx context.Context, item *pipeline.Item) pipeline.Outcome {
	out := i.Pipeline.Submit(ctx, item)
	if item.Aggregate != nil && out.Verdict == pipeline.Accept && out.Reason == wire.ReasonNone {
		now := i.clock.Now()
		i.log.Add(api.Aggregate{
			Slot: item.Slot, DataRoot: item.DataRoot, Participants: item.Aggregate.Participants, Proof: item.Aggregate.Proof,
			Source: api.SourceGossip, At: now.Sub(i.clock.SlotStart(item.Slot)), Check: now.Sub(item.Arrival),
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
	log   *api.AggregateLog
	clock *chain.Clock
}

// PublishAggregate publishes and records.
func (p recordedPublisher) PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (int, error) {
	peers, err := p.aggregatePublisher.PublishAggregate(ctx, a)
	if err == nil {
		p.log.Add(api.Aggregate{
			Slot: a.Data.Slot, DataRoot: a.Data.HashTreeRoot(), Participants: a.Participants, Proof: a.Proof,
			Source: api.SourceOwn, At: p.clock.Now().Sub(p.clock.SlotStart(a.Data.Slot)), Peers: peers,
		})
	}
	return peers, err
}
