package p2p

import (
	"context"
	"runtime/debug"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"aggnode/pipeline"
	"aggnode/wire"
)

// screen is stage 1, on the two validate workers of pubsub. It never waits. It leaves
// the item in ValidatorData, already in the pipeline's queue: what a frame brings is
// there together before a worker looks, and most of the goroutines of stage 2, which
// run after that, find their verdict. Where stage 1 says no it leaves nothing, and
// stage 2, which pubsub calls all the same after an ignore, says no too.
func (h *Host) screen(ctx context.Context, from peer.ID, msg *pubsub.Message) (result pubsub.ValidationResult) {
	if from == h.id {
		return pubsub.ValidationAccept // what we publish was checked where it was made
	}
	if !h.gate.enter() {
		h.metrics.stopping.Inc()

		return pubsub.ValidationIgnore
	}
	defer h.gate.leave()
	defer h.recoverAsIgnore("screen", &result)

	entry, ok := h.topics.byName[msg.GetTopic()]
	if !ok {
		return pubsub.ValidationIgnore // pubsub delivers subscribed topics alone
	}
	// Bytes that are no snappy of this topic's size go on as an empty payload.
	// No container is empty, so the pipeline refuses them as malformed, in its
	// one table of reasons and in its record of the peer.
	payload, err := wire.Decompress(msg.GetData(), maxPayload(entry.topic.Kind, h.cfg.Profile))
	if err != nil {
		payload = nil
	}
	item, outcome := h.pipe.Screen(entry.topic, string(from), payload)
	if item == nil {
		return h.validationResult(ctx, outcome.Verdict)
	}
	h.pipe.Enqueue(ctx, item)
	msg.ValidatorData = item

	return pubsub.ValidationAccept
}

// submit is stage 2, on a goroutine of its own, as many a topic as
// gossipSettings allows. It waits for the pipeline's verdict.
func (h *Host) submit(ctx context.Context, from peer.ID, msg *pubsub.Message) (result pubsub.ValidationResult) {
	if from == h.id {
		return pubsub.ValidationAccept
	}
	item, ok := msg.ValidatorData.(*pipeline.Item)
	if !ok {
		return pubsub.ValidationIgnore
	}
	msg.ValidatorData = nil // gossip keeps the message for seconds: not the item with it
	if !h.gate.enter() {
		h.metrics.stopping.Inc()

		return pubsub.ValidationIgnore
	}
	defer h.gate.leave()
	defer h.recoverAsIgnore("submit", &result)

	outcome := h.pipe.Submit(ctx, item)
	result = h.validationResult(ctx, outcome.Verdict)
	if result == pubsub.ValidationAccept {
		h.metrics.forwardDelay[itemTopic(item).Kind].Observe(time.Since(item.Arrival).Seconds())
	}

	return result
}

// validationResult is the only place where a verdict becomes pubsub's. A reject
// that comes with an expired deadline is no proof of anything: ignore.
func (h *Host) validationResult(ctx context.Context, v pipeline.Verdict) pubsub.ValidationResult {
	switch v {
	case pipeline.Accept:
		return pubsub.ValidationAccept
	case pipeline.Reject:
		if ctx.Err() != nil {
			h.metrics.downgraded.Inc()

			return pubsub.ValidationIgnore
		}

		return pubsub.ValidationReject
	case pipeline.Ignore, pipeline.VerdictUnknown:
		return pubsub.ValidationIgnore
	}

	return pubsub.ValidationIgnore
}

// recoverAsIgnore turns a panic of a validator into an ignore. pubsub recovers
// nothing: the panic would end the process and lose a throttle slot.
func (h *Host) recoverAsIgnore(stage string, result *pubsub.ValidationResult) {
	r := recover()
	if r == nil {
		return
	}
	*result = pubsub.ValidationIgnore
	h.internalError(stage, r)
}

// internalError counts a panic and logs its stack, once a minute a stage.
func (h *Host) internalError(stage string, r any) {
	h.metrics.internalErrors.Inc()
	if h.logLimit.allow("panic "+stage, time.Now(), time.Minute) {
		h.log.Error("handler panicked", "stage", stage, "panic", r, "stack", string(debug.Stack()))
	}
}

// limitMessages is the inspector of incoming frames: messages beyond the limit
// are cut off. It runs on pubsub's event loop.
func (h *Host) limitMessages(_ peer.ID, rpc *pubsub.RPC) error {
	if over := len(rpc.GetPublish()) - maxMessagesPerRPC; over > 0 {
		h.metrics.rpcTrimmed.Add(float64(over))
		rpc.Publish = rpc.Publish[:maxMessagesPerRPC]
	}

	return nil
}
