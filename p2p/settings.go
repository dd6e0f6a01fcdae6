package p2p

import (
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"aggnode/pipeline"
	"aggnode/wire"
)

// Settings of pubsub that are ours to choose (ARCHITECTURE.md section 2).
const (
	// validateQueueSize is the number of messages that may wait for stage 1:
	// one vote of each of 4,096 validators, the limit of a registry, in one burst.
	// The event loop never waits for stage 1, so on two busy cores 1,024 places
	// lost up to 3 in 100 votes of a stream of 25,000 a second (2026-12); the
	// library's default of 32 drops votes while the mesh has already been told not
	// to resend them.
	validateQueueSize = 4096

	// validateWorkers is the number of goroutines that run stage 1. Two, so
	// that a block of 10 MiB does not hold up votes; more would compete with
	// the verify workers for the same cores.
	validateWorkers = 2

	// topicSlack and globalSlack are added to the sums of our own bounds. 64 and
	// 256 are for items that have their verdict but whose goroutine has not
	// returned yet. A validate queue on top is for goroutines that have not
	// started: a worker of stage 1 hands on up to 10 ms of messages before the
	// runtime lets the first of them run. With 64 alone a burst of 2,000 votes on
	// two cores lost 17 to 73 to the throttle (2026-11-30).
	topicSlack  = 64 + validateQueueSize
	globalSlack = 256

	// outboundQueueSize is the number of frames that may wait for one peer.
	// In a burst each vote costs two frames, the message and the announcement
	// that we have it; 1,024 votes of one slot fit. The library's default of 32
	// loses most of such a burst.
	outboundQueueSize = 2048

	// maxMessagesPerRPC is the number of messages taken from one frame
	// (protocol 3.4). The library has no such limit, so an inspector cuts off
	// the rest, as rust-libp2p does.
	maxMessagesPerRPC = 500

	// seenSlots times the slot duration is how long message ids are remembered
	// (protocol 3.4: slot seconds x 3 x 2).
	seenSlots = 6

	// maxSubscriptionsSlack is added to twice the number of topics to bound
	// the subscriptions in one frame: every topic left and joined, and some of
	// other networks.
	maxSubscriptionsSlack = 64
)

// gossipSettings are the numbers that pubsub is set up with. Immutable.
type gossipSettings struct {
	params         pubsub.GossipSubParams
	seenTTL        time.Duration
	maxMessageSize int
	outboundQueue  int
	validateQueue  int
	workers        int
	// throttle bounds the stage 2 goroutines of the node, topicThrottle those
	// of one topic. Both stand above every bound of the pipeline, which alone
	// decides what is shed (invariant 2).
	throttle      int
	topicThrottle map[wire.TopicKind]int
}

// gossipParams are the parameters of protocol 3.4; whatever that table does not
// name is the library's default.
func gossipParams() pubsub.GossipSubParams {
	p := pubsub.DefaultGossipSubParams()
	p.D = 8
	p.Dlo = 6
	p.Dhi = 12
	p.Dlazy = 6
	p.HeartbeatInterval = 700 * time.Millisecond
	p.FanoutTTL = 60 * time.Second
	p.HistoryLength = 6
	p.HistoryGossip = 3
	p.PruneBackoff = 60 * time.Second
	p.IDontWantMessageThreshold = 1000 // bytes
	// Peers are the configured ones and those who dial us. Without peer scores
	// the library would dial whoever a PRUNE names.
	p.PrunePeers = 0

	return p
}

// gossipProtocols are the protocol versions of protocol 3.4, newest first.
func gossipProtocols() []protocol.ID {
	return []protocol.ID{pubsub.GossipSubID_v12, pubsub.GossipSubID_v11, pubsub.GossipSubID_v10}
}

// newGossipSettings derives the settings from the pipeline's limits. attestations
// is the number of attestation topics that are subscribed; they share one class
// of the pipeline, and any of them may fill it alone.
func newGossipSettings(limits pipeline.Limits, slot time.Duration, attestations int) gossipSettings {
	topic := func(class, park int) int { return class + park + limits.Workers + topicSlack }
	s := gossipSettings{
		params:         gossipParams(),
		seenTTL:        seenSlots * slot,
		maxMessageSize: wire.MaxMessageSize,
		outboundQueue:  outboundQueueSize,
		validateQueue:  validateQueueSize,
		workers:        validateWorkers,
		topicThrottle: map[wire.TopicKind]int{
			wire.TopicBlock:       topic(limits.Blocks, limits.ParkedBlocks),
			wire.TopicAggregation: topic(limits.Aggregates, limits.ParkedAggregates),
			wire.TopicAttestation: topic(limits.Attestations, limits.ParkedAttestations),
		},
	}
	s.throttle = s.topicThrottle[wire.TopicBlock] + s.topicThrottle[wire.TopicAggregation] +
		attestations*s.topicThrottle[wire.TopicAttestation] + globalSlack

	return s
}

// options returns the options of pubsub for these settings.
func (s gossipSettings) options(t *topicTable, screen pubsub.ValidatorEx, trace *tracer, limits func(peer.ID, *pubsub.RPC) error) []pubsub.Option {
	filter := pubsub.NewAllowlistSubscriptionFilter(t.names()...)

	return []pubsub.Option{
		pubsub.WithGossipSubParams(s.params),
		// Floodsub peers would be sent every message, mesh or not; 1.3 adds
		// extensions that no client of the network has.
		pubsub.WithGossipSubProtocols(gossipProtocols(), pubsub.GossipSubDefaultFeatures),
		// Publishing to the mesh alone, as the other clients do.
		pubsub.WithFloodPublish(false),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithMaxMessageSize(s.maxMessageSize),
		pubsub.WithSeenMessagesTTL(s.seenTTL),
		pubsub.WithPeerOutboundQueueSize(s.outboundQueue),
		pubsub.WithValidateQueueSize(s.validateQueue),
		pubsub.WithValidateWorkers(s.workers),
		pubsub.WithValidateThrottle(s.throttle),
		pubsub.WithDefaultValidator(screen, pubsub.WithValidatorInline(true)),
		pubsub.WithAppSpecificRpcInspector(limits),
		// Without a filter the library remembers every topic text that a peer
		// cares to send.
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(filter, 2*len(t.all)+maxSubscriptionsSlack)),
		pubsub.WithRawTracer(trace),
	}
}

// topicOptions returns the options of the stage 2 validator of a topic. It has no
// timeout of the library's: the pipeline answers each item by the deadline of its
// class, and a context with a timer for each message cost a tenth of the CPU of a
// vote (3.6 of 37 us; Intel Xeon with AVX-512, 2026-12).
func (s gossipSettings) topicOptions(kind wire.TopicKind) []pubsub.ValidatorOpt {
	return []pubsub.ValidatorOpt{pubsub.WithValidatorConcurrency(s.topicThrottle[kind])}
}
