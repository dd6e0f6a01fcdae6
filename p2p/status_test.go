package p2p

import (
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// impatient shortens the exchange's deadline, which a test has to sit out.
func impatient(n *testNode) { n.timeout = 300 * time.Millisecond }

// open opens a Status stream of a stranger to the node.
func open(t *testing.T, h host.Host, n *testNode, id protocol.ID) network.Stream {
	t.Helper()
	dialTo(t, h, n)
	s, err := h.NewStream(t.Context(), n.id, id)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Reset() })
	require.NoError(t, s.SetDeadline(time.Now().Add(patience)))

	return s
}

var theirStatus = wire.Status{
	Finalized: wire.Checkpoint{Root: wire.Root{1}, Slot: 5},
	Head:      wire.Checkpoint{Root: wire.Root{2}, Slot: 8},
}

func TestStatusIsExchangedOnOutboundConnections(t *testing.T) {
	t.Parallel()
	server := start(t, nil)
	client := start(t, func(cfg *Config, _ *fakeIntake) {
		cfg.Bootnodes = []Bootnode{bootnodeOf(server)}
		cfg.Names = map[string]string{server.PeerID(): "zeam_0"}
		cfg.UserAgent = "aggnode/test"
	})
	eventually(t, client.metrics.statusRequested.WithLabelValues("ok"), 1)
	eventually(t, server.metrics.statusServed.WithLabelValues("ok"), 1)
	require.Zero(t, count(server.metrics.statusRequested.WithLabelValues("ok")), "the dialling side asks")

	var peers []Peer
	require.Eventually(t, func() bool {
		peers = client.Peers()

		return len(peers) == 1 && peers[0].Status != nil && peers[0].Agent != ""
	}, patience, time.Millisecond)
	require.Equal(t, "zeam_0", peers[0].Client)
	require.Equal(t, "outbound", peers[0].Direction)
	require.Equal(t, wire.Slot(9), peers[0].Status.Head.Slot)
	require.Equal(t, "aggnode", peers[0].Agent)

	require.Eventually(t, func() bool {
		peers = server.Peers()

		return len(peers) == 1 && peers[0].Agent == "aggnode/test"
	}, patience, time.Millisecond, "identify runs both ways")
	require.Equal(t, unknownClient, peers[0].Client)
	require.Equal(t, "inbound", peers[0].Direction)
	require.Equal(t, wire.Slot(9), peers[0].Status.Head.Slot, "a request tells as much as an answer")
}

func TestStatusServer(t *testing.T) {
	t.Parallel()
	ssz := theirStatus.AppendSSZ(nil)
	tests := map[string]struct {
		send   func(t *testing.T, s network.Stream)
		code   wire.ResponseCode
		result string
	}{
		"half-closed": {func(t *testing.T, s network.Stream) {
			t.Helper()
			require.NoError(t, wire.WriteRequest(s, ssz))
			require.NoError(t, s.CloseWrite())
		}, wire.ResponseSuccess, "ok"},
		"left open": {func(t *testing.T, s network.Stream) {
			t.Helper()
			require.NoError(t, wire.WriteRequest(s, ssz))
		}, wire.ResponseSuccess, "ok"},
		"79 bytes": {func(t *testing.T, s network.Stream) {
			t.Helper()
			require.NoError(t, wire.WriteRequest(s, ssz[:79]))
		}, wire.ResponseInvalidRequest, "malformed"},
		"81 bytes": {func(t *testing.T, s network.Stream) {
			t.Helper()
			require.NoError(t, wire.WriteRequest(s, append(ssz[:80:80], 0)))
		}, wire.ResponseInvalidRequest, "malformed"},
		"claims 4 GiB": {func(t *testing.T, s network.Stream) {
			t.Helper()
			_, err := s.Write(binary.AppendUvarint(nil, 4<<30))
			require.NoError(t, err)
		}, wire.ResponseInvalidRequest, "malformed"},
		"claim without end": {func(t *testing.T, s network.Stream) {
			t.Helper()
			_, err := s.Write([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
			require.NoError(t, err)
		}, wire.ResponseInvalidRequest, "malformed"},
		"garbage frames": {func(t *testing.T, s network.Stream) {
			t.Helper()
			_, err := s.Write(append([]byte{80}, make([]byte, 200)...))
			require.NoError(t, err)
		}, wire.ResponseInvalidRequest, "malformed"},
		"nothing": {func(t *testing.T, s network.Stream) {
			t.Helper()
			require.NoError(t, s.CloseWrite())
		}, wire.ResponseInvalidRequest, "malformed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, nil)
			h := stranger(t)
			s := open(t, h, n, statusProtocol)
			tt.send(t, s)
			code, raw, err := wire.ReadChunk(s, maxAnswerSize)
			if code == wire.ResponseSuccess {
				require.NoError(t, err)
				got, err := wire.DecodeStatus(raw)
				require.NoError(t, err)
				require.Equal(t, n.chain.Status(), got)
			}
			require.Equal(t, tt.code, code)
			_, err = s.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "one chunk, then the end")
			eventually(t, n.metrics.statusServed.WithLabelValues(tt.result), 1)
			require.True(t, n.connectedTo(h.ID()), "one mistake costs no connection")
		})
	}
}

