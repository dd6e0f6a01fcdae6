// Package bundle is the embedded proof backend that needs nothing installed: its proof is the signatures of the signer
// set themselves, and its check is the batch verifier of package xmss on the calling goroutine.
//
// It is a complete aggregate, of linear size: no succinct proof, and refused by every wire profile but "local". It
// stands in where a network of one machine has to run without a prover, and it is the backend that shows whether
// anything above package prover depends on which one it talks to: a Backend has the calls of prover.Client.
//
// One proof: a 16-byte header and one signature for each key of the signer set, in its order.
//
//	0   "aggb"
//	4   version, 1
//	5   scheme: 1 blake2s, 2 keccak
//	6   two zero bytes
//	8   epoch, u32 little-endian
//	12  number of signatures, u32 little-endian
//	16  signatures of 1,208 or 2,404 bytes
//
// The keys and the message are not in it: the claim brings them, so Inspect is refused. A container's proof field holds
// 524,288 bytes, which is 434 signatures of blake2s or 218 of keccak: Capabilities.MaxRaw and MaxSigners.
//
// A merge job takes the signatures out of its children, so merging is exact and children may overlap.
//
// Concurrency: a Backend is stateless and safe for concurrent use; calls look at ctx between batches of signatures.
// Failure policy: none of its own; there is no process to lose.
package bundle
