package telemetry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// fakeOTLP is a collector's client: export is called for each batch.
type fakeOTLP struct {
	export func(ctx context.Context, n int) error
	mu     sync.Mutex
	spans  int
	closed bool
}

func (f *fakeOTLP) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if f.export != nil {
		if err := f.export(ctx, len(spans)); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spans += len(spans)
	return nil
}

func (f *fakeOTLP) Shutdown(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func spansBy(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	out := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return out
}

func makeSpans(p *sdktrace.TracerProvider, n int) {
	tracer := p.Tracer("test")
	for range n {
		_, span := tracer.Start(context.Background(), "job")
		span.End()
	}
}

func TestNoEndpointMeansTheNoOpProvider(t *testing.T) {
	t.Parallel()
	p, stop, err := NewTracer(context.Background(), TracerConfig{})
	require.NoError(t, err)
	require.IsType(t, noop.TracerProvider{}, p)
	require.NoError(t, stop(context.Background()))
	_, span := p.Tracer("x").Start(context.Background(), "y")
	require.False(t, span.IsRecording())
}

func TestEndpointsThatAreNoneAreRefusedWithTheirText(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"localhost:4317", "ftp://host:1", "grpc://", "http://:4318", "://", "grpc:///x"} {
		_, _, err := NewTracer(context.Background(), TracerConfig{Endpoint: endpoint})
		require.Error(t, err, endpoint)
		require.Contains(t, err.Error(), endpoint)
	}
}

func TestEverySpanIsExportedWhenTheCollectorTakesThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		otlp := &fakeOTLP{}
		p, stop := newProvider(otlp, TracerConfig{Registerer: reg})
		makeSpans(p, 1300)
		time.Sleep(2 * spanDelay)
		makeSpans(p, 10)
		require.NoError(t, stop(context.Background()))
		require.True(t, otlp.closed)
		require.Equal(t, 1310, otlp.spans)
		require.Equal(t, map[string]float64{"exported": 1310, "dropped": 0, "failed": 0}, spansBy(t, reg))
		problems, err := testutil.GatherAndLint(reg)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

func TestACollectorThatNeverAnswersCostsNothingButItsSpans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		otlp := &fakeOTLP{export: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		p, stop := newProvider(otlp, TracerConfig{Registerer: reg})
		start := time.Now()
		makeSpans(p, 3*spanQueueSize)
		require.Zero(t, time.Since(start), "ending a span never waits")
		require.GreaterOrEqual(t, spansBy(t, reg)["dropped"], float64(2*spanQueueSize))

		err := stop(context.Background())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), ShutdownTimeout)
		require.True(t, otlp.closed)
		got := spansBy(t, reg)
		require.Zero(t, got["exported"])
		require.Equal(t, float64(3*spanQueueSize), got["dropped"]+got["failed"], "every span has one outcome")
	})
}

func TestACollectorClientThatIgnoresItsContextDelaysTheStopNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		reg := prometheus.NewRegistry()
		p, stop := newProvider(&fakeOTLP{export: func(context.Context, int) error {
			<-release
			return nil
		}}, TracerConfig{Registerer: reg})
		makeSpans(p, 5)
		start := time.Now()
		require.ErrorContains(t, stop(context.Background()), "still busy")
		require.Equal(t, ShutdownTimeout, time.Since(start))
		require.Equal(t, float64(5), spansBy(t, reg)["dropped"])
		close(release)
	})
}

func TestAStopWithoutTimeLeftStillEndsTheExporter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		otlp := &fakeOTLP{export: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		p, stop := newProvider(otlp, TracerConfig{})
		makeSpans(p, 5)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		start := time.Now()
		require.ErrorIs(t, stop(ctx), context.Canceled)
		require.Zero(t, time.Since(start))
		require.True(t, otlp.closed)
	})
}

func TestExportErrorsAreCountedAndLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logger, _, buf := newTestLogger(t, LogConfig{})
		reg := prometheus.NewRegistry()
		p, stop := newProvider(&fakeOTLP{export: func(context.Context, int) error {
			return errors.New("refused")
		}}, TracerConfig{Registerer: reg, Logger: logger})
		for range 24 { // two minutes
			makeSpans(p, 1)
			time.Sleep(spanDelay)
		}
		require.NoError(t, stop(context.Background()))
		require.Equal(t, float64(24), spansBy(t, reg)["failed"])
		require.Equal(t, 2, strings.Count(buf.String(), "trace spans not exported"))
	})
}

func TestSpansReachACollectorOverHTTP(t *testing.T) {
	t.Parallel()
	got := make(chan string, 8) // one request is expected
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Method + " " + r.URL.Path
	}))
	defer srv.Close()
	reg := prometheus.NewRegistry()
	p, stop, err := NewTracer(context.Background(), TracerConfig{Endpoint: srv.URL, Registerer: reg})
	require.NoError(t, err)
	makeSpans(p.(*sdktrace.TracerProvider), 3)
	require.NoError(t, stop(context.Background()))
	require.Equal(t, "POST /v1/traces", <-got)
	require.Equal(t, float64(3), spansBy(t, reg)["exported"])
}

// A real connection to something that accepts and never answers, over both protocols: the stop returns, and the spans
// are accounted for.
func TestStopReturnsAgainstASilentCollector(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"grpc", "http"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var conns []net.Conn
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					conns = append(conns, c)
				}
			}()
			reg := prometheus.NewRegistry()
			p, stop, err := NewTracer(context.Background(), TracerConfig{Endpoint: scheme + "://" + l.Addr().String(), Registerer: reg})
			require.NoError(t, err)
			makeSpans(p.(*sdktrace.TracerProvider), 3)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			require.Error(t, stop(ctx))
			got := spansBy(t, reg)
			require.Equal(t, float64(3), got["dropped"]+got["failed"])
			require.NoError(t, l.Close())
			<-done
			for _, c := range conns {
				require.NoError(t, c.Close())
			}
		})
	}
}
