package p2p

import (
	"cmp"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"
)

// maxAgentSize cuts the agent text of a peer, which is its own choice.
const maxAgentSize = 128

// Peers returns the connected peers, ordered by client name and id.
func (h *Host) Peers() []Peer {
	s := h.session.Load()
	if s == nil {
		return nil
	}
	meshes := s.tracer.meshTopics()
	var out []Peer
	for _, p := range s.host.Network().Peers() {
		conns := s.host.Network().ConnsToPeer(p)
		if len(conns) == 0 {
			continue // gone meanwhile
		}
		info := Peer{
			ID: p.String(), Client: h.clientName(p), Agent: agentOf(s, p),
			Address:   conns[0].RemoteMultiaddr().String(),
			Direction: direction(conns[0].Stat().Direction),
			Meshes:    meshes[p],
		}
		h.mu.Lock()
		if status, ok := h.statuses[p]; ok {
			info.Status = &status
		}
		h.mu.Unlock()
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
	})

	return out
}

// agentOf returns what a peer told of itself in identify.
func agentOf(s *session, p peer.ID) string {
	v, err := s.host.Peerstore().Get(p, "AgentVersion")
	if err != nil {
		return ""
	}
	text, _ := v.(string)

	return text[:min(len(text), maxAgentSize)]
}

// peerCollector counts peers by client when it is asked. Its series are those of
// the configured names and one for all others.
type peerCollector struct {
	host            *Host
	connected, mesh *prometheus.Desc
}

var _ prometheus.Collector = peerCollector{}

func newPeerCollector(h *Host) peerCollector {
	labels := []string{"client"}

	return peerCollector{
		host:      h,
		connected: prometheus.NewDesc("lean_connected_peers", "Connected peers by client.", labels, nil),
		mesh:      prometheus.NewDesc("lean_gossip_mesh_peers", "Peers in our gossip meshes by client.", labels, nil),
	}
}

// Describe names the metrics.
func (c peerCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.connected
	ch <- c.mesh
}

// Collect counts.
func (c peerCollector) Collect(ch chan<- prometheus.Metric) {
	connected, mesh := map[string]int{unknownClient: 0}, map[string]int{unknownClient: 0}
	for p, name := range c.host.names {
		if p != c.host.id {
			connected[name], mesh[name] = 0, 0
		}
	}
	if s := c.host.session.Load(); s != nil {
		for _, p := range s.host.Network().Peers() {
			connected[c.host.clientName(p)]++
		}
		for p := range s.tracer.meshTopics() {
			mesh[c.host.clientName(p)]++
		}
	}
	for name, n := range connected {
		ch <- prometheus.MustNewConstMetric(c.connected, prometheus.GaugeValue, float64(n), name)
	}
	for name, n := range mesh {
		ch <- prometheus.MustNewConstMetric(c.mesh, prometheus.GaugeValue, float64(n), name)
	}
}
