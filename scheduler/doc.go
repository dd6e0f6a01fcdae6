// Package scheduler decides when a proof may run, with what place in the system its process starts and how much CPU it
// gets while it runs, so that proving never slows checking.
//
// It grants one proof at a time (Acquire), wraps the commands of backend children so that they start with the priority,
// the limits and the death signal of their class (Place), watches the memory of their process trees (Watch), steps a
// budget controller beside them and puts the node before everything else (Run), runs long computations of the node on
// threads of their own (Compute) or without that precedence (Ordinarily), and paces its background work (Pacer). It does not
// start processes: package prover does, through the function that Place returns. It knows nothing of votes or proofs: what
// checks cost comes in as Signals, for which it has the instruments (Meters, ThreadCPU).
//
// One command passes through it like this: Place rewrites "python child" into "aggnode child-exec --nice 19 … -- python
// child"; prover starts that; the new process runs ChildExec, which sets the policy on its one thread, asks the kernel
// to be killed with its parent, and becomes python by execve. All of this must happen before the backend makes threads,
// since Linux keeps priorities by thread: that is why a shim is needed at all.
//
// Placement is a ladder of tiers, climbed by New as far as Budget.Tier and the machine allow; what stopped it is in
// Placement. T0, which every Linux machine has: own process group, nice 19, oom_score_adj 500, memory by watching. T1, from
// four CPUs on: besides, affinity that leaves a quarter of the CPUs to the node. T2, where cgroup v2 is delegated: the group
// that the node was started in becomes the parent of two leaves, "node" and "prover", with weights 1000 and 100, a quota and
// memory.max; the node moves to its leaf, provers are born in theirs, and Close undoes all of it. Leaves of a node that
// crashed are emptied and replaced by the next one; a lock on the group keeps a second living one out.
//
// What the operator allows (Budget), the tier included, can change at any time: SetBudget hands the change to Run, which
// puts it in force, moves the provers that run and answers. Changes of the operator and moves of the controller each leave a
// count and a span by their Cause.
//
// One step of the controller: Run reads the node's signals, the run-queue delay of the workers, cpu.stat and cpu.pressure,
// calls State.Step, which is a pure function, and writes what changed to the prover's leaf. Below T2 there is no quota: the
// operator's maximum becomes a number of CPUs, rounded up, for provers that start and for those that Watch looks after, and
// the controller's own cuts are reported as cannot_limit.
//
// Concurrency: a Scheduler is safe for concurrent use; Run and Watch run on their callers' goroutines. It owns the goroutines of
// Compute, one a processor, from its first call until Close. Only Run, and after it Close, writes control files. Windows and
// meters take no lock.
//
// Failure policy: a limit that cannot be set in the child ends the child with exit code 127 and a line on stderr that says
// which, rather than leave a prover at normal priority. A tier that cannot be set up is undone and the one below is used. A
// decision that cannot be written is logged once, counted and tried again each step. After Close no prover starts at T2.
package scheduler
