// Package proposer makes the blocks of this node's validators.
//
// At interval 0 of a slot whose proposer's proposal key is held here, it builds
// a block on the highest block of an earlier slot, has it signed, inserts it
// into our own chain and publishes it. The body has one attestation at most: the
// widest verified aggregate of the best attestation data, with its proof
// unchanged, if it belongs to the chain that the block extends and adds
// participants to it; otherwise it is empty. The state root is zero until there
// is a state transition.
//
// The package holds no keys (package signer), verifies nothing and proves
// nothing; the aggregates that it is given were verified.
//
// Only the pair envelope can be made, a raw proposer signature beside the proof
// of the votes. The merged envelope needs a prover for the proposer's signature;
// on such a profile every duty ends with the outcome no_envelope.
//
// # Concurrency and failure
//
// [Proposer.Run] does one duty at a time on its own goroutine. A duty that
// starts after interval 0 is left out, because the slot's votes are being cast.
// Each duty ends in exactly one [Outcome], in one log line and one counter.
package proposer
