package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"aggnode/wire"
)

// protocolID is the library's text type for protocol names.
type protocolID = protocol.ID

// statusProtocol is the Status request (protocol 4).
const statusProtocol = protocolID(wire.ProtocolStatus)

// requestTimeout bounds one Status exchange on either side; the other clients use
// 8-15 s (protocol 4).
const requestTimeout = 10 * time.Second

// maxAnswerSize is the limit in bytes of an answer: the text of an error may be
// longer than a Status.
const maxAnswerSize = max(wire.StatusSize, wire.MaxErrorMessageSize)

// statusResult is how one Status exchange ended.
type statusResult uint8

const (
	statusUnknown     statusResult = iota
	statusOK                       // answered
	statusMalformed                // bytes that are no Status
	statusTimeout                  // stood still until the deadline
	statusLimited                  // more requests than the peer may send
	statusRefused                  // the peer answered with an error code
	statusUnsupported              // the peer does not speak the protocol
	statusFailed                   // the connection broke
	statusEnd
)

// String returns the label value.
func (r statusResult) String() string {
	switch r {
	case statusUnknown:
		return "unknown"
	case statusOK:
		return "ok"
	case statusMalformed:
		return "malformed"
	case statusTimeout:
		return "timeout"
	case statusLimited:
		return "limited"
	case statusRefused:
		return "refused"
	case statusUnsupported:
		return "unsupported"
	case statusFailed:
		return "failed"
	case statusEnd:
	}

	return "invalid"
}

// statusResults returns all results.
func statusResults() []statusResult {
	var all []statusResult
	for r := statusUnknown + 1; r < statusEnd; r++ {
		all = append(all, r)
	}

	return all
}

// serveStatus answers one Status request. The library calls it on a goroutine of
// its own.
func (h *Host) serveStatus(s network.Stream) {
	if !h.handlers.enter() {
		_ = s.Reset()

		return
	}
	defer h.handlers.leave()
	p := s.Conn().RemotePeer()
	result := statusFailed
	defer func() {
		if r := recover(); r != nil {
			h.internalError("serve status", r)
			_ = s.Reset()
		}
		h.metrics.statusServed.WithLabelValues(result.String()).Inc()
	}()

	result = h.answerStatus(s, p)
	switch result {
	case statusMalformed:
		h.fault(p, faultFraming)
	case statusTimeout:
		h.fault(p, faultStalled)
	case statusLimited:
		h.fault(p, faultLimit)
	case statusUnknown, statusOK, statusRefused, statusUnsupported, statusFailed, statusEnd:
	}
	if result == statusOK || result == statusMalformed {
		_ = s.Close() // the answer is on its way; nothing to do where the peer is gone
	} else {
		_ = s.Reset()
	}
}

// answerStatus reads exactly the announced request, since some clients keep
// their side of the stream open, and writes the answer.
func (h *Host) answerStatus(s network.Stream, p peer.ID) statusResult {
	if !h.book.allowStatus(p, time.Now()) {
		return statusLimited
	}
	if err := s.SetDeadline(time.Now().Add(h.timeout)); err != nil {
		return statusFailed
	}
	raw, err := wire.ReadRequest(s, wire.StatusSize)
	if err != nil {
		var malformed *wire.DecodeError
		if !errors.As(err, &malformed) {
			return streamResult(err)
		}

		return h.refuseStatus(s, malformed)
	}
	theirs, err := wire.DecodeStatus(raw)
	if err != nil {
		return h.refuseStatus(s, err)
	}
	h.noteStatus(p, theirs)
	ours := h.chain.Status()
	if err := wire.WriteChunk(s, wire.ResponseSuccess, ours.AppendSSZ(nil)); err != nil {
		return streamResult(err)
	}

	return statusOK
}

// refuseStatus answers bytes that are no Status.
func (h *Host) refuseStatus(s network.Stream, why error) statusResult {
	text := fmt.Sprintf("invalid Status: %v", why)
	if err := wire.WriteChunk(s, wire.ResponseInvalidRequest, []byte(text)); err != nil {
		return streamResult(err)
	}

	return statusMalformed
}

// streamResult sorts an error of a stream.
func streamResult(err error) statusResult {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return statusTimeout
	}

	return statusFailed
}

