package wire

import (
	"encoding/binary"

	"github.com/klauspost/compress/snappy"
)

// maxExpansion is the most output bytes that one input byte of raw snappy can
// stand for, rounded up: a copy of 64 bytes takes three.
const maxExpansion = 22

// Compress appends the raw snappy form of payload to dst, the form of gossip.
// The payload must not be longer than MaxPayloadSize; it does not overlap dst.
func Compress(dst, payload []byte) []byte {
	n := len(dst)
	need := snappy.MaxEncodedLen(len(payload))
	if cap(dst)-n < need {
		dst = append(make([]byte, 0, n+need), dst...)
	}

	return dst[:n+len(snappy.Encode(dst[n:n:cap(dst)], payload))]
}

// Decompress returns the content of a raw snappy message, at most limit bytes of
// it. The announced length is refused, before anything is allocated, when it is
// above the limit or more than the message could hold.
func Decompress(message []byte, limit int) ([]byte, error) {
	out, ok := decompress(nil, message, limit)
	if ok {
		return out, nil
	}
	announced, plausible := announcedLength(message)
	switch {
	case !plausible:
		return nil, malformed("snappy block", "%d bytes cannot have %d of content", len(message), announced)
	case limit < 0 || announced > uint64(limit):
		return nil, malformed("snappy block", "announces %d bytes, at most %d allowed", announced, limit)
	}

	return nil, malformed("snappy block", "corrupt")
}

// decompress is Decompress into the storage of dst where that is large enough,
// without the cost of an error.
func decompress(dst, message []byte, limit int) ([]byte, bool) {
	announced, plausible := announcedLength(message)
	if !plausible || limit < 0 || announced > uint64(limit) {
		return nil, false
	}
	// Strict: the default decoder accepts an extension of s2 that other clients
	// refuse, and the message id depends on who accepts what.
	out, err := snappy.DecodeStrict(dst, message)

	return out, err == nil
}

// announcedLength returns the length in front of a message; plausible is false
// where there is none, or where the message is too short for it.
func announcedLength(message []byte) (announced uint64, plausible bool) {
	announced, n := binary.Uvarint(message)

	return announced, n > 0 && n <= 5 && announced <= 1<<32-1 && announced <= uint64(len(message))*maxExpansion
}
