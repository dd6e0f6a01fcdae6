package p2p

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"aggnode/pipeline"
	"aggnode/wire"
)

// These tests pin what the design takes from go-libp2p-pubsub v0.19 for granted,
// so that an upgrade that changes it fails here.

// refusals is a tracer that tells what pubsub refused.
type refusals struct {
	*tracer
	reasons chan string
}

func (r refusals) RejectMessage(_ *pubsub.Message, reason string) { r.reasons <- reason }

func newRefusals() refusals {
	return refusals{tracer: newTracer(newMetrics(nil)), reasons: make(chan string, 1024)}
}

// listener is gossip with the given validators, and a raw stream to it.
func listener(t *testing.T, inline, async pubsub.ValidatorEx, opts ...pubsub.Option) (send func(data []byte), refused chan string) {
	t.Helper()
	trace := newRefusals()
	h := stranger(t)
	name := subnet1.Name(wire.DefaultNetwork)
	ps := gossiper(t, h, append([]pubsub.Option{
		pubsub.WithDefaultValidator(inline, pubsub.WithValidatorInline(true)), pubsub.WithRawTracer(trace),
	}, opts...)...)
	require.NoError(t, ps.RegisterTopicValidator(name, async, pubsub.WithValidatorConcurrency(1)))
	topic, err := ps.Join(name)
	require.NoError(t, err)
	leave, err := topic.Relay()
	require.NoError(t, err)
	t.Cleanup(leave)

	from := stranger(t)
	require.NoError(t, from.Connect(t.Context(), *host.InfoFromHost(h)))
	s, err := from.NewStream(t.Context(), h.ID(), pubsub.GossipSubID_v12)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Reset() })

	return func(data []byte) {
		_, err := s.Write(frame(t, &pb.RPC{Publish: []*pb.Message{{Topic: &name, Data: data}}}))
		require.NoError(t, err)
	}, trace.reasons
}

func TestPinInlineIgnoreDoesNotStopAsyncValidators(t *testing.T) {
	t.Parallel()
	called := make(chan any, 1)
	send, refused := listener(t,
		func(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
			m.ValidatorData = "stage 1"

			return pubsub.ValidationIgnore
		},
		func(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
			called <- m.ValidatorData

			return pubsub.ValidationAccept
		})
	send(numbered(1))
	require.Equal(t, "stage 1", <-called)
	require.Equal(t, pubsub.RejectValidationIgnored, <-refused, "the ignore of stage 1 stands")
}

func TestPinInlineRejectStopsAsyncValidators(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 2)
	send, refused := listener(t,
		func(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
			if m.GetData()[0] == 1 {
				return pubsub.ValidationReject
			}

			return pubsub.ValidationAccept
		},
		func(context.Context, peer.ID, *pubsub.Message) pubsub.ValidationResult {
			called <- struct{}{}

			return pubsub.ValidationIgnore
		})
	send([]byte{1})
	require.Equal(t, pubsub.RejectValidationFailed, <-refused)
	send([]byte{2})
	<-called
	require.Equal(t, pubsub.RejectValidationIgnored, <-refused)
	require.Empty(t, called, "the rejected one was not seen by stage 2")
}

func TestPinQueueDropIsNotSeenAndThrottleDropIs(t *testing.T) {
	t.Parallel()
	inline, hold := make(chan byte), make(chan struct{})
	async := make(chan byte, 16)
	send, refused := listener(t,
		func(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
			inline <- m.GetData()[0] // the only worker stands here until the test looks

			return pubsub.ValidationAccept
		},
		func(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
			async <- m.GetData()[0]
			<-hold

			return pubsub.ValidationAccept
		},
		pubsub.WithValidateQueueSize(1), pubsub.WithValidateWorkers(1))
	send([]byte{1}) // taken by the worker, or in the queue
	send([]byte{2})
	send([]byte{3})
	send([]byte{4})
	require.Equal(t, pubsub.RejectValidationQueueFull, <-refused, "one at work, one queued, the next is dropped")
	require.Equal(t, byte(1), <-inline)
	require.Equal(t, byte(1), <-async) // the concurrency of 1 is used up
	require.Equal(t, byte(2), <-inline)
	for reason := range refused {
		if reason == pubsub.RejectValidationThrottled {
			break
		}
	}
	send([]byte{4}) // dropped at the queue before: not seen, taken now
	require.Equal(t, byte(4), <-inline)
	require.Equal(t, pubsub.RejectValidationThrottled, <-refused)
	send([]byte{4}) // dropped by the throttle: seen, a duplicate now
	send([]byte{5})
	require.Equal(t, byte(5), <-inline)
	require.Equal(t, pubsub.RejectValidationThrottled, <-refused)
	close(hold)
	require.Empty(t, async)
}

