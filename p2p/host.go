package p2p

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"aggnode/pipeline"
	"aggnode/wire"
)

// ErrNotRunning is what publishing answers before Run has joined the topics and
// after it has left them.
var ErrNotRunning = errors.New("the p2p host is not running")

// intake is where gossip goes: *pipeline.Pipeline.
type intake interface {
	Screen(topic wire.Topic, peer string, payload []byte) (*pipeline.Item, pipeline.Outcome)
	Enqueue(ctx context.Context, item *pipeline.Item)
	Submit(ctx context.Context, item *pipeline.Item) pipeline.Outcome
	PeerScore(peer string) pipeline.PeerScore
	Limits() pipeline.Limits
}

// chainView is what Status tells of us.
type chainView interface {
	Status() wire.Status
}

// Host is the node's end of the network. Create it with New.
type Host struct {
	// immutable
	cfg       Config
	log       *slog.Logger
	key       crypto.PrivKey
	id        peer.ID
	names     map[peer.ID]string
	bootnodes []peer.AddrInfo
	redial    map[peer.ID]chan struct{} // wakes a bootnode's dialler, capacity 1
	topics    *topicTable
	pipe      intake
	chain     chainView
	metrics   *metrics
	// timeout bounds one Status exchange: requestTimeout.
	timeout time.Duration

	book     *peerBook
	gate     *gate
	logLimit *logLimiter
	session  atomic.Pointer[session] // set while Run is at work
	hasRun   atomic.Bool
	started  chan struct{} // closed when the topics are joined

	// handlers are the goroutines that answer or ask one peer.
	handlers *gate
	// parked takes votes whose head arrived too late for their verdict. Bound
	// republishQueue, full: the vote is not forwarded, counted.
	parked chan *pipeline.Item

	mu sync.Mutex
	// guarded by mu
	statuses map[peer.ID]wire.Status
	unnamed  map[peer.ID]struct{} // peers that refuse identify
}

// session is what exists while Run is at work. Immutable but for its parts.
type session struct {
	// ctx is Run's: it bounds the work that peers' actions start, which come by
	// callbacks of the library that carry no context.
	ctx    context.Context
	host   host.Host
	pubsub *pubsub.PubSub
	tracer *tracer
	topics map[string]*pubsub.Topic
}

// New checks the configuration. It opens no socket and starts no goroutine.
func New(cfg Config, pipe intake, chain chainView) (*Host, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	key, id, err := identity(cfg.PrivateKey)
	if err != nil {
		return nil, err
	}
	cfg.PrivateKey = [32]byte{} // from here on only key holds it

	h := &Host{
		cfg: cfg, log: cfg.Logger, key: key, id: id,
		names:    make(map[peer.ID]string, len(cfg.Names)),
		redial:   make(map[peer.ID]chan struct{}),
		topics:   newTopicTable(cfg.Network, cfg.Committees, cfg.Subnets),
		pipe:     pipe,
		chain:    chain,
		timeout:  requestTimeout,
		book:     newPeerBook(cfg.SlotDuration),
		gate:     newGate(),
		handlers: newGate(),
		parked:   make(chan *pipeline.Item, republishQueue),
		logLimit: newLogLimiter(),
		started:  make(chan struct{}),
		statuses: make(map[peer.ID]wire.Status),
		unnamed:  make(map[peer.ID]struct{}),
	}
	for text, name := range cfg.Names {
		p, err := peer.Decode(text)
		if err != nil {
			return nil, fmt.Errorf("read the peer id %q of node %q: %w", text, name, err)
		}
		h.names[p] = name
	}
	if err := h.addBootnodes(cfg.Bootnodes); err != nil {
		return nil, err
	}
	h.metrics = newMetrics(cfg.Registerer)
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(newPeerCollector(h)); err != nil {
			return nil, fmt.Errorf("register peer metrics: %w", err)
		}
	}

	return h, nil
}

// addBootnodes reads the bootnodes, skips ourselves, and merges several
// addresses of one peer.
func (h *Host) addBootnodes(nodes []Bootnode) error {
	for _, n := range nodes {
		info, err := n.addrInfo()
		if err != nil {
			return err
		}
		if info.ID == h.id {
			continue
		}
		i := slices.IndexFunc(h.bootnodes, func(b peer.AddrInfo) bool { return b.ID == info.ID })
		if i < 0 {
			h.bootnodes = append(h.bootnodes, info)
			h.redial[info.ID] = make(chan struct{}, 1)
		} else {
			h.bootnodes[i].Addrs = append(h.bootnodes[i].Addrs, info.Addrs...)
		}
	}

	return nil
}

// PeerID returns our peer id in text form. It does not need Run.
func (h *Host) PeerID() string { return h.id.String() }

// Started is closed when the socket is open and the topics are joined.
func (h *Host) Started() <-chan struct{} { return h.started }

// Addrs returns the full addresses that peers can dial, with /p2p/, or nothing
// when Run is not at work.
func (h *Host) Addrs() []string {
	s := h.session.Load()
	if s == nil {
		return nil
	}
	var out []string
	for _, a := range s.host.Addrs() {
		out = append(out, a.String()+"/p2p/"+h.PeerID())
	}

	return out
}

