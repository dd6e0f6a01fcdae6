package p2p

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

// Rhythm of dialling bootnodes.
const (
	// redialMin and redialMax bound the wait after a failed dial, as the other
	// clients wait 12 to 30 s (protocol 5.1). It grows from one to the other.
	redialMin = 12 * time.Second
	redialMax = 30 * time.Second
	// redialGrowth is the factor after each failure.
	redialGrowth = 1.3

	// redialSoon is the wait after a connection was lost: a peer that restarts
	// is back within some seconds, and it dials us as well.
	redialSoon = 2 * time.Second
)

// redialWait is the time before the next dial of one bootnode.
type redialWait struct {
	next time.Duration
	// jitter returns a number in [0, 1).
	jitter func() float64
}

// afterFailure returns the wait after a failed dial: it grows to redialMax and is
// shortened by up to a quarter, so that nodes started together do not dial in
// step, but never under redialMin.
func (r *redialWait) afterFailure() time.Duration {
	r.next = min(max(time.Duration(float64(r.next)*redialGrowth), redialMin*4/3), redialMax)

	return max(redialMin, r.next-time.Duration(float64(r.next/4)*r.jitter()))
}

// afterLoss returns the wait after a connection was lost and starts the growth
// anew.
func (r *redialWait) afterLoss() time.Duration {
	r.next = 0

	return redialSoon/2 + time.Duration(float64(redialSoon)*r.jitter())
}

// keepConnected dials one bootnode until it answers, and again when it goes.
func (h *Host) keepConnected(ctx context.Context, s *session, b peer.AddrInfo) {
	wait := redialWait{jitter: rand.Float64}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.redial[b.ID]: // the connection was lost
			timer.Reset(wait.afterLoss())
			// Wait for the timer and no further wake-up: the peer may come and go.
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		case <-timer.C:
		}
		if s.host.Network().Connectedness(b.ID) != network.Connected {
			h.dial(ctx, s, b)
		}
		// Where the dial succeeded this is a check on a connection whose loss
		// nobody told us of.
		timer.Reset(wait.afterFailure())
	}
}

// dial makes one attempt.
func (h *Host) dial(ctx context.Context, s *session, b peer.AddrInfo) {
	if h.book.inBackoff(b.ID, time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// Names may resolve anew and addresses expire, so they are given each time.
	s.host.Peerstore().AddAddrs(b.ID, b.Addrs, peerstore.PermanentAddrTTL)
	err := s.host.Connect(network.WithForceDirectDial(ctx, "bootnode"), b)
	if err == nil {
		return // counted by the notification of the connection
	}
	if s.ctx.Err() != nil {
		return
	}
	h.metrics.connections.WithLabelValues("outbound", dialResult(err)).Inc()
	if h.logLimit.allow("dial "+b.ID.String(), time.Now(), 5*time.Minute) {
		h.log.Info("bootnode is not reachable, dialling goes on", "peer", b.ID, "client", h.clientName(b.ID), "error", err)
	}
}
