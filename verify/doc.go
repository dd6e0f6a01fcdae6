// Package verify checks what the network delivers: the signatures of attestations, the proofs of aggregates, and the
// proposer's signature of a block where the envelope carries it raw. It answers wire.ReasonNone or the reason why an
// item is refused, never a pubsub verdict: which reasons reject and which ignore is the pipeline's table.
//
// It does not look at the content of attestation data (chain does, the same for votes and aggregates), knows no time
// window and no duplicates (pipeline does), and stores no item.
//
// Path of a batch of attestations: keys from the registry, known upper parts from the cache, one call of the batch
// verifier on the calling goroutine, each with its own answer; new upper parts go into the cache only after a success.
//
// Path of an aggregate: participants against the registry, proof length, signer set from the cache, then the proof
// checker with the claim (data root, epoch = slot, signer set). After a success the signer set goes into the cache. The checker
// is an Arbiter, which has proofs checked natively (Native, package leanproof) or by a child, or the embedded backend.
//
// Trust: everything in an item comes from outside. Only the registry is trusted. There is no way to switch a check off
// but Config.NoProofs, under which no aggregate is ever answered as valid.
//
// Concurrency: all methods are safe for concurrent use and do their work on the calling goroutine, which must be a
// worker of the pipeline: a vote costs 0.02 to 0.1 ms, an aggregate the checker's time (with lean-pq 2 to 4 ms natively, 15 to
// 22 ms in a child). No lock is held while anything is hashed or checked. An Arbiter that compares has one goroutine, its Run.
//
// Failure policy: a checker that is unavailable, timed out or broke is ReasonVerifierUnavailable: nothing was learnt, the
// sender is not to blame. A panic is not recovered here; the worker does that.
package verify
