package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
)

// Framed snappy, the stream form of request/response: an identifier, then
// chunks of type, 3-byte length, CRC-32C of the content and content
// (google/snappy framing_format.txt).
const (
	frameCompressed   = 0x00
	frameUncompressed = 0x01
	framePadding      = 0xfe
	frameIdentifier   = 0xff
	frameSkippable    = 0x80 // first type that a reader may skip

	frameHeaderSize   = 4
	frameChecksumSize = 4
	frameBlockSize    = 65536 // most content of one chunk, in bytes
	// frameMaxBody is the longest body of a data chunk that can be sound: the
	// checksum and the worst case of raw snappy.
	frameMaxBody = frameChecksumSize + 32 + frameBlockSize + frameBlockSize/6
)

// streamIdentifier starts every framed stream. Never written.
var streamIdentifier = []byte{frameIdentifier, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'}

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frameChecksum is the masked CRC-32C of the framing format.
func frameChecksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)

	return (c>>15 | c<<17) + 0xa282ead8
}

// appendFrames appends the framed form of payload.
func appendFrames(dst, payload []byte) []byte {
	dst = append(dst, streamIdentifier...)
	var buf []byte
	for len(payload) > 0 {
		block := payload[:min(len(payload), frameBlockSize)]
		payload = payload[len(block):]
		kind, body := byte(frameUncompressed), block
		buf = snappy.Encode(buf[:cap(buf)], block)
		if len(buf) < len(block)-len(block)/8 {
			kind, body = frameCompressed, buf
		}
		size := frameChecksumSize + len(body)
		dst = append(dst, kind, byte(size), byte(size>>8), byte(size>>16))
		dst = binary.LittleEndian.AppendUint32(dst, frameChecksum(block))
		dst = append(dst, body...)
	}

	return dst
}

// maxFramedSize bounds the framed form of n bytes: the worst case that the
// protocol allows (as MaxMessageSize). A stream of skippable chunks ends there.
func maxFramedSize(n int) int64 { return int64(32 + n + n/6 + 1024) }

// readFrames reads a framed stream of exactly n bytes of content and not one
// byte more. Memory grows with what arrived, not with n.
func readFrames(r io.Reader, n int) ([]byte, error) {
	r = io.LimitReader(r, maxFramedSize(n))
	var ident [10]byte
	if _, err := io.ReadFull(r, ident[:]); err != nil {
		return nil, frameError(err)
	}
	if string(ident[:]) != string(streamIdentifier) {
		return nil, malformed("snappy frames", "no stream identifier")
	}
	out := make([]byte, 0, min(n, frameBlockSize))
	var body []byte
	for len(out) < n {
		block, err := readFrame(r, &body)
		if err != nil {
			return nil, err
		}
		if len(block) > n-len(out) {
			return nil, malformed("snappy frames", "more than the %d bytes announced", n)
		}
		out = append(out, block...)
	}

	return out, nil
}

// readFrame reads one chunk and returns its content, none for a chunk that may
// be skipped. The content may alias *body, which is reused.
func readFrame(r io.Reader, body *[]byte) ([]byte, error) {
	var head [frameHeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, frameError(err)
	}
	kind, size := head[0], int(head[1])|int(head[2])<<8|int(head[3])<<16
	switch {
	case kind == frameCompressed, kind == frameUncompressed:
	case kind == frameIdentifier:
		var again [6]byte
		if size != len(again) {
			return nil, malformed("snappy frames", "stream identifier of %d bytes", size)
		}
		if _, err := io.ReadFull(r, again[:]); err != nil {
			return nil, frameError(err)
		}
		if string(again[:]) != string(streamIdentifier[frameHeaderSize:]) {
			return nil, malformed("snappy frames", "bad stream identifier")
		}

		return nil, nil
	case kind >= frameSkippable && kind <= framePadding:
		if _, err := io.CopyN(io.Discard, r, int64(size)); err != nil {
			return nil, frameError(err)
		}

		return nil, nil
	default:
		return nil, malformed("snappy frames", "reserved chunk type %#x", kind)
	}
	if size < frameChecksumSize || size > frameMaxBody {
		return nil, malformed("snappy frames", "chunk of %d bytes", size)
	}
	if cap(*body) < size {
		*body = make([]byte, size) // at most frameMaxBody
	}
	b := (*body)[:size]
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, frameError(err)
	}
	sum, block := binary.LittleEndian.Uint32(b), b[frameChecksumSize:]
	if kind == frameCompressed {
		var err error
		if block, err = Decompress(block, frameBlockSize); err != nil {
			return nil, err
		}
	}
	if len(block) > frameBlockSize {
		return nil, malformed("snappy frames", "chunk with %d bytes of content", len(block))
	}
	if frameChecksum(block) != sum {
		return nil, malformed("snappy frames", "wrong checksum")
	}

	return block, nil
}

// frameError turns the end of the stream inside a frame into a DecodeError and
// keeps every other error of the reader.
func frameError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("snappy frames", "ends early or is too long")
	}

	return fmt.Errorf("read frames: %w", err)
}
