package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/prometheus/client_golang/prometheus"

	"aggnode/p2p"
	"aggnode/pipeline"
	"aggnode/wire"
)

// Settings of the bare library. They are those of package p2p, which gives the reasons, so that the node differs from the
// bare receiver by what it does with a message and by nothing else.
const (
	bareValidateQueue   = 4096
	bareValidateWorkers = 2
	bareThrottleSlack   = 64 + bareValidateQueue
	bareGlobalSlack     = 256
	bareOutboundQueue   = 2048
	bareSeenSlots       = 6
)

// receiver is one end that gets votes over QUIC: the node's or the bare library.
type receiver struct {
	address  string // that a peer can dial, with /p2p/
	accepted func() int
	all      <-chan struct{} // closed when every vote was accepted
	stop     func() error
	registry *prometheus.Registry // of the node's gossip
}

// startNode starts the node's end: package p2p over the passes, as in `aggnode run`.
func startNode(ctx context.Context, v *slotVotes, p *passes) (*receiver, error) {
	registry := prometheus.NewRegistry()
	cfg := p2p.Config{
		ListenIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port: p2p.AnyPort, Profile: v.profile,
		Committees: uint64(len(p.pipes)), SlotDuration: voteSlotDuration, Registerer: registry,
	}
	if _, err := rand.Read(cfg.PrivateKey[:]); err != nil {
		return nil, err
	}
	for pass := range p.pipes {
		cfg.Subnets = append(cfg.Subnets, wire.SubnetID(pass))
	}
	node, err := p2p.New(cfg, p, genesisStatus{v.genesisRoot})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1) // one value: how Run ended
	go func() { ended <- node.Run(ctx) }()
	select {
	case <-node.Started():
	case err := <-ended:
		cancel()
		return nil, err
	}
	return &receiver{
		address: node.Addrs()[0], accepted: func() int { return int(p.accepted.Load()) }, all: p.all,
		stop: func() error { cancel(); return <-ended }, registry: registry,
	}, nil
}

// countShed adds the messages that gossip lost before the pipeline, by the library's reason.
func countShed(registry *prometheus.Registry, lost map[string]int) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if f.GetName() != "aggnode_pubsub_messages_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			reason, n := m.GetLabel()[0].GetValue(), int(m.GetCounter().GetValue())
			if n > 0 && reason != "ignored" && reason != "rejected" { // these are verdicts, which have a reason already
				lost["gossip_"+reason] += n
			}
		}
	}
	return nil
}

// genesisStatus tells peers that the chain is at genesis.
type genesisStatus struct{ root wire.Root }

func (g genesisStatus) Status() wire.Status {
	genesis := wire.Checkpoint{Root: g.root}
	return wire.Status{Finalized: genesis, Head: genesis}
}

// startBare starts the library alone: same host, topics, parameters and message id, and a validator of each topic that
// accepts everything.
func startBare(ctx context.Context, topics, votes int, limits pipeline.Limits) (*receiver, error) {
	lib, err := newBareHost(libp2p.ListenAddrStrings("/ip4/127.0.0.1/udp/0/quic-v1"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := func() error { cancel(); return lib.Close() }
	perTopic := limits.Attestations + limits.ParkedAttestations + limits.Workers + bareThrottleSlack
	gossip, err := newBareGossip(ctx, lib, topics, bareOutboundQueue, pubsub.WithValidateThrottle(topics*perTopic+bareGlobalSlack))
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	var accepted atomic.Int64
	all := make(chan struct{})
	accept := func(context.Context, peer.ID, *pubsub.Message) pubsub.ValidationResult {
		if accepted.Add(1) == int64(votes) {
			close(all)
		}
		return pubsub.ValidationAccept
	}
	for pass := range topics {
		if err := relay(gossip, voteTopic(pass), accept, perTopic); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return &receiver{
		address:  fmt.Sprintf("%s/p2p/%s", lib.Addrs()[0], lib.ID()),
		accepted: func() int { return int(accepted.Load()) }, all: all, stop: stop,
	}, nil
}

// relay takes part in a topic's mesh without a subscription, whose reader would be part of what is measured.
func relay(gossip *pubsub.PubSub, name string, accept pubsub.ValidatorEx, concurrency int) error {
	if err := gossip.RegisterTopicValidator(name, accept, pubsub.WithValidatorConcurrency(concurrency)); err != nil {
		return err
	}
	topic, err := gossip.Join(name)
	if err != nil {
		return err
	}
	_, err = topic.Relay()
	return err
}

// newBareHost makes a libp2p host on QUIC with a secp256k1 identity.
func newBareHost(more ...libp2p.Option) (host.Host, error) {
	key, _, err := crypto.GenerateSecp256k1Key(rand.Reader)
	if err != nil {
		return nil, err
	}
	return libp2p.New(append(more, libp2p.Identity(key), libp2p.Transport(libp2pquic.NewTransport),
		libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.Ping(true))...)
}

// newBareGossip starts gossip for the topics of that many passes.
func newBareGossip(
	ctx context.Context, lib host.Host, topics, outboundQueue int, more ...pubsub.Option,
) (*pubsub.PubSub, error) {
	params := pubsub.DefaultGossipSubParams()
	params.D, params.Dlo, params.Dhi, params.Dlazy = 8, 6, 12, 6
	params.HeartbeatInterval = 700 * time.Millisecond
	params.FanoutTTL = 60 * time.Second
	params.HistoryLength, params.HistoryGossip = 6, 3
	params.PruneBackoff = 60 * time.Second
	params.IDontWantMessageThreshold = 1000
	params.PrunePeers = 0
	names := make([]string, topics)
	for pass := range names {
		names[pass] = voteTopic(pass)
	}
	filter := pubsub.NewAllowlistSubscriptionFilter(names...)
	protocols := []protocol.ID{pubsub.GossipSubID_v12, pubsub.GossipSubID_v11, pubsub.GossipSubID_v10}
	return pubsub.NewGossipSub(ctx, lib, append(more,
		pubsub.WithGossipSubParams(params),
		pubsub.WithGossipSubProtocols(protocols, pubsub.GossipSubDefaultFeatures),
		pubsub.WithFloodPublish(false),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithMaxMessageSize(wire.MaxMessageSize),
		pubsub.WithSeenMessagesTTL(bareSeenSlots*voteSlotDuration),
		pubsub.WithPeerOutboundQueueSize(outboundQueue),
		pubsub.WithValidateQueueSize(bareValidateQueue),
		pubsub.WithValidateWorkers(bareValidateWorkers),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(filter, 2*topics+64)),
	)...)
}

func messageID(m *pb.Message) string {
	id := wire.MessageID(m.GetTopic(), m.GetData())
	return string(id[:])
}
