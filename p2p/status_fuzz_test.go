package p2p

import (
	"bytes"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// The pipeline is what the host is made for.
var _ intake = (*pipeline.Pipeline)(nil)

// memoryStream is a stream whose peer has sent all that it will.
type memoryStream struct {
	network.Stream
	in  bytes.Reader
	out bytes.Buffer
}

func (s *memoryStream) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *memoryStream) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *memoryStream) SetDeadline(time.Time) error { return nil }

// FuzzAnswerStatus feeds the Status server with what a peer may write: exactly
// one chunk comes back, a Status or the reason why not.
func FuzzAnswerStatus(f *testing.F) {
	var request bytes.Buffer
	require.NoError(f, wire.WriteRequest(&request, theirStatus.AppendSSZ(nil)))
	f.Add(request.Bytes())
	f.Add(request.Bytes()[:40])
	f.Add([]byte{79})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	h, _ := idle(f)
	n := 0
	f.Fuzz(func(t *testing.T, sent []byte) {
		n++
		s := &memoryStream{}
		s.in.Reset(sent)
		result := h.answerStatus(s, peer.ID(binaryPeer(n))) // a new peer each time: no limit
		code, content, err := wire.ReadChunk(&s.out, maxAnswerSize)
		require.NoError(t, err)
		require.Zero(t, s.out.Len())
		switch result {
		case statusOK:
			require.Equal(t, wire.ResponseSuccess, code)
			require.Len(t, content, wire.StatusSize)
		case statusMalformed:
			require.Equal(t, wire.ResponseInvalidRequest, code)
			require.NotEmpty(t, content)
		default:
			require.Fail(t, "unexpected result", result.String())
		}
	})
}

func binaryPeer(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }
