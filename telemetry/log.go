package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/term"
)

// ComponentKey is the attribute that names the component of a logger: logger.With(ComponentKey, "p2p").
const ComponentKey = "component"

// Log formats.
const (
	FormatText = "text" // one line of key=value pairs, levels coloured when the writer is a terminal
	FormatJSON = "json" // one JSON object a line
)

// LogConfig says where the log goes and what it looks like. The zero value is text at level info on standard error.
type LogConfig struct {
	Writer     io.Writer             // default os.Stderr
	Format     string                // FormatText (default) or FormatJSON
	Level      string                // "info" (default), or with components: "info,p2p=debug"
	Attrs      []slog.Attr           // on every line, for example the name of the node
	Registerer prometheus.Registerer // for aggnode_log_lines_total; default a private registry
}

// NewLogger makes the root logger of a process and the switch for its levels. Components derive theirs with
// logger.With(ComponentKey, name). Identical warnings and errors (same component, level and message) are written at
// most 20 times a minute; the counter sees all of them.
func NewLogger(cfg LogConfig) (*slog.Logger, *Levels, error) {
	levels := newLevels(slog.LevelInfo)
	if err := levels.apply(cfg.Level); err != nil {
		return nil, nil, err
	}
	w := cfg.Writer
	if w == nil {
		w = os.Stderr
	}
	opts := &slog.HandlerOptions{Level: slog.Level(-128), ReplaceAttr: formatAttr}
	var inner slog.Handler
	switch cfg.Format {
	case FormatText, "":
		if isTerminal(w) {
			w = &colourWriter{w: w}
		}
		inner = slog.NewTextHandler(w, opts)
	case FormatJSON:
		inner = slog.NewJSONHandler(w, opts)
	default:
		return nil, nil, fmt.Errorf("log format %q: want %s or %s", cfg.Format, FormatText, FormatJSON)
	}
	if len(cfg.Attrs) > 0 {
		inner = inner.WithAttrs(cfg.Attrs)
	}
	h := &handler{
		inner:  inner,
		level:  levels.base,
		levels: levels,
		lines:  newLogMetrics(cfg.Registerer),
		flood:  newFloodGuard(time.Now),
	}
	return slog.New(h), levels, nil
}

// handler applies component levels, counts lines, holds back floods and adds the trace id.
type handler struct {
	inner     slog.Handler
	level     *componentLevel // of this logger's component
	component string
	inGroup   bool

	levels *Levels     // shared by all handlers of a logger
	lines  *logMetrics // shared
	flood  *floodGuard // shared
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return int64(level) >= h.level.level.Load()
}

// Handle implements slog.Handler. It never returns an error: nobody could act on it.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.lines.count(r.Level)
	if r.Level >= slog.LevelWarn {
		ok, suppressed := h.flood.allow(floodKey{component: h.component, message: r.Message, level: r.Level})
		if !ok {
			h.lines.suppressed.Inc()
			return nil
		}
		if suppressed > 0 {
			r.AddAttrs(slog.Uint64("suppressed", suppressed))
		}
	}
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()))
	}
	_ = h.inner.Handle(ctx, r) // the log is the last resort: there is no other place to report its own failure
	return nil
}

// WithAttrs implements slog.Handler; a component attribute outside any group switches to that component's level.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	if !h.inGroup {
		for _, a := range attrs {
			if a.Key == ComponentKey {
				c.component = a.Value.String()
				c.level = h.levels.component(c.component)
			}
		}
	}
	c.inner = h.inner.WithAttrs(attrs)
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.inGroup = h.inGroup || name != ""
	c.inner = h.inner.WithGroup(name)
	return &c
}

// formatAttr writes the time in UTC with milliseconds: lines of several nodes then sort and compare as text.
func formatAttr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		return slog.String(slog.TimeKey, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}
