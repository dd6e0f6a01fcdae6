// Package pubkeycache holds what verification knows about public keys: the registry of a network, the signer sets that
// aggregates name, and the verified upper parts of keys' trees.
//
// It does no verification itself and decides no verdict. It holds positive results only: an entry gets in by Admit or
// AdmitUpper, which a caller may call only after a check succeeded, so nobody can flush the caches with random
// participants or signatures that do not verify. Verdicts are the same with and without the caches; they save time.
//
// Path of one aggregate: SignerSet finds the ordered keys of its participants, in the form that a claim carries, without
// an allocation once the entry is warm: by a hash with a random seed, and a comparison of the bitlists. On a miss one caller builds the set, outside every lock,
// while others that want the same one wait for it; if the builder fails, the next waiter takes its turn. After the proof
// verified, Admit stores the set. A set that is being checked is not in the cache yet: an aggregate with the same
// participants that comes in the meantime builds it anew, which costs some 15 us for 1,000 keys. Nothing is built ahead of
// a lookup: who takes part differs from one aggregate to the next, and the sets of whole committees made in advance cost
// more than they save.
//
// Path of one attestation: Upper finds the upper part that earlier signatures of this key went through; the check skips
// the hashing above it when the bytes are equal. After a success with another part, AdmitUpper stores that one.
//
// Sizes are fixed at construction. Signer sets: 64 MiB / (validators x 32 B) entries, at least 64, at most 4,096, under
// the 2Q rule (a set seen once leaves before one seen twice). Upper parts: four of each validator (two keys, two
// neighbouring trees of each), of about 0.6 KiB (blake2s) or 1.5 KiB (keccak), the oldest first.
//
// Concurrency: all methods are safe for concurrent use and no lock is held while keys are sorted, copied or hashed. A
// Registry and a SignerSet are immutable.
//
// Failure policy: a registry that is not sound is refused with both offending indices. A participant outside the
// registry is ErrUnknownValidator; a waiter whose context ends gets the context's error.
package pubkeycache
