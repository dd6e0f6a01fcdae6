package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"aggnode/pipeline"
	"aggnode/wire"
)

// joined makes a stranger that gossips with n on a topic and is in its mesh.
func joined(t *testing.T, n *testNode, at wire.Topic, opts ...pubsub.Option) (host.Host, *pubsub.Topic) {
	t.Helper()
	h := stranger(t)
	ps := gossiper(t, h, opts...)
	before := n.session.Load().tracer.meshSize(at.Name(n.cfg.Network))
	topic, err := ps.Join(at.Name(n.cfg.Network))
	require.NoError(t, err)
	leave, err := topic.Relay()
	require.NoError(t, err)
	t.Cleanup(leave)
	dialTo(t, h, n)
	n.meshed(t, at, before+1)
	require.Eventually(t, func() bool { return len(topic.ListPeers()) == 1 }, patience, time.Millisecond)

	return h, topic
}

// frame is a gossip frame as it stands on a stream.
func frame(t *testing.T, rpc *pb.RPC) []byte {
	t.Helper()
	b, err := proto.Marshal(rpc)
	require.NoError(t, err)

	return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
}

// gossipStream opens a raw gossip stream to a node.
func gossipStream(t *testing.T, h host.Host, n *testNode) network.Stream {
	t.Helper()

	return open(t, h, n, pubsub.GossipSubID_v12)
}

func TestBrokenGossipFramesAreFaults(t *testing.T) {
	t.Parallel()
	name := subnet1.Name(wire.DefaultNetwork)
	signed := func(change func(*pb.Message)) *pb.RPC {
		m := &pb.Message{Topic: &name, Data: wire.Compress(nil, numbered(1))}
		change(m)

		return &pb.RPC{Publish: []*pb.Message{m}}
	}
	control := &pb.RPC{Control: &pb.ControlMessage{Iwant: []*pb.ControlIWant{{
		MessageIDs: []string{strings.Repeat("x", pubsub.DefaultMaxControlMessageSize+1)},
	}}}}
	tests := map[string][]byte{
		"no protobuf":             append([]byte{4}, 0x0e, 0x0e, 0x0e, 0x0e),
		"announces 100 MB":        binary.AppendUvarint(nil, 100<<20),
		"too much control":        frame(t, control),
		"message with an author":  frame(t, signed(func(m *pb.Message) { m.From = []byte("somebody") })),
		"message with a number":   frame(t, signed(func(m *pb.Message) { m.Seqno = []byte{1} })),
		"message with a key":      frame(t, signed(func(m *pb.Message) { m.Key = []byte{1} })),
		"message with a signaure": frame(t, signed(func(m *pb.Message) { m.Signature = []byte{1} })),
	}
	for what, raw := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n := start(t, nil)
			h := stranger(t)
			s := gossipStream(t, h, n)
			_, err := s.Write(raw)
			require.NoError(t, err)
			eventually(t, n.metrics.peerFaults.WithLabelValues("gossip"), 1)
			require.Zero(t, n.intake.screenedTotal())
			require.True(t, n.connectedTo(h.ID()))
		})
	}
}

func TestGossipFaultsInARowEndTheConnection(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	h := stranger(t)
	for i := range maxFaults {
		s := gossipStream(t, h, n)
		_, err := s.Write([]byte{4, 0x0e, 0x0e, 0x0e, 0x0e})
		require.NoError(t, err)
		eventually(t, n.metrics.peerFaults.WithLabelValues("gossip"), i+1)
	}
	require.Eventually(t, func() bool { return !n.connectedTo(h.ID()) }, patience, time.Millisecond)
}

