package scheduler

import "time"

// Meters turn what pieces of work took into the Signals of the controller. The zero value is ready; safe for concurrent
// use. Each method takes about 0.5 us.
type Meters struct {
	wait  window // of votes
	check window // of aggregates
	// Two, of which the larger one counts: a few long checks would hide in one meter what happens to many short ones.
	votes  slowdownMeter // checks of votes in this process
	proofs slowdownMeter // checks of proofs in the verifier child
}

// Votes takes a batch of votes: how long the first one waited for a worker, and the wall and CPU time of their check,
// which waits for nothing but a CPU.
func (m *Meters) Votes(wait, wall, cpu time.Duration) {
	m.wait.add(wait)
	m.votes.add(wall, cpu)
}

// Aggregate takes the wall time of the check of an aggregate, on the worker.
func (m *Meters) Aggregate(wall time.Duration) { m.check.add(wall) }

// Proof takes the wall and CPU time of the check of a proof where it is computed, without the way there and back.
func (m *Meters) Proof(wall, cpu time.Duration) { m.proofs.add(wall, cpu) }

// Signals sums up the present window, in about 0.2 ms.
func (m *Meters) Signals(interval int) Signals {
	return Signals{
		QueueWaitP99: m.wait.p99(), CheckP99: m.check.p99(), Slowdown: max(m.votes.slowdown(), m.proofs.slowdown()), Interval: interval,
	}
}
