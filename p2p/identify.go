package p2p

import (
	"context"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// assumedGossip is the protocol that every client of the network speaks
// (protocol 3.4), assumed of a peer that does not answer identify.
const assumedGossip = protocol.ID(pubsub.GossipSubID_v12)

// watchIdentify offers gossip to peers that do not answer identify. pubsub takes
// a peer only after an event that lists a gossip protocol, and a peer without
// identify would never get our stream, hence often never open its own.
func (h *Host) watchIdentify(ctx context.Context, s *session) {
	bus := s.host.EventBus()
	events, err := bus.Subscribe(new(event.EvtPeerIdentificationFailed))
	if err != nil {
		h.log.Error("peers without identify are left out of gossip", "error", err)

		return
	}
	defer func() { _ = events.Close() }()
	announce, err := bus.Emitter(new(event.EvtPeerProtocolsUpdated))
	if err != nil {
		h.log.Error("peers without identify are left out of gossip", "error", err)

		return
	}
	defer func() { _ = announce.Close() }()

	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events.Out():
			if !ok {
				return
			}
			if failed, ok := e.(event.EvtPeerIdentificationFailed); ok {
				h.assumeGossip(s, announce, failed)
			}
		}
	}
}

// assumeGossip tells pubsub that the peer speaks gossip, and asks it for its
// Status, which shows whether it accepts any stream of ours.
func (h *Host) assumeGossip(s *session, announce event.Emitter, failed event.EvtPeerIdentificationFailed) {
	p := failed.Peer
	h.metrics.identifyFailed.Inc()
	if s.host.Network().Connectedness(p) != network.Connected {
		return // the connection broke before identify was through
	}
	if h.logLimit.allow("identify "+p.String(), time.Now(), 10*time.Minute) {
		h.log.Warn("peer refuses identify, gossip is offered to it all the same", "peer", p,
			"client", h.clientName(p), "error", failed.Reason)
	}
	h.noteUnnamed(p)
	if err := s.host.Peerstore().AddProtocols(p, assumedGossip); err != nil {
		h.log.Debug("assume gossip", "peer", p, "error", err)

		return
	}
	if err := announce.Emit(event.EvtPeerProtocolsUpdated{Peer: p, Added: []protocol.ID{assumedGossip}}); err != nil {
		h.log.Debug("announce gossip", "peer", p, "error", err)
	}
	h.askStatus(p)
}

// noteUnnamed remembers a peer that refuses identify until it is gone.
func (h *Host) noteUnnamed(p peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unnamed[p] = struct{}{}
}
