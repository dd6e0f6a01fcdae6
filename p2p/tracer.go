package p2p

import (
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// tracer listens to pubsub, which calls it synchronously, most of it on the
// event loop. What happens per message or frame touches atomics alone; the mutex
// is taken when a peer enters or leaves a mesh, a few times a heartbeat, and by
// readers for the time of a copy.
type tracer struct {
	metrics *metrics

	// drops counts frames lost on the way to a peer since the last judgement:
	// peer.ID -> *atomic.Uint32.
	drops sync.Map
	// breaches takes peers that sent what StrictNoSign forbids. Bound 64, full:
	// the breach is lost, the counter of refused messages still has it.
	breaches chan peer.ID

	mu sync.Mutex
	// mesh holds the topics in whose mesh a peer is. guarded by mu
	mesh map[peer.ID]map[string]struct{}
	// size is the number of peers in a topic's mesh. guarded by mu
	size map[string]int
}

var _ pubsub.RawTracer = (*tracer)(nil)

func newTracer(m *metrics) *tracer {
	return &tracer{
		metrics:  m,
		breaches: make(chan peer.ID, 64),
		mesh:     make(map[peer.ID]map[string]struct{}),
		size:     make(map[string]int),
	}
}

// meshSize returns the number of peers in the mesh of a topic.
func (t *tracer) meshSize(topic string) int {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.size[topic]
}

// meshTopics returns the number of our meshes that each peer is in; peers that
// are in none are absent.
func (t *tracer) meshTopics() map[peer.ID]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[peer.ID]int, len(t.mesh))
	for p, topics := range t.mesh {
		out[p] = len(topics)
	}

	return out
}

// takeDrops returns the frames lost on the way to the peer since the last call.
func (t *tracer) takeDrops(p peer.ID) uint32 {
	v, ok := t.drops.Load(p)
	if !ok {
		return 0
	}
	n, _ := v.(*atomic.Uint32)

	return n.Swap(0)
}

// OnNewOutboundStream prepares the drop count, so that counting allocates
// nothing.
func (t *tracer) OnNewOutboundStream(p peer.ID, _ protocol.ID) {
	t.drops.LoadOrStore(p, new(atomic.Uint32))
}

// OnClosedOutboundStream forgets a peer: the library leaves its meshes without
// a Prune.
func (t *tracer) OnClosedOutboundStream(p peer.ID) { t.forget(p) }

func (t *tracer) forget(p peer.ID) {
	t.drops.Delete(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic := range t.mesh[p] {
		t.size[topic]--
	}
	delete(t.mesh, p)
}

// Join does nothing: the topics are ours and known.
func (t *tracer) Join(string) {}

// Leave does nothing: each peer of the mesh is pruned besides.
func (t *tracer) Leave(string) {}

// Graft counts a peer that entered a mesh.
func (t *tracer) Graft(p peer.ID, topic string) {
	t.metrics.grafts.Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	topics := t.mesh[p]
	if topics == nil {
		topics = make(map[string]struct{})
		t.mesh[p] = topics
	}
	if _, ok := topics[topic]; !ok {
		topics[topic] = struct{}{}
		t.size[topic]++
	}
}

// Prune counts a peer that left a mesh.
func (t *tracer) Prune(p peer.ID, topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	topics := t.mesh[p]
	if _, ok := topics[topic]; !ok {
		return // the library also tells of peers that were in no mesh
	}
	t.metrics.prunes.Inc()
	delete(topics, topic)
	t.size[topic]--
	if len(topics) == 0 {
		delete(t.mesh, p)
	}
}

// ValidateMessage counts a message of a peer that enters validation.
func (t *tracer) ValidateMessage(*pubsub.Message) { t.metrics.received.Inc() }

// DeliverMessage counts a message that is released for forwarding.
func (t *tracer) DeliverMessage(*pubsub.Message) { t.metrics.delivered.Inc() }

// RejectMessage counts a message by the library's reason. Signatures and authors
// are a breach of the peer itself: a neighbour that keeps the rules never
// forwards them.
func (t *tracer) RejectMessage(msg *pubsub.Message, reason string) {
	t.metrics.refuse(reason)
	switch reason {
	case pubsub.RejectUnexpectedSignature, pubsub.RejectUnexpectedAuthInfo, pubsub.RejectSelfOrigin:
		select {
		case t.breaches <- msg.ReceivedFrom:
		default:
		}
	}
}

// DuplicateMessage counts a copy of something seen.
func (t *tracer) DuplicateMessage(*pubsub.Message) { t.metrics.duplicates.Inc() }

// ThrottlePeer does nothing: the peer gater is off.
func (t *tracer) ThrottlePeer(peer.ID) {}

// RecvRPC counts an incoming frame.
func (t *tracer) RecvRPC(*pubsub.RPC) { t.metrics.rpcReceived.Inc() }

// SendRPC counts a frame that entered a send queue.
func (t *tracer) SendRPC(*pubsub.RPC, peer.ID) { t.metrics.rpcSent.Inc() }

// SendRPCCompleted does nothing.
func (t *tracer) SendRPCCompleted(*pubsub.RPC, peer.ID, time.Duration) {}

// DropRPC counts a frame that found its send queue full.
func (t *tracer) DropRPC(_ *pubsub.RPC, p peer.ID) {
	t.metrics.rpcDropped.Inc()
	if v, ok := t.drops.Load(p); ok {
		if n, ok := v.(*atomic.Uint32); ok {
			n.Add(1)
		}
	}
}

// UndeliverableMessage does nothing: topics are relayed, nobody subscribes.
func (t *tracer) UndeliverableMessage(*pubsub.Message) {}
