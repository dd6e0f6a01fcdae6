package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	return random{rand.New(rand.NewPCG(7, uint64(n)))}.bytes(n)
}

// framed returns the stream that the library writes, with the length in front.
func framed(t testing.TB, payload []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	buf.Write(binary.AppendUvarint(nil, uint64(len(payload))))
	w := snappy.NewBufferedWriter(&buf)
	_, err := w.Write(payload)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	return buf.Bytes()
}

func TestRequestsReadExactlyTheirBytes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 80, 65535, 65536, 65537, 200000} {
		for _, payload := range [][]byte{make([]byte, n), noise(n)} {
			var ours bytes.Buffer
			require.NoError(t, wire.WriteRequest(&ours, payload))
			for _, stream := range [][]byte{ours.Bytes(), framed(t, payload)} {
				r := bytes.NewReader(append(slices.Clone(stream), "the next thing"...))
				got, err := wire.ReadRequest(iotest.OneByteReader(r), n)
				require.NoError(t, err)
				require.True(t, bytes.Equal(payload, got))
				rest, err := io.ReadAll(r)
				require.NoError(t, err)
				require.Equal(t, "the next thing", string(rest))

				_, err = wire.ReadRequest(bytes.NewReader(stream), n-1)
				requireReason(t, wire.ReasonMalformed, err)
			}
		}
	}
}

func TestNoContentMayLackTheIdentifier(t *testing.T) {
	t.Parallel()
	got, err := wire.ReadRequest(bytes.NewReader([]byte{0}), 10)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = wire.ReadRequest(bytes.NewReader(wire.AppendFrames([]byte{0}, nil)), 10)
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = wire.ReadRequest(bytes.NewReader([]byte{0, 1, 2}), 10)
	requireReason(t, wire.ReasonMalformed, err)
	_, err = wire.ReadRequest(io.MultiReader(bytes.NewReader([]byte{0}), iotest.ErrReader(errReset)), 10)
	require.ErrorIs(t, err, errReset)
}

var errReset = errors.New("stream reset")

