// Package key is the verification key of one version of the lean-pq prover: all that a check needs to know of the program
// that a proof is about, and nothing of any proof.
//
// It has two parts, both written by leanproof/internal/gen from an installed prover and committed:
//
//   - The layout, as typed Go data: blocks of the bus and their coordinates, columns, claims of the opening, lists of the
//     Keccak reduction, parameters of the low degree test for every rate and size. layout.go declares the types.
//   - The guest, the program that the virtual machine runs, as an embedded compressed file: 2^19 instructions of which the
//     last 160,557 are alike. Its table has a word for each slot and instruction; a check needs the value of the table's
//     multilinear extension at one or two points, which [Key.Evaluate] gives. The table itself, 64 MiB, is never built.
//
// The seed of every transcript is a Keccak-256 hash over the whole table: a proof made by any other guest, even one
// instruction apart, has another seed and is refused. The generator and a test compute the seed from the embedded
// instructions again.
//
// [Load] decompresses the key once (tens of milliseconds) and keeps some 14 MiB; the embedded bytes are pinned by a SHA-256, so
// a damaged binary gives an error. A Key is immutable and its methods may be called concurrently. Scratch memory of
// evaluations is pooled.
//
// Origin of the data: py-lean-pq 0.7.0 (leanVM commit a39758de), see NOTICE.
package key
