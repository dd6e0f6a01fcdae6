package p2p

import (
	"context"
	"log/slog"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
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

// frameFaults listens to the frame log of the gossip library, the only place
// where it tells which peer sent a frame that is broken, too long, or holds too
// much control. It writes nothing.
type frameFaults struct{ tracer *tracer }

var _ slog.Handler = frameFaults{}

// Enabled is true from Debug on: frames over the size limit are told there.
func (f frameFaults) Enabled(context.Context, slog.Level) bool { return true }

// Handle picks the lines that blame a peer; go-libp2p-pubsub v0.19 comm.go.
func (f frameFaults) Handle(_ context.Context, r slog.Record) error {
	isFault := r.Level >= slog.LevelWarn // "bogus rpc from", "RPC's control message is too large"
	if !isFault && r.Message != "error reading rpc" {
		return nil
	}
	var blamed peer.ID
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case peer.ID:
			blamed = v
		case error:
			isFault = isFault || strings.Contains(v.Error(), "message too large")
		}

		return true
	})
	if isFault && blamed != "" {
		select {
		case f.tracer.breaches <- blamed:
		default:
		}
	}

	return nil
}

// WithAttrs returns the handler itself: the library adds nothing that blames.
func (f frameFaults) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup returns the handler itself.
func (f frameFaults) WithGroup(string) slog.Handler { return f }