func TestFramesThatAreRefused(t *testing.T) {
	t.Parallel()
	payload := noise(100)
	good := wire.AppendFrames(nil, payload)
	ident, chunk := good[:10], good[10:]
	edit := func(at int, b byte) []byte {
		c := slices.Clone(good)
		c[at] ^= b

		return c
	}
	frame := func(kind byte, body []byte) []byte {
		return append([]byte{kind, byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16)}, body...)
	}
	tests := map[string]struct {
		stream []byte
		want   string
	}{
		"nothing":                    {nil, "ends early"},
		"half an identifier":         {ident[:5], "ends early"},
		"another identifier":         {edit(4, 1), "no stream identifier"},
		"a chunk first":              {chunk, "no stream identifier"},
		"no chunk":                   {ident, "ends early"},
		"half a chunk header":        {good[:12], "ends early"},
		"half a chunk":               {good[:50], "ends early"},
		"a wrong checksum":           {edit(14, 1), "wrong checksum"},
		"altered content":            {edit(20, 1), "wrong checksum"},
		"a reserved chunk":           {slices.Concat(ident, frame(2, nil), chunk), "reserved chunk type 0x2"},
		"the last reserved":          {slices.Concat(ident, frame(0x7f, nil), chunk), "reserved chunk type 0x7f"},
		"no room for a checksum":     {slices.Concat(ident, frame(1, []byte{1, 2, 3})), "chunk of 3 bytes"},
		"a chunk of 16 MB":           {slices.Concat(ident, []byte{1, 0xff, 0xff, 0xff}), "chunk of 16777215 bytes"},
		"65537 bytes of content":     {slices.Concat(ident, frame(1, append(make([]byte, 4), make([]byte, 65537)...))), "65537 bytes of content"},
		"compressed 65537":           {slices.Concat(ident, frame(0, append(make([]byte, 4), bomb(65537)...))), "announces 65537"},
		"a block that is not snappy": {slices.Concat(ident, frame(0, append(make([]byte, 4), 5, 0xff))), "snappy block"},
		"a second bad identifier":    {slices.Concat(ident, frame(0xff, []byte("sNaPpX")), chunk), "bad stream identifier"},
		"a second long identifier":   {slices.Concat(ident, frame(0xff, []byte("sNaPpY2")), chunk), "identifier of 7 bytes"},
		"half a second identifier":   {slices.Concat(ident, frame(0xff, []byte("sNaPpY"))[:7]), "ends early"},
		"more content than n":        {wire.AppendFrames(nil, noise(101)), "more than the 100 bytes"},
		"padding without an end":     {slices.Concat(ident, bytes.Repeat(frame(0xfe, make([]byte, 100)), 1000), chunk), "too long"},
		"empty chunks without end":   {slices.Concat(ident, bytes.Repeat(frame(1, []byte{0xd8, 0xea, 0x82, 0xa2}), 1000), chunk), "too long"},
		"a skipped chunk of 16 MB":   {slices.Concat(ident, []byte{0x80, 0xff, 0xff, 0xff}, make([]byte, 4096)), "too long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := len(payload)
			if strings.Contains(tt.want, "65537") {
				n = 1 << 20
			}
			_, err := wire.ReadFrames(bytes.NewReader(tt.stream), n)
			requireReason(t, wire.ReasonMalformed, err)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestFramesThatAreSkipped(t *testing.T) {
	t.Parallel()
	payload := noise(100)
	good := wire.AppendFrames(nil, payload)
	for _, extra := range [][]byte{
		good[:10], // the identifier again
		{0xfe, 3, 0, 0, 1, 2, 3},
		{0x80, 0, 0, 0},
		{0xfd, 1, 0, 0, 9},
		{1, 4, 0, 0, 0xd8, 0xea, 0x82, 0xa2}, // a chunk of no content
	} {
		got, err := wire.ReadFrames(bytes.NewReader(slices.Concat(good[:10], extra, good[10:])), len(payload))
		require.NoError(t, err)
		require.Equal(t, payload, got)
	}
}

// TestAClaimedLengthDoesNotAllocate announces ten megabytes and sends nothing,
// or one chunk.
func TestAClaimedLengthDoesNotAllocate(t *testing.T) {
	// Not parallel: it measures the heap.
	length := binary.AppendUvarint(nil, wire.MaxPayloadSize)
	for _, stream := range [][]byte{length, slices.Concat(length, wire.AppendFrames(nil, make([]byte, 1000)))} {
		n := allocated(func() {
			_, err := wire.ReadRequest(bytes.NewReader(stream), wire.MaxPayloadSize)
			requireReason(t, wire.ReasonMalformed, err)
		})
		require.Less(t, n, uint64(200<<10))
	}
}

func TestResponseCodes(t *testing.T) {
	t.Parallel()
	names := map[wire.ResponseCode]string{0: "success", 1: "invalid_request", 2: "server_error", 3: "resource_unavailable", 4: "invalid"}
	for code, name := range names {
		require.Equal(t, name, code.String())
	}
	for b := range 256 {
		stream := wire.AppendFrames([]byte{byte(b), 4}, []byte("text"))
		code, content, err := wire.ReadChunk(bytes.NewReader(stream), 100)
		require.NoError(t, err)
		require.Equal(t, "text", string(content))
		want := wire.ResponseCode(b)
		switch {
		case b > 127:
			want = wire.ResponseInvalidRequest
		case b > 3:
			want = wire.ResponseServerError
		}
		require.Equal(t, want, code)
	}
}

func TestErrorTextsAreBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("e", 1000)
	var buf bytes.Buffer
	require.NoError(t, wire.WriteChunk(&buf, wire.ResponseServerError, []byte(text)))
	code, content, err := wire.ReadChunk(&buf, wire.MaxPayloadSize)
	require.NoError(t, err)
	require.Equal(t, wire.ResponseServerError, code)
	require.Equal(t, text[:wire.MaxErrorMessageSize], string(content))

	var request bytes.Buffer
	require.NoError(t, wire.WriteRequest(&request, []byte(text)))
	_, _, err = wire.ReadChunk(io.MultiReader(bytes.NewReader([]byte{3}), &request), wire.MaxPayloadSize)
	requireReason(t, wire.ReasonMalformed, err)
	require.ErrorContains(t, err, "at most 256")
}

func TestErrorsOfTheStreamAreKept(t *testing.T) {
	t.Parallel()
	good := wire.AppendFrames([]byte{0, 80}, noise(80))
	for n := range good {
		_, _, err := wire.ReadChunk(io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(errReset)), 80)
		require.ErrorIs(t, err, errReset, "after %d bytes", n)
		_, _, err = wire.ReadChunk(bytes.NewReader(good[:n]), 80)
		if n == 0 {
			require.ErrorIs(t, err, io.EOF)
		} else {
			requireReason(t, wire.ReasonMalformed, err)
		}
	}
	_, err := wire.ReadRequest(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}), 80)
	require.ErrorContains(t, err, "more than 64 bits")
	_, err = wire.ReadRequest(bytes.NewReader([]byte{1}), -1)
	requireReason(t, wire.ReasonMalformed, err)

	require.ErrorIs(t, wire.WriteRequest(brokenWriter{}, nil), errReset)
	require.ErrorContains(t, wire.WriteRequest(io.Discard, make([]byte, wire.MaxPayloadSize+1)), "at most 10485760 allowed")
}