// askStatus asks a peer for its Status on a goroutine of its own; Run waits for
// it. At most one a new connection or failed identify, so their number is that of
// peers.
func (h *Host) askStatus(p peer.ID) {
	s := h.session.Load()
	if s == nil || !h.handlers.enter() {
		return
	}
	go func() {
		defer h.handlers.leave()
		ctx, cancel := context.WithTimeout(s.ctx, h.timeout)
		defer cancel()
		status, result := h.requestStatus(ctx, s, p)
		h.metrics.statusRequested.WithLabelValues(result.String()).Inc()
		switch result {
		case statusOK:
			h.noteStatus(p, status)
			h.log.Debug("status received", "peer", p, "head_slot", status.Head.Slot, "finalized_slot", status.Finalized.Slot)
		case statusMalformed:
			h.fault(p, faultFraming)
		case statusTimeout:
			h.noAnswer(p)
		case statusUnknown, statusLimited, statusRefused, statusUnsupported, statusFailed, statusEnd:
		}
	}()
}

// noAnswer handles a peer that let our Status request stand until its deadline.
// One that has refused identify as well accepts no stream of ours any more, so
// the connection is of no use: it may hear our gossip never.
func (h *Host) noAnswer(p peer.ID) {
	h.mu.Lock()
	_, refused := h.unnamed[p]
	h.mu.Unlock()
	if !refused {
		h.fault(p, faultStalled)

		return
	}
	if h.logLimit.allow("deaf "+p.String(), time.Now(), 10*time.Minute) {
		h.log.Warn("peer refuses identify and accepts no further stream", "peer", p, "client", h.clientName(p))
	}
	h.dismiss(p, causeDeaf)
}

// requestStatus sends our Status and reads the answer. The write side is closed
// after the request: some clients read it to its end.
func (h *Host) requestStatus(ctx context.Context, s *session, p peer.ID) (wire.Status, statusResult) {
	stream, err := s.host.NewStream(network.WithNoDial(ctx, "status"), p, statusProtocol)
	if err != nil {
		if s.ctx.Err() == nil && ctx.Err() != nil {
			return wire.Status{}, statusTimeout
		}

		return wire.Status{}, unsupportedOr(err)
	}
	defer func() { _ = stream.Reset() }() // no effect on a stream that ended well
	deadline, _ := ctx.Deadline()
	if err := stream.SetDeadline(deadline); err != nil {
		return wire.Status{}, statusFailed
	}
	stop := context.AfterFunc(s.ctx, func() { _ = stream.Reset() }) // our own end cuts the wait short
	defer stop()
	ours := h.chain.Status()
	if err := wire.WriteRequest(stream, ours.AppendSSZ(nil)); err != nil {
		return wire.Status{}, h.clientResult(s, err)
	}
	if err := stream.CloseWrite(); err != nil {
		return wire.Status{}, h.clientResult(s, err)
	}
	code, raw, err := wire.ReadChunk(stream, maxAnswerSize)
	if err != nil {
		return wire.Status{}, h.clientResult(s, err)
	}
	if code != wire.ResponseSuccess {
		h.log.Debug("status refused", "peer", p, "code", code, "text", string(raw))

		return wire.Status{}, statusRefused
	}
	theirs, err := wire.DecodeStatus(raw)
	if err != nil {
		return wire.Status{}, statusMalformed
	}
	endStream(stream)

	return theirs, statusOK
}

// endStream waits shortly for the peer's end of a stream that was read as far as
// it matters. Without it our Close would cancel what the peer is about to end,
// and some clients take that for an error of the connection.
func endStream(s network.Stream) {
	if s.SetReadDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = s.Read(make([]byte, 1))
	}
	_ = s.Close()
}

// clientResult sorts an error of our own request. Errors that come with our stop
// are nobody's fault.
func (h *Host) clientResult(s *session, err error) statusResult {
	var malformed *wire.DecodeError
	switch {
	case s.ctx.Err() != nil:
		return statusFailed
	case errors.As(err, &malformed):
		return statusMalformed
	case errors.Is(err, io.EOF):
		return statusFailed // closed without an answer
	}

	return unsupportedOr(err)
}

// unsupportedOr tells a peer that does not speak the protocol from a broken
// stream. The library reports the refusal on the first read or at the opening.
func unsupportedOr(err error) statusResult {
	if isUnsupported(err) {
		return statusUnsupported
	}

	return streamResult(err)
}

// isUnsupported recognises multistream's answer "na". The type that says so is
// internal to the library's negotiation.
func isUnsupported(err error) bool {
	return strings.Contains(err.Error(), "protocols not supported")
}

// noteStatus remembers what a peer said.
func (h *Host) noteStatus(p peer.ID, s wire.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses[p] = s
}

// forgetStatus forgets a peer that is gone.
func (h *Host) forgetStatus(p peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.statuses, p)
	delete(h.unnamed, p)
}
