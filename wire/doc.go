// Package wire holds the bytes that lean consensus nodes exchange: the SSZ
// containers and their hash tree roots, the topic names and the message id of
// gossip, the two snappy forms, the frames of request/response, and the
// [Profile] that says how large keys and signatures are on one network line.
//
// It knows no cryptography beyond SHA-256: public keys, signatures and proofs
// are opaque bytes whose length the profile fixes. It opens no connection, has
// no clock, keeps no state and judges nothing that the bytes alone do not
// decide; the one table of reason codes for inbound items is here because every
// other package speaks it.
//
// The path of one gossip message:
//
//	wire bytes -> MessageID (pubsub dedupes by it)
//	           -> ParseTopic, Decompress (announced length checked first)
//	           -> Profile.DecodeAttestation | DecodeAggregate | DecodeBlock
//	           -> AttestationData.HashTreeRoot | Block.HashTreeRoot
//
// and back: Profile.Encode…, Compress, Topic.Name.
//
// Containers are plain structs. A decoder returns structs whose byte slices may
// alias its input, which must therefore never be written again; all values are
// immutable once they are handed to another goroutine, and every function and
// method may be called concurrently.
//
// Bytes from outside are not trusted. A decoder checks each offset and length
// against the input before it allocates, so the memory that it takes is bounded
// by a small multiple of the input and never by a number inside it. It fails
// with a [DecodeError] that carries the reason for the verdict table, and it
// never panics. Encoders trust their caller and fail only where a length does
// not fit the profile.
//
// The layouts are those of leanSpec (containers/*.py, ssz/*, networking/*);
// the worked values are in the tests.
package wire