// Ready reports whether the node takes part in gossip, and why not. Being
// without peers is not a fault: the first node of a network has none.
func (h *Host) Ready() (bool, string) {
	if h.session.Load() == nil {
		return false, "the p2p host is not running"
	}

	return true, ""
}

// Run opens the socket, joins the topics, dials the bootnodes, and serves until
// ctx ends. It runs once. The error is nil after an ordered stop.
func (h *Host) Run(ctx context.Context) error {
	if h.hasRun.Swap(true) {
		return errors.New("the p2p host can not run twice")
	}
	lib, err := h.newLibHost()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The library's goroutines end after our own orders, not with ctx: what is
	// being published goes out, and who waits for a verdict gets one.
	gossipCtx, stopGossip := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGossip()

	s, err := h.newSession(ctx, gossipCtx, lib)
	if err == nil {
		h.session.Store(s)
		lib.Network().Notify(&network.NotifyBundle{ConnectedF: h.connected, DisconnectedF: h.disconnected})
		lib.SetStreamHandler(statusProtocol, h.serveStatus)
		// Peers come when everything stands that sees them.
		err = h.listen(lib)
	}
	if err != nil {
		h.session.Store(nil)
		stopGossip()

		return errors.Join(err, lib.Close())
	}
	var loops sync.WaitGroup
	loops.Go(func() { h.judgePeers(ctx, s) })
	loops.Go(func() { h.watchIdentify(ctx, s) })
	loops.Go(func() { h.publishParked(ctx) })
	for _, b := range h.bootnodes {
		loops.Go(func() { h.keepConnected(ctx, s, b) })
	}
	h.log.Info("p2p started", "peer_id", h.PeerID(), "listen", strings.Join(h.Addrs(), " "),
		"topics", len(s.topics), "bootnodes", len(h.bootnodes))
	close(h.started)

	<-ctx.Done()
	h.StopIntake()
	loops.Wait()
	stopGossip() // ends every submit that still waits
	<-h.gate.close()
	h.session.Store(nil)
	err = lib.Close()
	<-h.handlers.close()
	if err != nil {
		return fmt.Errorf("close the p2p host: %w", err)
	}
	h.log.Info("p2p stopped")

	return nil
}

// StopIntake is the first step of an ordered stop: gossip of peers is ignored
// from now on, while publishing still works. Run does it itself when its context
// ends. It may be called more than once. The meshes are not left: a peer that is
// told so refuses us for a minute after a quick restart, one that sees the
// connection close does not.
func (h *Host) StopIntake() { h.gate.close() }

// newSession starts gossip and joins the topics. runCtx is Run's own, ctx that
// of the library.
func (h *Host) newSession(runCtx, ctx context.Context, lib host.Host) (*session, error) {
	settings := newGossipSettings(h.pipe.Limits(), h.cfg.SlotDuration, h.topics.attestationTopics())
	s := &session{ctx: runCtx, host: lib, tracer: newTracer(h.metrics), topics: make(map[string]*pubsub.Topic)}
	opts := settings.options(h.topics, h.screen, s.tracer, h.limitMessages)
	faults := &frameFaults{tracer: s.tracer}
	opts = append(opts,
		pubsub.WithLogger(slog.New(quietHandler{h.log.Handler()}).With("part", "pubsub")),
		pubsub.WithRPCLogger(slog.New(faults)))
	ps, err := pubsub.NewGossipSub(ctx, gossipHost{Host: lib, faults: faults}, opts...)
	if err != nil {
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	s.pubsub = ps
	for _, e := range h.topics.all {
		if err := h.join(s, e, settings); err != nil {
			return nil, fmt.Errorf("join topic %s: %w", e.name, err)
		}
	}
	h.log.Info("gossip configured", "validate_queue", settings.validateQueue, "validate_workers", settings.workers,
		"throttle", settings.throttle, "topic_throttle_attestation", settings.topicThrottle[wire.TopicAttestation],
		"topic_throttle_aggregation", settings.topicThrottle[wire.TopicAggregation],
		"topic_throttle_block", settings.topicThrottle[wire.TopicBlock],
		"outbound_queue", settings.outboundQueue, "seen_ttl", settings.seenTTL)

	return s, nil
}

// join joins one topic: with a validator and the mesh where it is subscribed,
// for publishing alone otherwise.
func (h *Host) join(s *session, e topicEntry, settings gossipSettings) error {
	if !e.isSubscribed {
		topic, err := s.pubsub.Join(e.name, pubsub.FanoutOnly())
		s.topics[e.name] = topic

		return err
	}
	// The validator stands before the first message can come.
	err := s.pubsub.RegisterTopicValidator(e.name, h.submit, settings.topicOptions(e.topic.Kind)...)
	if err != nil {
		return err
	}
	topic, err := s.pubsub.Join(e.name)
	if err != nil {
		return err
	}
	s.topics[e.name] = topic
	// A relay keeps the mesh without a subscription, whose channel of 32 would
	// have to be read and drops what is not.
	_, err = topic.Relay()

	return err
}