// TestUndecodableMessagesCostNothing sends what no decoder accepts: the node
// lives, logs next to nothing, and the relay stays.
func TestUndecodableMessagesCostNothing(t *testing.T) {
	t.Parallel()
	const messages = 2000
	n := start(t, nil)
	h, topic := joined(t, n, blockTopic, pubsub.WithFloodPublish(true))
	claim := []byte{0xff, 0xff, 0xff, 0xff, 0x0f} // 4 GiB
	for i := range messages {
		data := binary.LittleEndian.AppendUint64(bytes.Clone(claim), uint64(i))
		require.NoError(t, topic.Publish(t.Context(), data))
	}
	require.Eventually(t, func() bool {
		return n.intake.screenedTotal()+count(n.metrics.refused[pubsub.RejectValidationQueueFull]) >= messages
	}, patience, time.Millisecond)
	n.intake.none(t)
	require.True(t, n.connectedTo(h.ID()))
	for line := range strings.Lines(n.logs.String()) {
		require.Less(t, len(line), 600, "%s", line)
	}
	require.Less(t, strings.Count(n.logs.String(), "\n"), 10)
}

// TestFloodIsAccountedFor sends 2,000 messages as fast as they go while nobody
// gets a verdict until all are in: the throttles never bind, and what the
// library drops before stage 1 is counted.
func TestFloodIsAccountedFor(t *testing.T) {
	t.Parallel()
	const messages = 2000
	n := start(t, nil)
	release := make(chan struct{})
	var waiting atomic.Int64
	bound := int64(n.intake.limits.Attestations + n.intake.limits.ParkedAttestations)
	n.intake.set(func(f *fakeIntake) {
		f.submit = func(ctx context.Context, _ *pipeline.Item) pipeline.Outcome {
			defer waiting.Add(-1)
			if waiting.Add(1) > bound {
				return pipeline.Outcome{Verdict: pipeline.Ignore, Reason: wire.ReasonQueueFull}
			}
			select {
			case <-release:
				return accepted
			case <-ctx.Done():
				return ignored
			}
		}
	})
	// Flood publishing: the sender needs no mesh of its own yet.
	_, topic := joined(t, n, subnet1, pubsub.WithFloodPublish(true))
	for i := range messages {
		require.NoError(t, topic.Publish(t.Context(), wire.Compress(nil, numbered(i))))
	}
	m := n.metrics
	queueFull := m.refused[pubsub.RejectValidationQueueFull]
	// A message that the library dropped was not marked as seen: IHAVE brings it
	// back, so the sum may come out higher.
	require.Eventually(t, func() bool { return count(m.received)+count(queueFull) >= messages }, patience, time.Millisecond,
		"received and dropped do not add up")
	close(release)
	require.Eventually(t, func() bool {
		done := count(m.delivered) + count(m.refused[pubsub.RejectValidationIgnored])

		return done == count(m.received)
	}, patience, time.Millisecond)
	require.Zero(t, count(m.refused[pubsub.RejectValidationThrottled]), "our bound, not the library's")
	require.Equal(t, count(m.received), n.intake.screenedTotal())
	require.GreaterOrEqual(t, count(m.delivered), int(bound))
}

// TestReplaysAreIgnored sends the same bytes by two peers and again.
func TestReplaysAreIgnored(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	_, first := joined(t, n, subnet1, pubsub.WithFloodPublish(true))
	h := stranger(t)
	s := gossipStream(t, h, n)
	data := wire.Compress(nil, numbered(1))
	require.NoError(t, first.Publish(t.Context(), data))
	n.intake.next(t)
	name := subnet1.Name(wire.DefaultNetwork)
	for i := range 5 {
		_, err := s.Write(frame(t, &pb.RPC{Publish: []*pb.Message{{Topic: &name, Data: data}}}))
		require.NoError(t, err)
		eventually(t, n.metrics.duplicates, i+1)
	}
	// The same payload in another encoding of snappy is the same message.
	literal := append(binary.AppendUvarint(nil, 1100), 61<<2, 0x4b, 0x04)
	literal = append(literal, numbered(1)...)
	_, err := s.Write(frame(t, &pb.RPC{Publish: []*pb.Message{{Topic: &name, Data: literal}}}))
	require.NoError(t, err)
	eventually(t, n.metrics.duplicates, 6)
	n.intake.none(t)
	require.Equal(t, 1, n.intake.screenedTotal())
	require.Zero(t, count(n.metrics.peerFaults.WithLabelValues("gossip")))
}

