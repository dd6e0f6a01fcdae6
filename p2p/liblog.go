package p2p

import (
	"context"
	"log/slog"
)

// quietHandler passes the gossip library's log on with Info turned into Debug:
// it writes one such line a message under load.
type quietHandler struct{ inner slog.Handler }

var _ slog.Handler = quietHandler{}

func demoted(l slog.Level) slog.Level {
	if l >= slog.LevelInfo && l < slog.LevelWarn {
		return slog.LevelDebug
	}

	return l
}

// Enabled asks for the level that the line will have.
func (q quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return q.inner.Enabled(ctx, demoted(l))
}

// Handle passes the line on.
func (q quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demoted(r.Level)

	return q.inner.Handle(ctx, r)
}

// WithAttrs returns a handler that demotes all the same.
func (q quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{q.inner.WithAttrs(attrs)}
}

// WithGroup returns a handler that demotes all the same.
func (q quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{q.inner.WithGroup(name)}
}
