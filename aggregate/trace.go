package aggregate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"aggnode/wire"
)

// traceContext returns ctx with the remote parent that every node derives for an aggregation: a trace id from (network,
// slot, data root), so that the jobs of all aggregators over one data root are in one trace without any exchange.
func traceContext(ctx context.Context, network string, slot wire.Slot, root wire.DataRoot) context.Context {
	b := binary.LittleEndian.AppendUint64([]byte(network), uint64(slot))
	sum := sha256.Sum256(append(b, root[:]...))
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID(sum[:16]),
		SpanID:     trace.SpanID(sum[16:24]),
		TraceFlags: trace.FlagsSampled,
		Remote:     true,
	}))
}

// traceJob opens the spans of a job; snapshot and plan lie behind it already.
func (a *Aggregator) traceJob(j *job, s *Snapshot) {
	ctx := traceContext(j.ctx, a.cfg.Network, j.slot(), j.plan.group.Root)
	j.ctx, j.span = a.tracer.Start(ctx, "job", trace.WithTimestamp(j.began))
	if j.span.IsRecording() {
		j.span.SetAttributes(
			attribute.Int64("slot", int64(j.slot())),
			attribute.String("data_root", j.plan.group.Root.Short()),
			attribute.String("trigger", j.trigger.String()),
			attribute.Int("raw", len(j.plan.raw)),
			attribute.Int("children", len(j.plan.children)),
			attribute.Int("participants", j.plan.width),
		)
	}
	_, span := a.tracer.Start(j.ctx, "snapshot", trace.WithTimestamp(j.began))
	span.End(trace.WithTimestamp(s.Taken))
	_, span = a.tracer.Start(j.ctx, "plan", trace.WithTimestamp(s.Taken))
	span.End()
	_, j.waitSpan = a.tracer.Start(j.ctx, "wait")
}

func endSpan(s trace.Span, err error) {
	if err != nil {
		s.SetStatus(codes.Error, err.Error())
	}
	s.End()
}

func endJobSpan(j *job, o JobOutcome) {
	j.span.SetAttributes(attribute.String("outcome", o.String()))
	endSpan(j.span, j.err)
}
