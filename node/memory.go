package node

import "cmp"

// What the children of a node hold, with py-lean-pq 0.7 (Intel Xeon, 2026-11): a process with its circuits, and what a
// proof of up to 32 votes and two children takes at its peak.
const (
	childMemory = 340 << 20
	proofMemory = 1536 << 20
)

// ChildrenMemory is what the backend children are expected to hold at most, in bytes: what is not this process's to take.
// 0 where there are none. Of another program behind the prover protocol nothing is known, and as much is assumed.
func (c *Config) ChildrenMemory() int64 {
	switch c.Backend {
	case BackendNone, BackendBundle:
		return 0
	case BackendLeanPQ, BackendCommand:
	}
	var held int64
	switch c.verifier() {
	case VerifierChild:
		held = 2 * childMemory // and its warm spare
	case VerifierBoth:
		held = childMemory
	case VerifierNative: // what the key takes is this process's own
	}
	if c.IsAggregator {
		held += cmp.Or(c.ProverMemory, proofMemory) + childMemory // the prover and its own
	}
	return held
}
