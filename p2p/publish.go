package p2p

import (
	"context"
	"fmt"
	"time"

	"aggnode/pipeline"
	"aggnode/wire"
)

// republishQueue bounds the parked votes that wait to be forwarded: one vote of
// each of 1,024 validators of a subnet whose head came at last.
const republishQueue = 1024

// publishResult is how a publication ended.
type publishResult uint8

const (
	publishUnknown publishResult = iota
	publishSent                  // handed to at least one peer's queue
	publishNoPeers               // nobody to send it to; kept for those who ask
	publishError                 // not running, or stopping
)

// String returns the label value.
func (r publishResult) String() string {
	switch r {
	case publishUnknown:
		return "unknown"
	case publishSent:
		return "sent"
	case publishNoPeers:
		return "no_peers"
	case publishError:
		return "error"
	}

	return "invalid"
}

// PublishAttestation publishes a vote on the topic of its validator's subnet,
// whether or not that is subscribed. It returns the number of peers that it went
// to; none is a counted event and no error. It waits for the gossip event loop,
// well under a millisecond unless that is overloaded.
func (h *Host) PublishAttestation(ctx context.Context, a *wire.SignedAttestation) (peers int, err error) {
	topic := wire.Topic{Kind: wire.TopicAttestation, Subnet: wire.SubnetOf(a.ValidatorIndex, h.cfg.Committees)}
	ssz, err := h.cfg.Profile.EncodeAttestation(a)
	if err != nil {
		return 0, fmt.Errorf("encode attestation: %w", err)
	}

	return h.publish(ctx, topic, ssz)
}

// PublishAggregate publishes an aggregate; see PublishAttestation.
func (h *Host) PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (peers int, err error) {
	ssz, err := h.cfg.Profile.EncodeAggregate(a)
	if err != nil {
		return 0, fmt.Errorf("encode aggregate: %w", err)
	}

	return h.publish(ctx, wire.Topic{Kind: wire.TopicAggregation}, ssz)
}

// PublishBlock publishes a block; see PublishAttestation.
func (h *Host) PublishBlock(ctx context.Context, b *wire.SignedBlock) error {
	ssz, err := h.cfg.Profile.EncodeBlock(b)
	if err != nil {
		return fmt.Errorf("encode block: %w", err)
	}
	_, err = h.publish(ctx, wire.Topic{Kind: wire.TopicBlock}, ssz)

	return err
}

// publish sends a payload to the peers of a topic.
func (h *Host) publish(ctx context.Context, topic wire.Topic, ssz []byte) (peers int, err error) {
	kind := topic.Kind.String()
	s := h.session.Load()
	if s == nil {
		h.metrics.publishes.WithLabelValues(kind, publishError.String()).Inc()

		return 0, ErrNotRunning
	}
	name := topic.Name(h.cfg.Network)
	handle := s.topics[name]
	if handle == nil {
		h.metrics.publishes.WithLabelValues(kind, publishError.String()).Inc()

		return 0, fmt.Errorf("publish on %s: the network has no such topic", name)
	}
	peers = h.reach(s, name)
	if err := handle.Publish(ctx, wire.Compress(nil, ssz)); err != nil {
		h.metrics.publishes.WithLabelValues(kind, publishError.String()).Inc()

		return 0, fmt.Errorf("publish on %s: %w", name, err)
	}
	if peers == 0 {
		h.metrics.publishes.WithLabelValues(kind, publishNoPeers.String()).Inc()
		h.log.Debug("published to nobody", "topic", name)
	} else {
		h.metrics.publishes.WithLabelValues(kind, publishSent.String()).Inc()
	}

	return peers, nil
}

// reach returns the number of peers that a publication goes to: the mesh of a
// subscribed topic, a fanout of at most D of its subscribers otherwise.
func (h *Host) reach(s *session, name string) int {
	if h.topics.byName[name].isSubscribed {
		return s.tracer.meshSize(name)
	}

	return min(len(s.pubsub.ListPeers(name)), gossipParams().D)
}

// Republish forwards an item whose gossip verdict was an ignore because its head
// was unknown, and whose head has come: a hole in the mesh is closed. pubsub
// validates bytes that were seen but never delivered once more when they are
// published here, and sends them under the same id. It never waits; with the
// queue full the item stays unforwarded, and is counted as a failed publication.
func (h *Host) Republish(item *pipeline.Item) {
	select {
	case h.parked <- item:
	default:
		h.metrics.publishes.WithLabelValues(itemTopic(item).Kind.String(), publishError.String()).Inc()
	}
}

// publishParked forwards what Republish queued.
func (h *Host) publishParked(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case item := <-h.parked:
			topic := itemTopic(item)
			if topic.Kind == wire.TopicUnknown || item.Payload == nil {
				continue // nothing that came by gossip
			}
			_, err := h.publish(ctx, topic, item.Payload)
			if err != nil && h.logLimit.allow("republish", time.Now(), h.cfg.SlotDuration) {
				h.log.Warn("forward a parked item", "error", err)
			}
		}
	}
}

// itemTopic returns the topic that an item came by.
func itemTopic(item *pipeline.Item) wire.Topic {
	switch {
	case item.Attestation != nil:
		return wire.Topic{Kind: wire.TopicAttestation, Subnet: item.Subnet}
	case item.Aggregate != nil:
		return wire.Topic{Kind: wire.TopicAggregation}
	case item.Block != nil:
		return wire.Topic{Kind: wire.TopicBlock}
	}

	return wire.Topic{}
}
