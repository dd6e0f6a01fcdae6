// Package telemetry makes the three outward signals of a node: the log, the metric registry and the trace provider.
//
// It is imported by the assembly (node, cmd, devnet) alone. Every other package takes a *slog.Logger, a
// prometheus.Registerer and a trace.Tracer as parameters and knows nothing of this one; nothing here is global.
//
// Path of a log record: a component logs through a logger that carries a "component" attribute; the handler compares
// the record with that component's level (one atomic load, so a disabled debug line costs a few nanoseconds), counts it
// in aggnode_log_lines_total, drops it when the same warning or error has been written too often in the last minute
// (the line that follows says how many were left out), and hands it to the text or JSON handler of log/slog.
//
// Path of a span: an ended span goes into a queue of 2,048 and from there in batches to the collector. A full queue
// drops the span and counts it; a collector that never answers costs no caller anything. Without an endpoint the
// provider is the no-op one and tracing costs nothing at all.
//
// What it does not do: it opens no socket but the one to the trace collector (metrics are served by package api), and
// it does not rotate files (the log goes to one writer; the system's log keeper does the rest).
//
// Concurrency: everything exported is safe for concurrent use. The only goroutine is the exporter's; the shutdown
// function of NewTracer waits for it and returns within ShutdownTimeout even if the collector accepts connections and
// never answers.
//
// Failure policy: a fault of an output never reaches the code that reports: write errors of the log are dropped, export
// errors are counted and logged once a minute.
package telemetry
