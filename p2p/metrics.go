package p2p

import (
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// forwardBuckets are seconds. A vote waits 0.1-50 ms for its verdict, an
// aggregate 15-200 ms (ARCHITECTURE.md section 7), and the slot ends at 4-12 s.
var forwardBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16}

// metrics of the package. Labels come from closed sets: kinds, outcomes, the
// library's reasons, and the node names of the network folder.
type metrics struct {
	connections    *prometheus.CounterVec // direction, result
	disconnections *prometheus.CounterVec // direction, reason

	received    prometheus.Counter
	delivered   prometheus.Counter
	duplicates  prometheus.Counter
	refused     map[string]prometheus.Counter // by library reason, read-only map
	refusedElse prometheus.Counter
	rpcReceived prometheus.Counter
	rpcSent     prometheus.Counter
	rpcDropped  prometheus.Counter
	rpcTrimmed  prometheus.Counter
	grafts      prometheus.Counter
	prunes      prometheus.Counter

	forwardDelay   map[wire.TopicKind]prometheus.Observer // read-only map
	publishes      *prometheus.CounterVec                 // kind, result
	stopping       prometheus.Counter
	downgraded     prometheus.Counter
	internalErrors prometheus.Counter

	peerFaults      *prometheus.CounterVec // fault
	peerDisconnects *prometheus.CounterVec // cause
	gated           *prometheus.CounterVec // direction
	identifyFailed  prometheus.Counter
	statusServed    *prometheus.CounterVec // result
	statusRequested *prometheus.CounterVec // result
}

// refusedCodes maps the reasons of pubsub's RejectMessage to label values.
func refusedCodes() map[string]string {
	return map[string]string{
		pubsub.RejectBlacklstedPeer:      "blacklisted_peer",
		pubsub.RejectBlacklistedSource:   "blacklisted_source",
		pubsub.RejectMissingSignature:    "missing_signature",
		pubsub.RejectUnexpectedSignature: "unexpected_signature",
		pubsub.RejectUnexpectedAuthInfo:  "unexpected_auth_info",
		pubsub.RejectInvalidSignature:    "invalid_signature",
		pubsub.RejectValidationQueueFull: "queue_full",
		pubsub.RejectValidationThrottled: "throttled",
		pubsub.RejectValidationFailed:    "rejected",
		pubsub.RejectValidationIgnored:   "ignored",
		pubsub.RejectSelfOrigin:          "self_origin",
	}
}

// newMetrics registers the metrics; a nil registerer keeps them to ourselves.
func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)

		return c
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)

		return c
	}
	m := &metrics{
		connections: vec("lean_peer_connection_events_total",
			"Connection attempts by outcome.", "direction", "result"),
		disconnections: vec("lean_peer_disconnection_events_total",
			"Closed connections by cause.", "direction", "reason"),
		received: counter("aggnode_pubsub_messages_received_total",
			"Gossip messages of peers, seen for the first time, that entered validation."),
		delivered: counter("aggnode_pubsub_messages_delivered_total",
			"Gossip messages of peers that were accepted and forwarded."),
		duplicates: counter("aggnode_pubsub_messages_duplicate_total",
			"Copies of gossip messages that had been seen before."),
		rpcReceived: counter("aggnode_pubsub_rpcs_received_total", "Gossip frames received."),
		rpcSent:     counter("aggnode_pubsub_rpcs_sent_total", "Gossip frames put into a peer's send queue."),
		rpcDropped: counter("aggnode_pubsub_rpcs_dropped_total",
			"Gossip frames lost because a peer's send queue was full or gone."),
		rpcTrimmed: counter("aggnode_pubsub_messages_over_limit_total",
			"Messages cut off because their frame held more than the limit."),
		grafts: counter("aggnode_pubsub_grafts_total", "Peers that entered a mesh of ours."),
		prunes: counter("aggnode_pubsub_prunes_total", "Peers that were pruned from a mesh of ours."),
		publishes: vec("aggnode_publishes_total",
			"Messages of our own by outcome.", "kind", "result"),
		stopping: counter("aggnode_pubsub_messages_stopping_total",
			"Messages ignored because the node is stopping."),
		downgraded: counter("aggnode_pubsub_rejects_downgraded_total",
			"Rejects that came with an expired deadline and were answered as ignore."),
		internalErrors: counter("aggnode_p2p_internal_errors_total",
			"Panics caught in handlers of peers' bytes."),
		peerFaults: vec("aggnode_peer_faults_total",
			"Breaches of a protocol by peers.", "fault"),
		peerDisconnects: vec("aggnode_peer_disconnects_total",
			"Peers that this node disconnected.", "cause"),
		gated: vec("aggnode_peer_connections_gated_total",
			"Connections refused because the peer is in back-off.", "direction"),
		identifyFailed: counter("aggnode_peer_identify_failures_total",
			"Connections on which the peer did not answer identify."),
		statusServed: vec("aggnode_status_served_total",
			"Status requests of peers by outcome.", "result"),
		statusRequested: vec("aggnode_status_requested_total",
			"Status requests to peers by outcome.", "result"),
	}
	forwardDelay := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "aggnode_forward_delay_seconds",
		Help:    "From the arrival of an accepted message to its release for forwarding.",
		Buckets: forwardBuckets,
	}, []string{"kind"})
	reg.MustRegister(forwardDelay)
	m.forwardDelay = make(map[wire.TopicKind]prometheus.Observer)
	for _, k := range kinds() {
		m.forwardDelay[k] = forwardDelay.WithLabelValues(k.String())
	}

	refused := vec("aggnode_pubsub_messages_refused_total",
		"Gossip messages that were not forwarded, by the library's reason.", "reason")
	m.refused = make(map[string]prometheus.Counter)
	for reason, code := range refusedCodes() {
		m.refused[reason] = refused.WithLabelValues(code)
	}
	m.refusedElse = refused.WithLabelValues("other")
	m.seed()

	return m
}

// kinds returns what topics carry.
func kinds() []wire.TopicKind {
	return []wire.TopicKind{wire.TopicBlock, wire.TopicAggregation, wire.TopicAttestation}
}

// seed creates every series of the closed label sets at zero, so that rates
// and alerts see the first event.
func (m *metrics) seed() {
	for _, d := range []string{"inbound", "outbound"} {
		for _, r := range []string{"success", "timeout", "error"} {
			m.connections.WithLabelValues(d, r)
		}
		for _, r := range []string{"timeout", "remote_close", "local_close", "error"} {
			m.disconnections.WithLabelValues(d, r)
		}
		m.gated.WithLabelValues(d)
	}
	for _, k := range kinds() {
		for _, r := range []publishResult{publishSent, publishNoPeers, publishError} {
			m.publishes.WithLabelValues(k.String(), r.String())
		}
	}
	for _, f := range faults() {
		m.peerFaults.WithLabelValues(f.String())
	}
	for _, c := range causes() {
		m.peerDisconnects.WithLabelValues(c.String())
	}
	for _, r := range statusResults() {
		m.statusServed.WithLabelValues(r.String())
		m.statusRequested.WithLabelValues(r.String())
	}
}

// refuse counts a message that pubsub did not forward.
func (m *metrics) refuse(reason string) {
	c, ok := m.refused[reason]
	if !ok {
		c = m.refusedElse
	}
	c.Inc()
}
