// Package bench measures the node's parts as they are: how much proving slows checking, what a proof, a signature and a
// vote cost.
//
// It judges no network and runs no node: there is no chain beyond genesis here and no key of anybody. Most of it feeds on
// a recorded trace of one slot of a local network (testdata/trace, embedded), with 64 signed votes and 16
// aggregates with real proofs, under the insecure keys of package netconfig/devkeys.
//
// # Isolation
//
// One aggregate of the trace takes the way of gossip: Decompress, pipeline.Screen and Submit on a goroutine of its own, a
// pipeline worker, verify.Verifier, pubkeycache, and the native check on that worker or the verifier child over its pipe.
// Wrappers at the seams (probe) note when it passes. Beside it votes come at a steady rate and are checked in the same pipeline.
//
// The scheduler and its controller run as in the node, on the signals of these checks (meters).
//
// A phase is one kind of proving: none, a child placed by the scheduler, the same child at normal priority, or hashing in
// goroutines of this process. The kinds take turns, in another order each round, so that a machine whose speed drifts
// slows all of them alike; figures are pooled over the rounds. Children are started once, so no phase pays for a set-up. A
// shorter phase at the end of each round has proofs checked the other way, so that native check and child stand side by side.
//
// A pipeline believes what it has verified and would call the second copy of a trace a duplicate. So the trace runs
// through a fresh pipeline each quarter of a second (pass), over a clock that stands in the trace's slot; verifier, key
// cache and children stay.
//
// # Prover
//
// Prover asks one child for proofs of growing jobs and reports wall time, CPU, peak memory and size: what the planner's
// cost model needs to know of a machine.
//
// # Check
//
// Check has a child make proofs of several sizes and checks each of them natively, natively in a batch, and in a child, in turn.
//
// # Duty
//
// Duty lets the node's signer do its duty in short slots around a change of subtrees, with the embedded keys, a real journal
// and a real pipeline behind it, and notes when the last vote of each slot was encoded for the network. A load beside it is
// placed as the node places its prover.
//
// # Faults
//
// Faults is Isolation's single checks beside a prover that is stopped or killed in each job, runs a third of the time, or takes
// memory until it is over its limit.
//
// # XMSS
//
// XMSS times hashes, signatures, checks and subtrees on each path of package lanes, in turn, by the thread's own CPU time.
//
// # Pipeline
//
// Pipeline sends the votes of one slot through the real queue, in process and from a second process over QUIC, beside a
// gossip receiver that accepts everything.
//
// # Captures
//
// CaptureWriter and CaptureReader write and read gossip with its timing; the trace is such a file. The reader takes no
// byte on trust.
//
// # Concurrency and failure
//
// Isolation, Prover and Check block until everything they started has ended. A child that dies or a proof that fails ends the
// measurement with an error: half a measurement is none. Items that are not accepted are counted as drops by reason and
// are in no latency. A machine too busy to tell makes a report that says so, with all figures.
package bench
