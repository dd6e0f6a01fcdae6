package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// spanQueueSize bounds the spans that wait for or are in an export. A slot ends with some hundred spans; 2,048
	// bridge a collector's hiccup of several slots in about 4 MiB.
	spanQueueSize = 2048
	spanBatchSize = 512
	spanDelay     = 5 * time.Second // an incomplete batch is sent after this long
	exportTimeout = 5 * time.Second // of one batch, retries included

	// ShutdownTimeout is how long the shutdown function of NewTracer takes at most: flushGrace to send what is queued,
	// then the exports are cancelled, which takes at most cancelGrace.
	ShutdownTimeout = flushGrace + cancelGrace
	flushGrace      = 3 * time.Second
	cancelGrace     = 1 * time.Second
)

// TracerConfig says where spans go.
type TracerConfig struct {
	// Endpoint of an OTLP collector: grpc://host:4317, grpcs://host:4317, http://host:4318 or https://host:4318/path.
	// The path of the HTTP forms defaults to /v1/traces. Empty: no tracing.
	Endpoint   string
	Version    string                // service.version
	Instance   string                // service.instance.id, the name of the node
	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // for aggnode_trace_spans_total; default a private registry
}

// NewTracer makes the trace provider and the function that stops it. With an empty endpoint the provider is a no-op and
// nothing is started. Otherwise one goroutine sends batches until the shutdown function has returned; that takes at
// most ShutdownTimeout, or until ctx of the call ends, whatever the collector does, and spans that could not be sent
// until then are counted as dropped. The connection is made lazily: a collector that is down is no error here.
func NewTracer(ctx context.Context, cfg TracerConfig) (trace.TracerProvider, func(context.Context) error, error) {
	if cfg.Endpoint == "" {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	otlp, err := newOTLP(ctx, cfg.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	provider, stop := newProvider(otlp, cfg)
	return provider, stop, nil
}

// newProvider wires exporter -> counting exporter -> batch processor -> bounded processor -> provider.
func newProvider(otlp sdktrace.SpanExporter, cfg TracerConfig) (*sdktrace.TracerProvider, func(context.Context) error) {
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	exp := newExporter(otlp, logger, newTraceMetrics(cfg.Registerer))
	batches := sdktrace.NewBatchSpanProcessor(exp,
		sdktrace.WithMaxQueueSize(spanQueueSize),
		sdktrace.WithMaxExportBatchSize(spanBatchSize),
		sdktrace.WithBatchTimeout(spanDelay),
		sdktrace.WithExportTimeout(exportTimeout))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(&boundedProcessor{SpanProcessor: batches, exporter: exp}),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "aggnode"),
			attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Instance),
		)))
	return provider, func(ctx context.Context) error { return shutdown(ctx, provider, exp) }
}

// shutdown flushes for a while, then cancels what is still being sent and waits for the exporter's goroutine to end.
// The SDK's own shutdown returns at its deadline and leaves that goroutine behind.
func shutdown(ctx context.Context, provider *sdktrace.TracerProvider, exp *exporter) error {
	flush, cancel := context.WithTimeout(ctx, flushGrace)
	defer cancel()
	// The SDK does nothing at all with a context that has ended, so it gets one that has not; flush limits the wait.
	inner, cancelInner := context.WithTimeout(context.WithoutCancel(ctx), flushGrace)
	defer cancelInner()
	stopped := make(chan error, 1) // one value, so that the goroutine ends in every case
	go func() { stopped <- provider.Shutdown(inner) }()
	var err error
	select {
	case err = <-stopped:
	case <-flush.Done():
		err = flush.Err()
	}
	exp.cancel()
	last := time.NewTimer(cancelGrace)
	defer last.Stop()
	select {
	case <-exp.closed:
	case <-last.C:
		err = errors.Join(err, errors.New("trace exporter still busy"))
	}
	exp.abandon()
	if err != nil {
		return fmt.Errorf("stop trace exporter: %w", err)
	}
	return nil
}

func newOTLP(ctx context.Context, endpoint string) (sdktrace.SpanExporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("trace endpoint: %w", err)
	}
	if u.Host == "" || u.Hostname() == "" {
		return nil, fmt.Errorf("trace endpoint %q: want scheme://host:port with scheme grpc, grpcs, http or https", endpoint)
	}
	switch u.Scheme {
	case "grpc", "grpcs":
		opts := []otlptracegrpc.Option{
			otlptracegrpc.WithEndpoint(hostPort(u, "4317")),
			otlptracegrpc.WithTimeout(exportTimeout),
		}
		if u.Scheme == "grpc" {
			opts = append(opts, otlptracegrpc.WithInsecure())
		}
		exp, err := otlptracegrpc.New(ctx, opts...)
		if err != nil {
			return nil, fmt.Errorf("make trace exporter for %s: %w", endpoint, err)
		}
		return exp, nil
	case "http", "https":
		opts := []otlptracehttp.Option{
			otlptracehttp.WithEndpoint(hostPort(u, "4318")),
			otlptracehttp.WithTimeout(exportTimeout),
		}
		if u.Path != "" && u.Path != "/" {
			opts = append(opts, otlptracehttp.WithURLPath(u.Path))
		}
		if u.Scheme == "http" {
			opts = append(opts, otlptracehttp.WithInsecure())
		}
		exp, err := otlptracehttp.New(ctx, opts...)
		if err != nil {
			return nil, fmt.Errorf("make trace exporter for %s: %w", endpoint, err)
		}
		return exp, nil
	}
	return nil, fmt.Errorf("trace endpoint %q: scheme %q is not grpc, grpcs, http or https", endpoint, u.Scheme)
}

// hostPort completes the authority of u with the port that collectors listen on by default.
func hostPort(u *url.URL, port string) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), port)
}