func TestStalledStatusStreamsCountAtOnce(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	impatient(n)
	h := stranger(t)
	for range maxFaults {
		s := open(t, h, n, statusProtocol)
		_, err := s.Write([]byte{80, 0xff}) // and nothing more
		require.NoError(t, err)
	}
	eventually(t, n.metrics.statusServed.WithLabelValues("timeout"), maxFaults)
	eventually(t, n.metrics.peerDisconnects.WithLabelValues("faults"), 1)
	require.Eventually(t, func() bool { return !n.connectedTo(h.ID()) }, patience, time.Millisecond)
	require.True(t, n.book.inBackoff(h.ID(), time.Now()))

	// It comes back at once and is refused, whoever dials.
	require.Eventually(t, func() bool { return len(h.Network().ConnsToPeer(n.id)) == 0 }, patience, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_ = h.Connect(ctx, *host.InfoFromHost(n.session.Load().host)) // succeeds until the refusal arrives
	eventually(t, n.metrics.gated.WithLabelValues("inbound"), 1)
	require.Error(t, n.session.Load().host.Connect(t.Context(), *host.InfoFromHost(h)))
	require.Equal(t, 1, count(n.metrics.gated.WithLabelValues("outbound")))
	require.False(t, n.connectedTo(h.ID()))
}

func TestStatusFloodIsLimited(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	h := stranger(t)
	dialTo(t, h, n)
	for range statusBurst {
		s := open(t, h, n, statusProtocol)
		require.NoError(t, wire.WriteRequest(s, theirStatus.AppendSSZ(nil)))
		code, _, err := wire.ReadChunk(s, maxAnswerSize)
		require.NoError(t, err)
		require.Equal(t, wire.ResponseSuccess, code)
	}
	s := open(t, h, n, statusProtocol)
	require.NoError(t, wire.WriteRequest(s, theirStatus.AppendSSZ(nil)))
	_, _, err := wire.ReadChunk(s, maxAnswerSize)
	require.Error(t, err, "the stream is reset")
	eventually(t, n.metrics.peerFaults.WithLabelValues("limit"), 1)
}

func TestStatusClientAgainstOddServers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		serve  network.StreamHandler // nil: the protocol is not served
		result string
		fault  string
	}{
		"not served": {nil, "unsupported", ""},
		"closes at once": {func(s network.Stream) {
			_, _ = io.ReadAll(s)
			_ = s.Close()
		}, "failed", ""},
		"error chunk": {func(s network.Stream) {
			_, _ = io.ReadAll(s)
			_ = wire.WriteChunk(s, wire.ResponseServerError, []byte("no chain yet"))
			_ = s.Close()
		}, "refused", ""},
		"79 bytes": {func(s network.Stream) {
			_, _ = io.ReadAll(s)
			_ = wire.WriteChunk(s, wire.ResponseSuccess, make([]byte, 79))
			_ = s.Close()
		}, "malformed", "framing"},
		"claims 4 GiB": {func(s network.Stream) {
			_, _ = io.ReadAll(s)
			_, _ = s.Write(append([]byte{0}, binary.AppendUvarint(nil, 4<<30)...))
			_ = s.Close()
		}, "malformed", "framing"},
		"never answers": {func(s network.Stream) { _, _ = io.ReadAll(s) }, "timeout", "stalled"},
		"waits for our end": {func(s network.Stream) {
			request, _ := io.ReadAll(s) // ends because we half-close
			if len(request) > 0 {
				_ = wire.WriteChunk(s, wire.ResponseSuccess, theirStatus.AppendSSZ(nil))
			}
			_ = s.Close()
		}, "ok", ""},
		"says more than asked": {func(s network.Stream) {
			_ = wire.WriteChunk(s, wire.ResponseSuccess, theirStatus.AppendSSZ(nil))
			_ = wire.WriteChunk(s, wire.ResponseSuccess, theirStatus.AppendSSZ(nil))
			_ = s.Close()
		}, "ok", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := stranger(t)
			if tt.serve != nil {
				h.SetStreamHandler(statusProtocol, tt.serve)
			}
			n := start(t, nil)
			if tt.result == "timeout" {
				impatient(n)
			}
			require.NoError(t, n.session.Load().host.Connect(t.Context(), *host.InfoFromHost(h)))
			eventually(t, n.metrics.statusRequested.WithLabelValues(tt.result), 1)
			if tt.fault != "" {
				eventually(t, n.metrics.peerFaults.WithLabelValues(tt.fault), 1)
			}
			require.True(t, n.connectedTo(h.ID()))
		})
	}
}

func TestUnknownProtocolHurtsNobody(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	h := stranger(t)
	dialTo(t, h, n)
	_, err := h.NewStream(t.Context(), n.id, wire.ProtocolBlocksByRoot)
	require.True(t, isUnsupported(err), "the library's text: %v", err)
	s := open(t, h, n, statusProtocol)
	require.NoError(t, wire.WriteRequest(s, theirStatus.AppendSSZ(nil)))
	code, _, err := wire.ReadChunk(s, maxAnswerSize)
	require.NoError(t, err)
	require.Equal(t, wire.ResponseSuccess, code)
}
