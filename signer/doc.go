// Package signer does the signing duties of this node's validators: one vote a
// slot for each attestation key, and a signature for a block where a proposal
// key is held.
//
// It does not decide what a vote says or what a block holds (package chain and
// chain/proposer), does not check other validators' signatures and does not keep
// votes. Keys come ready to use from signer/keystore.
//
// # One vote
//
//	before        when the slot's block is known, search for the signatures'
//	              randomizers for the data that the votes will most likely carry
//	Run           interval 1 of the slot: wait for the slot's block, at most half
//	              an interval; take the attestation data once for all keys
//	SignVotes     reserve the slot for all keys, one transaction, on disk;
//	              meanwhile search, in at most GOMAXPROCS goroutines, for what was
//	              not found before; sign as both are there
//	each vote     published, and delivered to our own pipeline, as soon as it is
//	              signed, whatever the others do
//	afterwards    prepare the keys' subtrees for the next slot in the background:
//	              the proposer's first, at most half the processors, standing back
//	              while votes wait to be checked, until that slot begins; with
//	              them the first trials of the votes' searches are begun
//
// # Keys
//
// The two keys of a validator have separate marks, because a mark belongs to a
// public key. A one-time position is on disk before its signature exists, which
// is more than ARCHITECTURE.md invariant 10 asks for; another root at the same
// slot, and any lower slot, is refused for good. A key builds a subtree of 512
// positions at a time and keeps two, the current and the next one; subtrees are
// built ahead, at a different slot for each key, so that 512 slots after their
// start a thousand keys do not build theirs at once. A signature that needs a
// subtree which is being built waits for it and uses it.
//
// # Concurrency and failure
//
// SignVotes and SignBlock may be called by anyone at any time; Run is called
// once and owns the goroutines that prepare keys, of which one set runs at a
// time. No preparation is waited for by the loop over slots. Every key has a
// result of its own: an unknown index, a refused position, a damaged key or a
// panic costs the vote of that key and of no other. Refusals are [Refused] with
// a [Refusal] code; they are logged in one line a slot.
package signer
