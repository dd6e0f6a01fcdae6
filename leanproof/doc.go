// Package leanproof checks the aggregates of lean-pq in Go: one call, one goroutine, a few milliseconds, no other process. It
// accepts the proofs of exactly one version of the prover (py-lean-pq 0.7.0, leanVM commit a39758de), whose verification key is
// embedded.
//
// A proof says that for every listed (public key, message) a valid signature was known. Underneath it says that a fixed
// program, the guest, ran on a small virtual machine with the list as its input. The check is that of the machine's proof
// system. One item's path, with a file for each stage:
//
//	decode, sizes    bytes to lists, all lengths from ten announced words; nothing is hashed or allocated before they fit
//	claims           exactly the wanted ones, strictly ascending
//	statement        what is proved, hashed into the transcript (sponge); every challenge comes out of that
//	products         what the machine pushes and pulls has one product: three trees of products, layer by layer
//	leaves, tables   the leaves are rows of six tables: a sumcheck leaves claimed values of 157 columns
//	input            the memory starts with the statement
//	keccak           rows of the table KECCAK are permutations, round by round (with keccaklinear, keccakopen)
//	ringswitch       all claims on the 99 committed columns as one
//	opening, merkle  that one, by a low degree test with Merkle trees
//	terminal         up to its last identity
//	table            the guest's table has the value that "tables" needs; before "statement" also the value at the point to
//	                 which proofs inside this one carried their claims
//
// The table is the largest part of a check and the last, so proofs of a batch share it (VerifyBatch), and altered proofs are
// refused before it.
//
// What it is not: a prover, a compiler of guests, a verifier of data availability (refused), or a judge of other versions of
// the prover (their proofs are refused, mostly at the first layer of "products"). Proofs are malleable in their grinding
// nonces: tell aggregates apart by claims, not by bytes.
//
// How far it can be trusted: every step was compared with a reference implementation, with the states of the package's own
// verifier, and with its verdicts on genuine and altered proofs, and for each check there is a test in which that check alone
// refuses. It was not audited, and it was checked against one pinned prover only. SelfTest is for the start of a process.
//
// Concurrency: a Verifier may be used by any number of goroutines; each check runs on its caller's, looks at its context
// between stages, and takes its scratch memory, about 60 KiB, from a pool. Failure: the verdict on bytes is a Refusal, one for
// each check; no bytes make it panic or allocate by their own claim.
package leanproof
