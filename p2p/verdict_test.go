package p2p

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// idle is a Host that does not run, and its intake.
func idle(tb testing.TB) (*Host, *fakeIntake) {
	tb.Helper()
	f := newFakeIntake()
	h, err := New(testConfig(tb), f, fakeChain{})
	require.NoError(tb, err)

	return h, f
}

// message is a gossip message on a topic of the default network.
func message(topic wire.Topic, data []byte) *pubsub.Message {
	name := topic.Name(wire.DefaultNetwork)

	return &pubsub.Message{Message: &pb.Message{Topic: &name, Data: data}}
}

const somePeer = peer.ID("a peer")

// TestEveryReasonHasOneValidationResult goes through both stages with every
// reason that an item can end with.
func TestEveryReasonHasOneValidationResult(t *testing.T) {
	t.Parallel()
	rejects := []wire.Reason{
		wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator, wire.ReasonEmptyParticipants,
		wire.ReasonBadSignature, wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonBadProposer,
		wire.ReasonBadCheckpoints,
	}
	for _, reason := range append(wire.Reasons(), wire.ReasonNone) {
		want := pubsub.ValidationIgnore
		switch {
		case reason == wire.ReasonNone || reason == wire.ReasonUnverified:
			want = pubsub.ValidationAccept
		case contains(rejects, reason):
			want = pubsub.ValidationReject
		}
		outcome := pipeline.Outcome{Verdict: pipeline.VerdictOf(reason), Reason: reason}

		h, f := idle(t)
		f.submit = func(context.Context, *pipeline.Item) pipeline.Outcome { return outcome }
		msg := message(subnet1, wire.Compress(nil, numbered(1)))
		require.Equal(t, pubsub.ValidationAccept, h.screen(t.Context(), somePeer, msg))
		require.Equal(t, want, h.submit(t.Context(), somePeer, msg), "stage 2, %v", reason)

		if reason == wire.ReasonNone || reason == wire.ReasonUnverified {
			continue // stage 1 accepts nothing
		}
		f.screen = func(wire.Topic, []byte) (*pipeline.Item, pipeline.Outcome) { return nil, outcome }
		msg = message(subnet1, wire.Compress(nil, numbered(2)))
		require.Equal(t, want, h.screen(t.Context(), somePeer, msg), "stage 1, %v", reason)
		<-f.got
		require.Equal(t, pubsub.ValidationIgnore, h.submit(t.Context(), somePeer, msg), "the marker of stage 1")
		f.none(t)
	}
}

func contains(all []wire.Reason, r wire.Reason) bool {
	for _, a := range all {
		if a == r {
			return true
		}
	}

	return false
}

func TestRejectWithExpiredDeadlineIsIgnore(t *testing.T) {
	t.Parallel()
	h, f := idle(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.submit = func(context.Context, *pipeline.Item) pipeline.Outcome { cancel(); return rejected }
	msg := message(subnet1, wire.Compress(nil, numbered(1)))
	require.Equal(t, pubsub.ValidationAccept, h.screen(ctx, somePeer, msg))
	require.Equal(t, pubsub.ValidationIgnore, h.submit(ctx, somePeer, msg))
	require.Equal(t, 1, count(h.metrics.downgraded))
}

func TestPanicIsIgnoredAndCounted(t *testing.T) {
	t.Parallel()
	logs := &lockedBuffer{}
	cfg := testConfig(t)
	cfg.Logger = slog.New(slog.NewTextHandler(logs, nil))
	f := newFakeIntake()
	h, err := New(cfg, f, fakeChain{})
	require.NoError(t, err)
	f.submit = func(context.Context, *pipeline.Item) pipeline.Outcome { panic("in a worker") }
	for range 100 {
		msg := message(subnet1, wire.Compress(nil, numbered(1)))
		require.Equal(t, pubsub.ValidationAccept, h.screen(t.Context(), somePeer, msg))
		require.Equal(t, pubsub.ValidationIgnore, h.submit(t.Context(), somePeer, msg))
	}
	f.screen = func(wire.Topic, []byte) (*pipeline.Item, pipeline.Outcome) { panic("in a decoder") }
	for range 100 {
		msg := message(subnet1, wire.Compress(nil, numbered(1)))
		require.Equal(t, pubsub.ValidationIgnore, h.screen(t.Context(), somePeer, msg))
		require.Equal(t, pubsub.ValidationIgnore, h.submit(t.Context(), somePeer, msg))
	}
	require.Equal(t, 200, count(h.metrics.internalErrors))
	require.Equal(t, 2, strings.Count(logs.String(), "handler panicked"), "one stack a stage and minute")
	require.Zero(t, h.gate.inside, "a panic leaves the gate")
}

// TestStageOneQueuesAndStageTwoLetsGo: an item is in the queue before its goroutine runs, and the library, which keeps
// messages for seconds, does not keep it.
func TestStageOneQueuesAndStageTwoLetsGo(t *testing.T) {
	t.Parallel()
	h, f := idle(t)
	msg := message(subnet1, wire.Compress(nil, numbered(1)))
	require.Equal(t, pubsub.ValidationAccept, h.screen(t.Context(), somePeer, msg))
	require.Equal(t, 1, f.enqueued)
	require.Equal(t, map[string]int{string(somePeer): 1}, f.peers)
	require.IsType(t, &pipeline.Item{}, msg.ValidatorData)
	require.Equal(t, pubsub.ValidationAccept, h.submit(t.Context(), somePeer, msg))
	require.Nil(t, msg.ValidatorData)
}

// TestFrameLogIsOffUntilAStreamIsReset: the library writes a Debug line a frame there.
func TestFrameLogIsOffUntilAStreamIsReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &frameFaults{tracer: newTracer(newMetrics(nil))}
		enabled := func(l slog.Level) bool { return f.Enabled(t.Context(), l) }
		require.True(t, enabled(slog.LevelWarn))
		require.False(t, enabled(slog.LevelDebug))
		f.listen()
		require.True(t, enabled(slog.LevelDebug))
		<-time.NewTimer(resetWindow).C
		require.False(t, enabled(slog.LevelDebug))
		require.Zero(t, f.listens.Load(), "the clock is not read again")
	})
}

