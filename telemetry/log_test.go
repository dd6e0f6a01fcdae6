package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
)

func newTestLogger(t *testing.T, cfg LogConfig) (*slog.Logger, *Levels, *bytes.Buffer) {
	t.Helper()
	var buf bytes.Buffer
	cfg.Writer = &buf
	logger, levels, err := NewLogger(cfg)
	require.NoError(t, err)
	return logger, levels, &buf
}

func TestComponentLevelsSwitchAtRunTime(t *testing.T) {
	t.Parallel()
	logger, levels, buf := newTestLogger(t, LogConfig{Level: "warn,p2p=debug"})
	p2p := logger.With(ComponentKey, "p2p")
	verify := logger.With(ComponentKey, "verify").With("slot", 3)

	p2p.Debug("one")
	verify.Info("two")
	logger.Info("three")
	require.Contains(t, buf.String(), "msg=one")
	require.NotContains(t, buf.String(), "two")
	require.NotContains(t, buf.String(), "three")

	require.NoError(t, levels.SetLevel("", "info"))
	verify.Info("four")
	require.Contains(t, buf.String(), "msg=four")
	require.True(t, p2p.Enabled(context.Background(), slog.LevelDebug), "a level set by name does not follow the base")

	require.NoError(t, levels.SetLevel("verify", "error"))
	verify.Warn("five")
	require.NotContains(t, buf.String(), "five")
	require.Equal(t, map[string]string{"": "info", "p2p": "debug", "verify": "error"}, levels.Levels())
}

func TestAComponentAttributeInsideAGroupIsNoComponent(t *testing.T) {
	t.Parallel()
	logger, levels, buf := newTestLogger(t, LogConfig{Level: "info,p2p=error"})
	logger.WithGroup("peer").With(ComponentKey, "p2p").Info("written")
	require.Contains(t, buf.String(), "peer.component=p2p")
	require.Len(t, levels.Levels(), 2)
}

func TestLevelSpecsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"loud":       `log level "loud"`,
		"info,p2p=x": `log level "x"`,
		"=debug":     `no component before '='`,
		"P2P=debug":  `log component "P2P"`,
		"p 2=debug":  `log component "p 2"`,
	} {
		_, _, err := NewLogger(LogConfig{Level: spec})
		require.ErrorContains(t, err, want)
	}
	_, _, err := NewLogger(LogConfig{Format: "xml"})
	require.ErrorContains(t, err, `log format "xml"`)
	_, _, err = NewLogger(LogConfig{Level: " info , p2p=debug, ", Format: FormatJSON})
	require.NoError(t, err)
}

func TestComponentsAreBounded(t *testing.T) {
	t.Parallel()
	logger, levels, _ := newTestLogger(t, LogConfig{})
	for i := range maxComponents {
		require.NoError(t, levels.SetLevel(fmt.Sprintf("c%d", i), "debug"))
	}
	require.ErrorContains(t, levels.SetLevel("one_more", "debug"), "more than 64")
	require.False(t, logger.With(ComponentKey, "one_more").Enabled(context.Background(), slog.LevelDebug), "it follows the base level")
	require.Len(t, levels.Levels(), maxComponents+1)
}

