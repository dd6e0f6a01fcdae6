package aggregate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"aggnode/wire"
)

// traceContext returns ctx with the trace that every node derives for a data root, so that the jobs of all aggregators
// over it, and the checks of what they make, are in one trace without any exchange. It has no span id: nobody emits a
// span above the jobs, and one that named a parent would be an orphan to every trace store.
func traceContext(ctx context.Context, network string, slot wire.Slot, root wire.DataRoot) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    wire.TraceID(network, slot, root),
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
