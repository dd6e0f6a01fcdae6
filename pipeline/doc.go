// Package pipeline decides what happens to every message: it is the bounded,
// classed queue between gossip and the checks of signatures and proofs, and the
// only place that gives verdicts.
//
// It sends and receives nothing, checks no signature and no proof itself, keeps
// no block and aggregates nothing: those are p2p, verify, chain and aggregate,
// behind the small interfaces in pipeline.go.
//
// # One item through the package
//
//	Screen        on gossip's goroutine: decode, registry, slot window, subnet,
//	              verified facts; ends the item or makes it ready for Enqueue
//	Enqueue       on the same goroutine: into the queue of its class, or for an
//	              aggregate with an unknown head into the park
//	Submit        on a goroutine of the item: waits for its outcome
//	worker        takes a batch by the rule of queue.take, has it checked, records
//	              what was proved, hands it to the sink
//	park          votes whose block is unknown, after their signature was checked;
//	              HeadImported releases them
//	timekeeper    answers items whose deadline comes, at that time
//
// A verdict and the use of an item are different things. When a verdict is due
// before the facts are there, it is ignore, and the item goes on: a vote that is
// verified late, or whose block comes late, still feeds the pool, and the latter
// is published again.
//
// # Concurrency
//
// One mutex guards the queues, the park, the facts and the peers; it is held for
// about a microsecond and never across a check, a call of another package or a
// wait. Workers pull: there is no goroutine that hands out work and no channel
// that holds it, so that order and eviction stay possible until the last moment.
// Run owns the workers and the timekeeper; the constructor starts nothing. Callers
// wait for their items alone; what looks out for the end of their context is in
// await.go.
//
// # Failure policy
//
// Every item ends with exactly one reason (invariant 6), from the table in
// wire/reasons.go through VerdictOf. Every queue has a bound and a rule of who
// goes first, and the caller of the one that goes is answered at once. A panic
// below ends the items at hand with internal_error; the worker goes on. Nothing
// that was only claimed is believed: marks, subsumption, gains and the records of
// peers change when a check has ended, never when bytes arrive (invariant 4).
package pipeline
