// Package lanes holds the two hash functions of the signature schemes in the shape in which many of them run at
// once: BLAKE2s-256 and Keccak-256 over short messages that fill exactly one block, and the bare compression and
// permutation for the few longer ones.
//
// A signature check is a large number of small, independent hashes: the steps of 42 or 58 chains, then one climb per
// signature. The functions whose names end in a message length therefore take slices: element i of the input and
// element i of the output belong together and nothing flows between elements. A caller lines up all the hashes that
// it can make at one time, over chains and over signatures, and hands them over in one call; how many are computed
// together is decided here and nowhere else.
//
// Blocks are words, not bytes: a BLAKE2s block is 16 uint32 and a Keccak block 8 or 10 uint64, little-endian. A chain step
// changes two or four words of a block and leaves the rest in place, so nothing is packed or unpacked between steps.
//
// The package knows nothing of tweaks, addresses or trees, does no padding beyond the lengths that its function names
// state, and is no general hash library: an input of another length is the caller's to lay out.
//
// Nothing here allocates, keeps state or blocks; every function may be called from any number of goroutines on
// disjoint outputs. The only failure is a broken invariant of the caller (an output slice shorter than its input),
// which panics as an index out of range does. No function branches or indexes on the bytes it hashes.
package lanes
