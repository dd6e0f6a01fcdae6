// Package prover runs proof backends and talks to them: it turns signatures and smaller proofs into one proof, and
// checks proofs, by calls to a supervised child process. Bytes go in and bytes come out; nothing here knows what a vote
// is or which signature scheme a backend is for, beyond the known answers that a hello is checked against.
//
// The value types (Claim, Job, Raw, Child, Result, Capabilities, Entry) are shared with package prover/bundle, whose
// Backend has the same calls without a process. Who consumes them declares the interface that it needs.
//
// A Client owns the children of one role. A child of the prove role takes one job at a time; a child of the verify role
// serves several checks at once. Beside either stands an optional warm spare of the same kind, which takes over when the
// first one ends and helps out with checks; that of a prover only where the machine has the memory (rest.go). The two
// roles never share a process: a proof in progress must not delay a check.
//
// One job: Prove checks it against the capabilities of the child, encodes a prove frame and hands it to the writer of
// the process. The child answers with started, with progress each 250 ms (CPU used so far: what tells slow from stuck)
// and with a result, whose claims must be exactly those of the job. The deadline of the caller's context is hard: at
// its end the process group gets SIGTERM, 500 ms later SIGKILL, and a new child is started. docs/prover-protocol.md
// describes the frames.
//
// One child: pipes of its own on descriptors 3 and 4, standard output and error into bounded log lines, its own process
// group (never a session), the environment that is configured and no more. It is started from one locked OS thread that
// lives as long as the client, because the death signal of a child follows the thread that forked it. At hello it
// states version, scheme and limits and proves agreement by its verdicts on signatures and proofs whose soundness only
// the parent knows; a prover also proves a known job, which is measured. Reaping waits for the process and never for
// its pipes, and the group is killed before its leader is reaped, so neither zombies nor grandchildren are left.
//
// Concurrency: a Client is safe for concurrent use; Run blocks until every child is reaped and every goroutine ended.
// Slices handed over are never written and must not be written by the caller afterwards.
//
// Failure policy: whatever happens to a child is an error of the calls in flight (ErrUnavailable with its cause) and
// never of the node; a check that was in flight beside a culprit is asked again of another child. Children that die are
// started again with a back-off from 100 ms to 30 s, reset by any answered call. A prover whose memory does not come back
// after its proofs is replaced. Only a first hello that no restart heals ends Run.
//
// The shipped child for lean-pq is a Python program in this package; Install makes the environment that it runs in.
// Conformance runs any backend through what this package relies on.
package prover
