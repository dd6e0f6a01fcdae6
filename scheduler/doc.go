// Package scheduler decides when a proof may run and with what place in the system its process starts, so that proving
// never slows checking.
//
// It grants one proof at a time (Acquire), wraps the commands of backend children so that they start with the priority,
// the limits and the death signal of their class (Place), and watches the memory of their process trees (Watch). It
// does not start processes: package prover does, through the function that Place returns. It knows nothing of votes,
// slots or proofs.
//
// One command passes through it like this: Place rewrites "python child" into "aggnode child-exec --nice 19 … -- python
// child"; prover starts that; the new process runs ChildExec, which sets the policy on its one thread, asks the kernel
// to be killed with its parent, and becomes python by execve. All of this must happen before the backend makes threads,
// since Linux keeps priorities by thread: that is why a shim is needed at all.
//
// The placement tier in force is T0, which every Linux machine has: own process group, nice 19, oom_score_adj 500,
// memory by watching. Which control groups the machine offers is detected and reported, for the tiers above.
//
// Concurrency: a Scheduler is safe for concurrent use and owns no goroutine; Watch runs on its caller's. Failure
// policy: a limit that can not be set in the child ends the child with exit code 127 and a line on stderr that says
// which, rather than leave a prover at normal priority.
package scheduler
