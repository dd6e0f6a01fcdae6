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
	return decompress(nil, message, limit)
}

// decompress is Decompress into the storage of dst where that is large enough.
func decompress(dst, message []byte, limit int) ([]byte, error) {
	announced, n := binary.Uvarint(message)
	switch {
	case n <= 0 || n > 5 || announced > 1<<32-1:
		return nil, malformed("snappy block", "no length in %d bytes", len(message))
	case limit < 0 || announced > uint64(limit):
		return nil, malformed("snappy block", "announces %d bytes, at most %d allowed", announced, limit)
	case announced > uint64(len(message))*maxExpansion:
		return nil, malformed("snappy block", "announces %d bytes in %d", announced, len(message))
	}
	// Strict: the default decoder accepts an extension of s2 that other clients
	// refuse, and the message id depends on who accepts what.
	out, err := snappy.DecodeStrict(dst, message)
	if err != nil {
		return nil, malformed("snappy block", "%v", err)
	}

	return out, nil
}