func TestLinesAreCountedByLevel(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	logger, _, _ := newTestLogger(t, LogConfig{Level: "debug", Registerer: reg})
	logger.Debug("a")
	logger.Info("b")
	logger.Warn("c")
	for range 50 {
		logger.Error("d")
	}
	logger.Log(context.Background(), slog.LevelError+4, "e")
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP aggnode_log_lines_suppressed_total Warnings and errors held back because the same line had been written too often in a minute.
# TYPE aggnode_log_lines_suppressed_total counter
aggnode_log_lines_suppressed_total 30
# HELP aggnode_log_lines_total Lines logged by level, including those held back as repetitions.
# TYPE aggnode_log_lines_total counter
aggnode_log_lines_total{level="debug"} 1
aggnode_log_lines_total{level="error"} 51
aggnode_log_lines_total{level="info"} 1
aggnode_log_lines_total{level="warn"} 1
`)))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestRepeatedWarningsAreHeldBackAndCountedInTheNextLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logger, _, buf := newTestLogger(t, LogConfig{})
		for i := range 100 {
			logger.Warn("peer misbehaves", "n", i)
		}
		logger.Info("info is never held back")
		logger.With(ComponentKey, "p2p").Warn("peer misbehaves") // another component is another line
		require.Equal(t, floodLines+2, strings.Count(buf.String(), "\n"))
		require.NotContains(t, buf.String(), "suppressed")
		time.Sleep(floodPeriod) // virtual
		logger.Warn("peer misbehaves")
		require.Contains(t, buf.String(), "suppressed=80")
	})
}

func TestTheFloodTableIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	g := newFloodGuard(func() time.Time { return now })
	for i := range 5 * floodKeys {
		ok, _ := g.allow(floodKey{message: fmt.Sprint(i)})
		require.True(t, ok)
		require.LessOrEqual(t, len(g.lines), floodKeys)
	}
	now = now.Add(floodPeriod)
	g.allow(floodKey{message: "after"})
	require.LessOrEqual(t, len(g.lines), floodKeys)
}

func TestJSONLinesCarryComponentAttributesAndTraceID(t *testing.T) {
	t.Parallel()
	logger, _, buf := newTestLogger(t, LogConfig{Format: FormatJSON, Attrs: []slog.Attr{slog.String("node", "n0")}})
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}})
	ctx := trace.ContextWithSpanContext(context.Background(), sc)
	logger.With(ComponentKey, "aggregate").InfoContext(ctx, "slot", "slot", 7)
	var line map[string]any
	require.NoError(t, json.Unmarshal(buf.Bytes(), &line))
	require.Equal(t, "n0", line["node"])
	require.Equal(t, "aggregate", line["component"])
	require.EqualValues(t, 7, line["slot"])
	require.Equal(t, sc.TraceID().String(), line["trace_id"])
	_, err := time.Parse(time.RFC3339, line["time"].(string))
	require.NoError(t, err)
}

func TestColourTouchesTheLevelOnly(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"time=2026-11-30T22:00:00.000Z level=WARN msg=x a=level=WARN\n": "time=2026-11-30T22:00:00.000Z \x1b[33mlevel=WARN\x1b[0m msg=x a=level=WARN\n",
		"time=2026-11-30T22:00:00.000Z level=ERROR msg=x\n":             "time=2026-11-30T22:00:00.000Z \x1b[31mlevel=ERROR\x1b[0m msg=x\n",
		"no level here\n": "no level here\n",
	} {
		var buf bytes.Buffer
		n, err := (&colourWriter{w: &buf}).Write([]byte(in))
		require.NoError(t, err)
		require.Equal(t, len(in), n)
		require.Equal(t, want, buf.String())
	}
	logger, _, buf := newTestLogger(t, LogConfig{})
	logger.Error("plain")
	require.NotContains(t, buf.String(), "\x1b", "no colour unless the writer is a terminal")
}

func TestLoggingAndSwitchingConcurrently(t *testing.T) {
	t.Parallel()
	logger, levels, _ := newTestLogger(t, LogConfig{Format: FormatJSON})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l := logger.With(ComponentKey, fmt.Sprintf("c%d", i%3))
			for n := range 200 {
				l.Warn("w", "n", n)
				if err := levels.SetLevel(fmt.Sprintf("c%d", n%3), "info"); err != nil {
					t.Error(err)
				}
				_ = levels.Levels()
			}
		})
	}
	wg.Wait()
}

func BenchmarkDisabledDebugLine(b *testing.B) {
	logger, _, err := NewLogger(LogConfig{Writer: &bytes.Buffer{}})
	require.NoError(b, err)
	logger = logger.With(ComponentKey, "pipeline")
	b.ReportAllocs()
	for b.Loop() {
		if logger.Enabled(context.Background(), slog.LevelDebug) {
			b.Fatal("enabled")
		}
	}
}