func TestOwnMessagesAreNotChecked(t *testing.T) {
	t.Parallel()
	h, f := idle(t)
	msg := message(subnet1, []byte("anything"))
	require.Equal(t, pubsub.ValidationAccept, h.screen(t.Context(), h.id, msg))
	require.Equal(t, pubsub.ValidationAccept, h.submit(t.Context(), h.id, msg))
	require.Zero(t, f.screened)
}

func TestWhatCanNotBeDecompressedReachesThePipelineAsEmpty(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		topic wire.Topic
		data  []byte
	}{
		"nothing at all":          {subnet1, nil},
		"no snappy":               {subnet1, []byte("\xff\xff\xff\xff\xff\xff plain text")},
		"20 bytes claiming 4 GiB": {blockTopic, append([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, make([]byte, 15)...)},
		"a claim above the topic": {subnet1, wire.Compress(nil, make([]byte, maxAttestationSize+1))},
		"an aggregate too long":   {aggregations, wire.Compress(nil, make([]byte, maxAggregateSize(testProfile(t))+1))},
		"a block too long":        {blockTopic, wire.Compress(nil, make([]byte, wire.MaxPayloadSize+1))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, f := idle(t)
			payload := []byte("not called")
			f.screen = func(topic wire.Topic, p []byte) (*pipeline.Item, pipeline.Outcome) {
				require.Equal(t, tt.topic, topic)
				payload = p

				return nil, pipeline.Outcome{Verdict: pipeline.Reject, Reason: wire.ReasonMalformed}
			}
			msg := message(tt.topic, tt.data)
			require.Equal(t, pubsub.ValidationReject, h.screen(t.Context(), somePeer, msg))
			require.Empty(t, payload)
		})
	}
	for _, tt := range []struct {
		topic wire.Topic
		size  int
	}{{subnet1, maxAttestationSize}, {aggregations, maxAggregateSize(testProfile(t))}, {blockTopic, wire.MaxPayloadSize}} {
		h, _ := idle(t)
		msg := message(tt.topic, wire.Compress(nil, make([]byte, tt.size)))
		require.Equal(t, pubsub.ValidationAccept, h.screen(t.Context(), somePeer, msg), "the largest payload passes")
	}
}

func TestClosedGateIgnores(t *testing.T) {
	t.Parallel()
	h, f := idle(t)
	msg := message(subnet1, wire.Compress(nil, numbered(1)))
	require.Equal(t, pubsub.ValidationAccept, h.screen(t.Context(), somePeer, msg))
	h.StopIntake()
	require.Equal(t, pubsub.ValidationIgnore, h.submit(t.Context(), somePeer, msg))
	f.none(t)
	require.Equal(t, pubsub.ValidationIgnore, h.screen(t.Context(), somePeer, msg))
	require.Equal(t, pubsub.ValidationIgnore, h.submit(t.Context(), somePeer, msg))
	require.Equal(t, 2, count(h.metrics.stopping))
	require.Equal(t, 1, f.screened)
}

func TestGateWaitsForThoseInside(t *testing.T) {
	t.Parallel()
	g := newGate()
	require.True(t, g.enter())
	require.True(t, g.enter())
	idle := g.close()
	require.False(t, g.enter())
	g.leave()
	select {
	case <-idle:
		require.FailNow(t, "one is still inside")
	default:
	}
	g.leave()
	<-idle
	<-g.close()
}

func TestFramesAreCutAtTheMessageLimit(t *testing.T) {
	t.Parallel()
	h, _ := idle(t)
	rpc := &pubsub.RPC{RPC: pb.RPC{Publish: make([]*pb.Message, maxMessagesPerRPC+7)}}
	require.NoError(t, h.limitMessages(somePeer, rpc))
	require.Len(t, rpc.Publish, maxMessagesPerRPC)
	require.NoError(t, h.limitMessages(somePeer, rpc))
	require.Equal(t, 7, count(h.metrics.rpcTrimmed))
}

// FuzzScreen feeds both stages with what a peer may put into a message.
func FuzzScreen(f *testing.F) {
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), wire.Compress(nil, numbered(1)))
	f.Add(uint8(2), append([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, make([]byte, 15)...))
	f.Add(uint8(3), wire.Compress(nil, make([]byte, maxAttestationSize)))
	h, _ := idle(f)
	topics := []wire.Topic{blockTopic, aggregations, subnet1, {Kind: wire.TopicAttestation, Subnet: 9}}
	f.Fuzz(func(t *testing.T, topic uint8, data []byte) {
		at := topics[int(topic)%len(topics)]
		h.pipe.(*fakeIntake).screen = func(_ wire.Topic, payload []byte) (*pipeline.Item, pipeline.Outcome) {
			require.LessOrEqual(t, len(payload), maxPayload(at.Kind, h.cfg.Profile))

			return nil, pipeline.Outcome{Verdict: pipeline.Ignore}
		}
		msg := message(at, data)
		require.Equal(t, pubsub.ValidationIgnore, h.screen(t.Context(), somePeer, msg))
		require.Equal(t, pubsub.ValidationIgnore, h.submit(t.Context(), somePeer, msg))
		require.Len(t, messageID(msg.Message), wire.MessageIDSize)
	})
}
