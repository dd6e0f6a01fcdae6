package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ResponseCode is the first byte of a response chunk (leanSpec
// reqresp/codec.py). Zero is a success by the protocol.
type ResponseCode uint8

// The response codes that are sent.
const (
	ResponseSuccess             ResponseCode = 0
	ResponseInvalidRequest      ResponseCode = 1
	ResponseServerError         ResponseCode = 2
	ResponseResourceUnavailable ResponseCode = 3
)

// MaxErrorMessageSize is the limit in bytes of the text in a response that is
// not a success (leanSpec reqresp/message.py).
const MaxErrorMessageSize = 256

// String returns the name of the code.
func (c ResponseCode) String() string {
	switch c {
	case ResponseSuccess:
		return "success"
	case ResponseInvalidRequest:
		return "invalid_request"
	case ResponseServerError:
		return "server_error"
	case ResponseResourceUnavailable:
		return "resource_unavailable"
	}

	return "invalid"
}

// normalizeCode maps codes that nobody defined to what they count as: 4 to 127
// as a server error, 128 to 255 as an invalid request.
func normalizeCode(b byte) ResponseCode {
	switch {
	case b <= byte(ResponseResourceUnavailable):
		return ResponseCode(b)
	case b < 128:
		return ResponseServerError
	default:
		return ResponseInvalidRequest
	}
}

// WriteRequest writes the frame of a request in one Write: the length of ssz as
// a varint, then its framed snappy form. The caller half-closes the stream.
func WriteRequest(w io.Writer, ssz []byte) error {
	return writeFramed(w, nil, ssz)
}

// WriteChunk writes one response chunk in one Write: the code, then as a
// request. For a code other than success, ssz is the text of the error and is
// cut at MaxErrorMessageSize.
func WriteChunk(w io.Writer, code ResponseCode, ssz []byte) error {
	if code != ResponseSuccess && len(ssz) > MaxErrorMessageSize {
		ssz = ssz[:MaxErrorMessageSize]
	}

	return writeFramed(w, []byte{byte(code)}, ssz)
}

// writeFramed writes head, the length of ssz and its framed form.
func writeFramed(w io.Writer, head, ssz []byte) error {
	if len(ssz) > MaxPayloadSize {
		return fmt.Errorf("write %d bytes: at most %d allowed", len(ssz), MaxPayloadSize)
	}
	buf := binary.AppendUvarint(head, uint64(len(ssz)))
	if _, err := w.Write(appendFrames(buf, ssz)); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}

	return nil
}

// ReadRequest reads the content of a request, at most limit bytes. It reads
// exactly the announced content and does not wait for the end of the stream.
// What is wrong with the bytes is a [DecodeError]; errors of r are wrapped.
func ReadRequest(r io.Reader, limit int) ([]byte, error) {
	n, err := readLength(r, limit)
	if err != nil {
		return nil, err
	}

	return readContent(r, n)
}

// readContent reads n bytes of framed content. No content may come without a
// stream identifier: some writers emit that with their first chunk.
func readContent(r io.Reader, n int) ([]byte, error) {
	if n > 0 {
		return readFrames(r, n)
	}
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, frameError(err)
	}

	return readFrames(io.MultiReader(bytes.NewReader(first[:]), r), 0)
}

// ReadChunk reads one response chunk, at most limit bytes of content, or at most
// MaxErrorMessageSize where the code is not a success; the content is then a
// text for people, not necessarily UTF-8. At the end of the stream, before the
// first byte of a chunk, the error is io.EOF.
func ReadChunk(r io.Reader, limit int) (ResponseCode, []byte, error) {
	var head [1]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}

		return 0, nil, fmt.Errorf("read response code: %w", err)
	}
	code := normalizeCode(head[0])
	if code != ResponseSuccess {
		limit = min(limit, MaxErrorMessageSize)
	}
	n, err := readLength(r, limit)
	if err != nil {
		return code, nil, err
	}
	content, err := readContent(r, n)

	return code, content, err
}

// readLength reads the announced length of a content, at most limit.
func readLength(r io.Reader, limit int) (int, error) {
	var buf [binary.MaxVarintLen64]byte
	for i := range buf {
		if _, err := io.ReadFull(r, buf[i:i+1]); err != nil {
			if errors.Is(err, io.EOF) {
				return 0, malformed("length", "ends after %d bytes", i)
			}

			return 0, fmt.Errorf("read length: %w", err)
		}
		if buf[i] >= 0x80 {
			continue
		}
		v, n := binary.Uvarint(buf[:i+1])
		switch {
		case n <= 0:
			return 0, malformed("length", "more than 64 bits")
		case limit < 0 || v > uint64(limit):
			return 0, malformed("length", "announces %d bytes, at most %d allowed", v, limit)
		}

		return int(v), nil //nolint:gosec // at most limit
	}

	return 0, malformed("length", "longer than %d bytes", len(buf))
}
