// Package aggregate is the aggregator: it collects verified material, decides what is worth a proof, has it proved,
// checks the proof and publishes it (ARCHITECTURE.md section 5).
//
// It does not verify what others send (package verify), keeps no queue of unverified items (pipeline), runs no prover
// (prover) and knows no head or finality: what is old is decided by slots.
//
// # Path of one vote
//
// pipeline hands a verified vote to [Pool.AddAttestation], which puts it into a bounded inbox. The pool's one owner
// goroutine files it under (data root, validator) and wakes the [Aggregator]. The aggregator's loop asks the slot's
// session whether the vote completes something (trigger.go), takes a snapshot (references only), and lets decide choose
// the material of one job (planner.go), a pure function of snapshot, clock, capabilities and cost model. The job waits
// for the budget, is planned again if the pool changed meanwhile, and is proved. The prover then has its next job, which was
// planned while this one ran (ahead.go), while the proof is checked by the verifier like anybody's aggregate (selfcheck.go),
// put into the pool and then into the outbox, from which a goroutine of its own publishes in order of value. Raw votes stay
// until their slot is pruned, so that a later, wider job proves flat over all of them.
//
// # Concurrency
//
// Pool: one writer, the goroutine of [Pool.Run] (invariant 7); everybody else sends to the inbox or reads immutable
// snapshots. Aggregator: one loop goroutine owns sessions, jobs, cost model and bars; a goroutine for the job that is proved,
// one for each of at most four proofs in self-check and one that publishes work for it and report to it.
// [Aggregator.Run] waits for all of them.
//
// # Failure policy
//
// Every job ends in one [JobOutcome], every slot in one [SessionReason]; a slot without a proof says the one reason why.
// A prover that hangs, dies or lies costs its own job: the pool keeps all material and the next slot is served. A job
// that fails twice is quarantined, an input that the prover refuses is barred, a proof that fails the self-check is never
// published and makes [Aggregator.Ready] false, as do two sessions in a row that had material and made no proof. Nothing
// is kept beyond a window of slots, and every container is bounded in count and bytes.
package aggregate
