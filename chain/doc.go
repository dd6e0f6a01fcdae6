// Package chain knows what time it is and which blocks exist: the slot clock,
// the block tree and the answers that the rest of the node needs from them.
//
// It is the follower's view of a chain without a state transition: until that
// comes, the head is the highest block known (ties go to the larger root), the
// target of a vote is the head, and source, justified and finalized checkpoint
// are the genesis block. The questions that others ask ([Tree.Head],
// [Tree.Justified], [Tree.Finalized], [Tree.AttestationData], [Tree.CheckData])
// are those of a full view and stay. A wrong head costs usefulness, never
// soundness (ARCHITECTURE.md invariant 5).
//
// The package checks no signature and no proof, sends nothing and fetches
// nothing. Votes for unknown blocks wait in package pipeline, which is told of
// every imported block.
//
// # One block through the tree
//
//	Tree.AdmitBlock   cheap rules, before the proposer's signature is checked
//	(package verify)  the signature, where the envelope carries it
//	Tree.InsertBlock  the same rules again, then: parent known -> imported, with
//	                  every parked descendant; parent unknown -> parked
//	Config.OnImport   called for each imported block, parents first, no lock held
//
// A block that was missed would leave everything after it unconnected. So when
// two parked blocks in a row show that the chain went on, the older one is
// joined to genesis over a gap (gap.go). Nothing is ever refused for what lies
// in a gap; it is unknown.
//
// # Bounds
//
// At most 4 blocks a slot are kept, side branches for 1024 slots, the head's
// chain for 2^16 slots and 16 parked blocks of 16 MiB together. Slots come from
// the clock, so a sender of blocks can fill these bounds and no more.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Questions take a read lock for
// microseconds. The package starts no goroutine; [Clock.Ticks] and
// [Monitor.Run] block their caller. Nothing here fails on bytes from outside:
// the answer to a bad block or bad data is a [wire.Reason].
package chain
