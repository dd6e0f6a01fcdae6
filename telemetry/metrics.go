package telemetry

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// logMetrics counts what is logged.
type logMetrics struct {
	debug, info, warn, err prometheus.Counter
	suppressed             prometheus.Counter
}

func newLogMetrics(reg prometheus.Registerer) *logMetrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	lines := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_log_lines_total",
		Help: "Lines logged by level, including those held back as repetitions.",
	}, []string{"level"})
	m := &logMetrics{
		debug: lines.WithLabelValues("debug"),
		info:  lines.WithLabelValues("info"),
		warn:  lines.WithLabelValues("warn"),
		err:   lines.WithLabelValues("error"),
		suppressed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_log_lines_suppressed_total",
			Help: "Warnings and errors held back because the same line had been written too often in a minute.",
		}),
	}
	reg.MustRegister(lines, m.suppressed)
	return m
}

func (m *logMetrics) count(level slog.Level) {
	switch levelName(level) {
	case "error":
		m.err.Inc()
	case "warn":
		m.warn.Inc()
	case "info":
		m.info.Inc()
	default:
		m.debug.Inc()
	}
}

// traceMetrics counts what became of ended spans: every span that is sampled ends in exactly one outcome.
type traceMetrics struct {
	exported, dropped, failed prometheus.Counter
}

func newTraceMetrics(reg prometheus.Registerer) *traceMetrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_trace_spans_total",
		Help: "Ended trace spans by outcome: exported, dropped (queue full or stopping) or failed (the collector did not take them).",
	}, []string{"outcome"})
	reg.MustRegister(spans)
	return &traceMetrics{
		exported: spans.WithLabelValues("exported"),
		dropped:  spans.WithLabelValues("dropped"),
		failed:   spans.WithLabelValues("failed"),
	}
}
