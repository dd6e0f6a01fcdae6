package p2p

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// resetWindow is how long after the library has reset a stream of frames its reason
// is listened for. It follows on the same goroutine, which may be held up.
const resetWindow = time.Second

// frameFaults listens to the frame log of the gossip library, the only place
// where it tells which peer sent a frame that is broken, too long, or holds too
// much control. It writes nothing. Safe for concurrent use.
type frameFaults struct {
	tracer *tracer
	// listens is the Unix time in nanoseconds until which Debug lines are listened
	// to, 0 when they are not.
	listens atomic.Int64
}

var _ slog.Handler = (*frameFaults)(nil)

// Enabled is true for warnings, and for Debug while a stream was just reset: frames
// over the size limit are told there, and so is each good frame, which would cost
// half a microsecond.
func (f *frameFaults) Enabled(_ context.Context, l slog.Level) bool {
	if l >= slog.LevelWarn {
		return true
	}
	until := f.listens.Load()
	if until == 0 {
		return false
	}
	if time.Now().UnixNano() < until {
		return true
	}
	f.listens.CompareAndSwap(until, 0)

	return false
}

// listen makes Debug lines heard for a while.
func (f *frameFaults) listen() { f.listens.Store(time.Now().Add(resetWindow).UnixNano()) }

// Handle picks the lines that blame a peer; go-libp2p-pubsub v0.19 comm.go.
func (f *frameFaults) Handle(_ context.Context, r slog.Record) error {
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
func (f *frameFaults) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup returns the handler itself.
func (f *frameFaults) WithGroup(string) slog.Handler { return f }

// gossipHost is the host as the gossip library sees it: faults learns of each stream
// of frames that the library gives up.
type gossipHost struct {
	host.Host
	faults *frameFaults
}

// SetStreamHandler hands the library streams that tell of their reset.
func (g gossipHost) SetStreamHandler(id protocol.ID, serve network.StreamHandler) {
	g.Host.SetStreamHandler(id, g.watch(serve))
}

// SetStreamHandlerMatch does the same.
func (g gossipHost) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, serve network.StreamHandler) {
	g.Host.SetStreamHandlerMatch(id, match, g.watch(serve))
}

func (g gossipHost) watch(serve network.StreamHandler) network.StreamHandler {
	return func(s network.Stream) { serve(&frameStream{Stream: s, faults: g.faults}) }
}

// frameStream is a stream that a peer opened for its frames.
type frameStream struct {
	network.Stream
	faults *frameFaults
}

// Reset is what the library does before it says what is wrong with a frame.
func (s *frameStream) Reset() error {
	s.faults.listen()

	return s.Stream.Reset()
}
