package p2p

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"aggnode/wire"
)

// direction returns the label value of a connection's direction.
func direction(d network.Direction) string {
	if d == network.DirOutbound {
		return "outbound"
	}

	return "inbound"
}

// connected is called by the swarm for each new connection, on a goroutine of
// its own a connection.
func (h *Host) connected(_ network.Network, c network.Conn) {
	p := c.RemotePeer()
	h.metrics.connections.WithLabelValues(direction(c.Stat().Direction), "success").Inc()
	h.book.connect(p, time.Now())
	h.log.Debug("peer connected", "peer", p, "direction", direction(c.Stat().Direction),
		"address", c.RemoteMultiaddr())
	if c.Stat().Direction == network.DirOutbound {
		h.askStatus(p)
	}
}

// disconnected is called by the swarm for each closed connection.
func (h *Host) disconnected(n network.Network, c network.Conn) {
	p := c.RemotePeer()
	reason := closeReason(c)
	h.metrics.disconnections.WithLabelValues(direction(c.Stat().Direction), reason).Inc()
	h.log.Debug("peer disconnected", "peer", p, "reason", reason)
	if n.Connectedness(p) == network.Connected {
		return
	}
	h.book.disconnect(p, time.Now())
	h.forgetStatus(p)
	if wake, ok := h.redial[p]; ok {
		select {
		case wake <- struct{}{}: // capacity 1: a wake-up that is pending is enough
		default:
		}
	}
}

// closeReason tells why a closed connection ended. The swarm does not say, but
// the transport answers an attempt to open a stream with it, at once.
func closeReason(c network.Conn) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := c.NewStream(ctx)
	if err == nil {
		_ = s.Reset() // still open: the swarm closed it without the transport

		return "local_close"
	}
	var (
		closed  *network.ConnError
		timeout net.Error
	)
	switch {
	case errors.As(err, &closed) && closed.Remote:
		return "remote_close"
	case errors.As(err, &closed):
		return "local_close"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}

	return "error"
}

// dialResult returns the label value of a failed dial.
func dialResult(err error) string {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return "timeout"
	}

	return "error"
}

// gater refuses connections with peers in back-off. Called by the swarm from
// any goroutine.
type gater struct {
	book    *peerBook
	metrics *metrics
}

var _ connmgr.ConnectionGater = gater{}

// InterceptPeerDial refuses to dial a peer in back-off.
func (g gater) InterceptPeerDial(p peer.ID) bool { return g.admit(p, "outbound") }

// InterceptAddrDial lets every address pass: the peer was checked.
func (g gater) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept lets everyone pass: the peer id is not known yet.
func (g gater) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured refuses a peer in back-off as soon as it is known.
func (g gater) InterceptSecured(d network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return d == network.DirOutbound || g.admit(p, "inbound")
}

// InterceptUpgraded lets everyone pass.
func (g gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

func (g gater) admit(p peer.ID, dir string) bool {
	if !g.book.inBackoff(p, time.Now()) {
		return true
	}
	g.metrics.gated.WithLabelValues(dir).Inc()

	return false
}

// fault counts a breach of a protocol by a peer and disconnects it where it was
// one too many.
func (h *Host) fault(p peer.ID, f fault) {
	h.metrics.peerFaults.WithLabelValues(f.String()).Inc()
	h.log.Debug("peer broke a protocol", "peer", p, "fault", f)
	if h.book.fault(p, time.Now()) {
		h.dismiss(p, causeFaults, "fault", f)
	}
}

// dismiss disconnects a peer and keeps it away for its back-off. more goes into
// the log line.
func (h *Host) dismiss(p peer.ID, c cause, more ...any) {
	wait := h.book.strike(p, time.Now())
	h.metrics.peerDisconnects.WithLabelValues(c.String()).Inc()
	if h.logLimit.allow("dismiss "+c.String(), time.Now(), h.cfg.SlotDuration) {
		attrs := []any{"peer", p, "client", h.clientName(p), "cause", c, "backoff", wait}
		h.log.Warn("peer disconnected by us", append(attrs, more...)...)
	}
	if s := h.session.Load(); s != nil {
		_ = s.host.Network().ClosePeer(p) // what it returns is about a connection that is gone
	}
}

// judgePeers applies the rules of the peer book to every connected peer, twice a
// slot, and takes the breaches that the gossip library reported.
func (h *Host) judgePeers(ctx context.Context, s *session) {
	ticker := time.NewTicker(h.cfg.SlotDuration / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-s.tracer.breaches:
			h.fault(p, faultGossip)
		case <-ticker.C:
			for _, p := range s.host.Network().Peers() {
				score := h.pipe.PeerScore(string(p))
				c := h.book.judge(p, score.Rejected, score.Verified, s.tracer.takeDrops(p) > 0, time.Now())
				if c != causeUnknown {
					h.dismiss(p, c)
				}
			}
		}
	}
}

// clientName returns the node name of a peer, or "unknown".
func (h *Host) clientName(p peer.ID) string {
	if name, ok := h.names[p]; ok {
		return name
	}

	return unknownClient
}

// unknownClient is the label of peers that the network folder does not name.
const unknownClient = "unknown"

// Peer is what is known about a connected peer.
type Peer struct {
	ID string
	// Client is the node name, or "unknown".
	Client string
	// Agent is what identify told, untrusted text, or "".
	Agent     string
	Address   string
	Direction string
	// Meshes is the number of our gossip meshes that the peer is in.
	Meshes int
	// Status is the last one that the peer sent, nil before.
	Status *wire.Status
}