func TestPinPublishValidatesInTheCallerAsOurselves(t *testing.T) {
	t.Parallel()
	h := stranger(t)
	type call struct{ from peer.ID }
	var inline, topical []call
	ps := gossiper(t, h, pubsub.WithDefaultValidator(func(_ context.Context, from peer.ID, _ *pubsub.Message) pubsub.ValidationResult {
		inline = append(inline, call{from}) // no lock: the race detector sees another goroutine

		return pubsub.ValidationAccept
	}, pubsub.WithValidatorInline(true)))
	name := subnet1.Name(wire.DefaultNetwork)
	require.NoError(t, ps.RegisterTopicValidator(name, func(_ context.Context, from peer.ID, _ *pubsub.Message) pubsub.ValidationResult {
		topical = append(topical, call{from})

		return pubsub.ValidationAccept
	}))
	topic, err := ps.Join(name)
	require.NoError(t, err)
	require.NoError(t, topic.Publish(t.Context(), numbered(1)))
	require.Equal(t, []call{{h.ID()}}, inline)
	require.Equal(t, []call{{h.ID()}}, topical)
}

// meshPeer is a raw gossip peer that grafts itself and shows every frame that
// the node sends it.
func meshPeer(t *testing.T, n *testNode, at wire.Topic) chan *pb.RPC {
	t.Helper()
	h := stranger(t)
	frames := make(chan *pb.RPC, 1024)
	h.SetStreamHandler(pubsub.GossipSubID_v12, func(s network.Stream) {
		r := bufio.NewReader(s)
		for {
			size, err := binary.ReadUvarint(r)
			if err != nil {
				return
			}
			b := make([]byte, size)
			if _, err := io.ReadFull(r, b); err != nil {
				return
			}
			rpc := new(pb.RPC)
			if proto.Unmarshal(b, rpc) == nil {
				frames <- rpc
			}
		}
	})
	s := gossipStream(t, h, n)
	name := at.Name(n.cfg.Network)
	before := n.session.Load().tracer.meshSize(name)
	_, err := s.Write(frame(t, &pb.RPC{
		Subscriptions: []*pb.RPC_SubOpts{{Subscribe: proto.Bool(true), Topicid: &name}},
		Control:       &pb.ControlMessage{Graft: []*pb.ControlGraft{{TopicID: &name}}},
	}))
	require.NoError(t, err)
	n.meshed(t, at, before+1)

	return frames
}

// TestPinIDontWantGoesOutBeforeTheVerdict also pins the id on the wire, the
// threshold, and the subscriptions that we announce.
func TestPinIDontWantGoesOutBeforeTheVerdict(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	n.intake.set(func(f *fakeIntake) {
		f.submit = func(context.Context, *pipeline.Item) pipeline.Outcome { return rejected }
	})
	frames := meshPeer(t, n, subnet1)
	hello := <-frames
	announced := map[string]bool{}
	for _, s := range hello.GetSubscriptions() {
		announced[s.GetTopicid()] = s.GetSubscribe()
	}
	require.Equal(t, map[string]bool{
		"/leanconsensus/12345678/block/ssz_snappy":         true,
		"/leanconsensus/12345678/aggregation/ssz_snappy":   true,
		"/leanconsensus/12345678/attestation_1/ssz_snappy": true,
	}, announced)

	_, topic := joined(t, n, subnet1, pubsub.WithFloodPublish(true))
	small := wire.Compress(nil, vote(t, 1).Signature[:900])
	require.Less(t, len(small), gossipParams().IDontWantMessageThreshold)
	require.NoError(t, topic.Publish(t.Context(), small))
	want := map[string]bool{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; {
		require.True(t, time.Now().Before(deadline), "no IDONTWANT came")
		large := wire.Compress(nil, vote(t, 1).Signature)
		require.Greater(t, len(large), gossipParams().IDontWantMessageThreshold)
		id := wire.MessageID(subnet1.Name(wire.DefaultNetwork), large)
		want[string(id[:])] = true
		require.NoError(t, topic.Publish(t.Context(), large))
		select {
		case rpc := <-frames:
			require.Empty(t, rpc.GetPublish(), "a rejected message is not forwarded")
			for _, w := range rpc.GetControl().GetIdontwant() {
				for _, got := range w.GetMessageIDs() {
					require.True(t, want[got], "the id of a large message")
				}

				return
			}
		case <-tick.C:
		}
	}
}

// TestPinMessagesCarryNoAuthor looks at what we send, frame by frame. Gossip may
// lose a message while a mesh forms, so votes are sent until one comes.
func TestPinMessagesCarryNoAuthor(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	frames := meshPeer(t, n, subnet1)
	sent := map[string]bool{}
	var m *pb.Message
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); m == nil; {
		require.True(t, time.Now().Before(deadline), "no vote came")
		sa := vote(t, 1)
		ssz, err := testProfile(t).EncodeAttestation(sa)
		require.NoError(t, err)
		sent[string(ssz)] = true
		_, err = n.PublishAttestation(t.Context(), sa)
		require.NoError(t, err)
		select {
		case rpc := <-frames:
			if len(rpc.GetPublish()) > 0 {
				m = rpc.GetPublish()[0]
			}
		case <-tick.C:
		}
	}
	require.Nil(t, m.From)
	require.Nil(t, m.Seqno)
	require.Nil(t, m.Signature)
	require.Nil(t, m.Key)
	require.Equal(t, subnet1.Name(wire.DefaultNetwork), m.GetTopic())
	got, err := wire.Decompress(m.GetData(), maxAttestationSize)
	require.NoError(t, err)
	require.True(t, sent[string(got)], "what came is what was sent")
}
