// Package xmss makes and checks the one-time hash-based signatures of Lean Ethereum validators, for the two parameter sets
// that the network's programs use: blake2s (the Ethereum XMSS specification) and keccak (leanXMSS of py-lean-pq 0.7). One
// Scheme value picks the set; above this package keys and signatures are sized opaque bytes.
//
// It knows nothing of slots, votes or validators, keeps no record of what was signed, caches no verdict and starts no
// goroutine outside Generate. A scheme is never guessed from a length.
//
// The path of a check: VerifyBatch takes checks up to 16 at a time. The digest of the message under the signature's
// randomizer gives one digit a chain (ErrCodeword when it is not admissible), which says how many steps the chain still has
// to go. The chains of all signatures of the group share the lanes of internal/lanes, so that these stay full although the
// chains are of unequal length, also when the signature is alone; tips hash to leaves and leaves climb their authentication
// paths, one signature a lane. Half-way up (level 9 for blake2s, the bottom root for keccak) a signature that shows a known
// Upper from the same node is done; the others climb to the root. The answer carries the new Upper for the caller to keep:
// the cache is the caller's, and can not change a verdict.
//
// The path of a signature: Generate computes every leaf of the range once and keeps one row of the tree (level 9); a key file
// is seed, public key and row. Sign rebuilds the 512 leaves below one node of the row when they are first needed (Prepare
// does it ahead), looks for a randomizer whose digest is admissible, and puts chain values and path together. Leaves and
// trials fill the lanes too. Everything is derived from the seed, and of the trials made side by side the first admissible
// one in their order counts, so the same call gives the same bytes on every machine.
//
// Concurrency: Scheme, Upper and Check values are immutable and free to share; a SecretKey may sign from many goroutines, and
// a subtree that two of them need is built once. Work runs in the caller's goroutine and ends when its ctx does; only
// Generate uses workers of its own, and waits for them.
//
// Failure: bytes from outside get one of five errors and never a panic or an allocation by their own claim. A key file is
// checked in all its parts; a key whose rebuilt subtree is not the one of its row refuses to sign. Nothing here runs in time
// independent of secrets beyond what the hashes give: the number of trials of a signature shows in its time, as it does in
// the specification's own programs.
package xmss
