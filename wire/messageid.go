package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
)

// MessageIDSize is the length in bytes of a gossip message id.
const MessageIDSize = 20

// Domains of the message id (leanSpec gossipsub/message.py).
var (
	domainInvalidSnappy = [4]byte{0, 0, 0, 0}
	domainValidSnappy   = [4]byte{1, 0, 0, 0}
)

// idScratch is what one computation of a message id needs.
type idScratch struct {
	hash    hash.Hash
	head    []byte // domain, topic length, topic
	payload []byte // decompressed message
	sum     []byte
}

var idScratches = sync.Pool{New: func() any {
	return &idScratch{hash: sha256.New(), sum: make([]byte, 0, sha256.Size)}
}}

// MessageID returns the id of a gossip message: the first 20 bytes of
// SHA-256(domain || 8-byte little-endian topic length || topic || content). The
// content is the decompressed message with domain 1, or the message itself with
// domain 0 where it is not raw snappy of at most MaxPayloadSize bytes (leanSpec
// gossipsub/message.py). data is not trusted. The call allocates nothing once
// its buffers have grown; it costs a decompression and a hash of the content.
func MessageID(topic string, data []byte) (id [MessageIDSize]byte) {
	s := idScratches.Get().(*idScratch) //nolint:forcetypeassert // the pool makes nothing else
	defer idScratches.Put(s)

	domain, content := domainValidSnappy, data
	if payload, ok := decompress(s.payload[:cap(s.payload)], data, MaxPayloadSize); ok {
		content = payload
		if cap(payload) > cap(s.payload) {
			s.payload = payload
		}
	} else {
		domain = domainInvalidSnappy
	}
	copy(id[:], s.digest(domain, topic, content))

	return id
}

// digest returns the hash of all parts, in storage of the scratch.
func (s *idScratch) digest(domain [4]byte, topic string, content []byte) []byte {
	s.head = append(s.head[:0], domain[:]...)
	s.head = binary.LittleEndian.AppendUint64(s.head, uint64(len(topic)))
	s.head = append(s.head, topic...)
	s.hash.Reset()
	s.hash.Write(s.head)
	s.hash.Write(content)
	s.sum = s.hash.Sum(s.sum[:0])

	return s.sum
}