// brokenWriter is a stream that the peer has reset.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errReset }

func TestRequestLimits(t *testing.T) {
	t.Parallel()
	full := wire.BlocksByRootRequest{Roots: make([]wire.Root, wire.MaxRequestRoots)}
	b := full.AppendSSZ(nil)
	require.Len(t, b, wire.MaxBlocksByRootSize)
	got, err := wire.DecodeBlocksByRoot(b)
	require.NoError(t, err)
	require.Equal(t, full, got)
	for _, bad := range [][]byte{nil, {4, 0, 0}, {5, 0, 0, 0, 0}, {4, 0, 0, 0, 1}, append(b, make([]byte, 32)...)} {
		_, err := wire.DecodeBlocksByRoot(bad)
		requireReason(t, wire.ReasonMalformed, err)
	}
	for _, n := range []int{0, 79, 81, 15, 17} {
		_, err := wire.DecodeStatus(make([]byte, n))
		requireReason(t, wire.ReasonMalformed, err)
		_, err = wire.DecodeBlocksByRange(make([]byte, n))
		requireReason(t, wire.ReasonMalformed, err)
	}
}

func FuzzReadChunk(f *testing.F) {
	f.Add(wire.AppendFrames([]byte{0, 80}, make([]byte, 80)))
	f.Add(wire.AppendFrames([]byte{3, 8}, []byte("not here")))
	f.Add(slices.Concat(wire.AppendFrames([]byte{0, 3}, []byte("abc")), wire.AppendFrames([]byte{0, 3}, []byte("def"))))
	f.Add([]byte{0, 0x80, 0x80, 0x80, 0x05})
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1 << 16
		r := bytes.NewReader(stream)
		for {
			code, content, err := wire.ReadChunk(r, limit)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					requireReason(t, wire.ReasonMalformed, err)
				}

				return
			}
			require.LessOrEqual(t, len(content), limit)
			var buf bytes.Buffer
			require.NoError(t, wire.WriteChunk(&buf, code, content))
			again, same, err := wire.ReadChunk(&buf, limit)
			require.NoError(t, err)
			require.Equal(t, code, again)
			require.True(t, bytes.Equal(content, same))
		}
	})
}
