package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exportLogPeriod is the time between two log lines about failing exports: a collector may be down for hours.
const exportLogPeriod = time.Minute

// exporter sends batches through another exporter, counts what became of each span, keeps errors away from the global
// handler of the otel module, and can be cancelled as a whole.
type exporter struct {
	inner   sdktrace.SpanExporter
	logger  *slog.Logger
	metrics *traceMetrics
	pending atomic.Int64 // spans accepted by boundedProcessor and not yet counted in metrics

	ctx       context.Context    // ends when cancel is called; bounds every export beside its own deadline
	cancel    context.CancelFunc // ends running exports and refuses later ones
	closed    chan struct{}      // closed when the batch processor has made its last call
	closeOnce sync.Once

	// owned by the goroutine of the batch processor
	lastLog time.Time
	unsaid  int
}

func newExporter(inner sdktrace.SpanExporter, logger *slog.Logger, metrics *traceMetrics) *exporter {
	ctx, cancel := context.WithCancel(context.Background())
	return &exporter{
		inner: inner, logger: logger, metrics: metrics,
		ctx: ctx, cancel: cancel, closed: make(chan struct{}),
	}
}

// ExportSpans implements sdktrace.SpanExporter. The error is handled here: it never returns one.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	n := len(spans)
	if e.ctx.Err() != nil {
		return nil // abandon counts them
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := e.inner.ExportSpans(ctx, spans)
	if e.ctx.Err() != nil && err != nil {
		return nil
	}
	e.pending.Add(-int64(n))
	if err == nil {
		e.metrics.exported.Add(float64(n))
		return nil
	}
	e.metrics.failed.Add(float64(n))
	e.unsaid += n
	if now := time.Now(); e.lastLog.IsZero() || now.Sub(e.lastLog) >= exportLogPeriod {
		e.logger.Warn("trace spans not exported", "spans", e.unsaid, "error", err)
		e.lastLog, e.unsaid = now, 0
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter. The batch processor calls it once, last, with a context that may have
// ended; the connection is closed all the same.
func (e *exporter) Shutdown(context.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), cancelGrace/2)
	defer cancel()
	err := e.inner.Shutdown(ctx)
	e.closeOnce.Do(func() { close(e.closed) })
	return err
}

// abandon counts the spans that nobody will send any more as dropped.
func (e *exporter) abandon() {
	if n := e.pending.Swap(0); n > 0 {
		e.metrics.dropped.Add(float64(n))
		e.logger.Warn("trace spans dropped at shutdown", "spans", n)
	}
}

// boundedProcessor drops spans before the batch processor would, because that one counts its drops for itself alone.
// Since at most spanQueueSize spans are pending here, the queue of the same size behind it never overflows.
type boundedProcessor struct {
	sdktrace.SpanProcessor
	exporter *exporter
}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (p *boundedProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if p.exporter.pending.Add(1) > spanQueueSize {
		p.exporter.pending.Add(-1)
		p.exporter.metrics.dropped.Inc()
		return
	}
	p.SpanProcessor.OnEnd(s)
}
