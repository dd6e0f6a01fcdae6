// Package store keeps what must survive the process: for each one-time signing
// key the highest slot that it was used for, and the root that was signed there.
//
// It is a bbolt file, journal.db, in the data directory of the node. It knows
// nothing of signatures, slots or validators beyond 32-byte keys, numbers and
// 32-byte roots, and it holds no secrets. Chain data is not kept.
//
// # One mark through the journal
//
//	Marks.Reserve   all keys of a duty in one transaction: compare each with its
//	                mark, write the new marks, fsync; only then return
//	(the caller)    signs and publishes for the keys whose error is nil
//
// A mark is on disk before the signature that it stands for exists
// (ARCHITECTURE.md invariant 10). A crash between the two costs one unused
// position, never a position used twice. The same slot and root may be reserved
// again: signing is deterministic and yields the same bytes.
//
// # Concurrency
//
// One process owns a data directory: [Open] takes a lock on it and names the
// other process when there is one. Within the process all methods are safe for
// concurrent use; writers take turns.
//
// # Failure
//
// A journal that is damaged is refused by [Open] and never repaired or replaced:
// the marks in it are the only protection against using a position twice. A
// journal comes to its name by rename, so a crash while it is made leaves none.
// When a transaction fails, every key of the batch is refused.
package store