// TestForeignTopicsAreNotRemembered floods the node with subscriptions to
// topics that it does not know.
func TestForeignTopicsAreNotRemembered(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	h := stranger(t)
	s := gossipStream(t, h, n)
	for batch := range 20 {
		rpc := &pb.RPC{}
		for i := range 60 {
			rpc.Subscriptions = append(rpc.Subscriptions, &pb.RPC_SubOpts{
				Subscribe: proto.Bool(true), Topicid: proto.String(fmt.Sprintf("/x/%d/%d", batch, i)),
			})
		}
		_, err := s.Write(frame(t, rpc))
		require.NoError(t, err)
	}
	eventually(t, n.metrics.rpcReceived, 20)
	require.Empty(t, n.session.Load().pubsub.ListPeers("/x/3/3"))
	require.True(t, n.connectedTo(h.ID()))
}

// TestSlowPeerIsDroppedAndOthersAreServed has one neighbour that never reads.
func TestSlowPeerIsDroppedAndOthersAreServed(t *testing.T) {
	t.Parallel()
	n := start(t, quick)
	good := start(t, func(cfg *Config, f *fakeIntake) {
		quick(cfg, f)
		cfg.Bootnodes = []Bootnode{bootnodeOf(n)}
	})
	good.meshed(t, aggregations, 1)

	slow := stranger(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	slow.SetStreamHandler(pubsub.GossipSubID_v12, func(s network.Stream) { <-hold; _ = s.Reset() })
	s := gossipStream(t, slow, n)
	name := aggregations.Name(wire.DefaultNetwork)
	_, err := s.Write(frame(t, &pb.RPC{
		Subscriptions: []*pb.RPC_SubOpts{{Subscribe: proto.Bool(true), Topicid: &name}},
		Control:       &pb.ControlMessage{Graft: []*pb.ControlGraft{{TopicID: &name}}},
	}))
	require.NoError(t, err)
	n.meshed(t, aggregations, 2)

	dismissed := n.metrics.peerDisconnects.WithLabelValues("slow")
	for i := 0; count(dismissed) == 0; i++ {
		_, err := n.publish(t.Context(), aggregations, numbered(i))
		require.NoError(t, err)
		good.intake.next(t) // in step with the good neighbour
	}
	require.Positive(t, count(n.metrics.rpcDropped))
	require.Eventually(t, func() bool { return !n.connectedTo(slow.ID()) }, patience, time.Millisecond)
	n.meshed(t, aggregations, 1)
	require.True(t, n.connectedTo(good.id))
}

// TestSeriesDoNotGrowWithPeers is about metric cardinality: thousands of peers
// and topics make no new series.
func TestSeriesDoNotGrowWithPeers(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	cfg := testConfig(t)
	cfg.Registerer = reg
	cfg.Names = map[string]string{knownPeerID: "gean_0"}
	h, err := New(cfg, newFakeIntake(), fakeChain{})
	require.NoError(t, err)
	series := func() (n int) {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			n += len(f.GetMetric())
		}

		return n
	}
	before := series()
	tr := newTracer(h.metrics)
	for i := range 5000 {
		p := somePeer + "/" + somePeer[:i%len(somePeer)]
		msg := message(wire.Topic{Kind: wire.TopicAttestation, Subnet: wire.SubnetID(i)}, wire.Compress(nil, numbered(i)))
		msg.ReceivedFrom = p
		h.screen(t.Context(), p, msg)
		tr.OnNewOutboundStream(p, "")
		tr.Graft(p, fmt.Sprint(i))
		tr.RejectMessage(msg, "a reason of a later release")
		tr.DropRPC(nil, p)
		h.fault(p, faultGossip)
	}
	require.Equal(t, before, series())
	require.Less(t, before, 150)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, 5000, count(h.metrics.refusedElse))
}
