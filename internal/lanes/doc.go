// Package lanes holds the two hash functions of the signature schemes in the shape in which many of them run at
// once: 16 messages of BLAKE2s-256, 8 states of Keccak-256, and each of them alone.
//
// A signature check is a large number of small, independent hashes: the steps of 42 or 58 chains, then one climb per
// signature. The wide calls take one hash a lane and nothing flows between lanes. A caller lines up all the hashes that it can
// make at one time, over chains, trials, leaves and signatures, and says which lanes it wants; what a lane outside of these
// holds afterwards is anything.
//
// The wide form is by word and then by lane, and the same on every path (word w of the message in lane k is element [w][k]):
// a row fills a vector register, and what one call writes is where the next reads it. A walk along chains or up a tree
// therefore moves no data between its steps, and its loop is in the kernel. Gather brings bytes into this form, and Advance
// walks chains that lie in memory one after another, 16 of them wherever they are. Words are little-endian.
//
// Three paths compute the same bytes: portable Go, one lane after another; AVX2, 8 lanes of BLAKE2s and 4 of Keccak, a part
// without a wanted lane left out; AVX-512, 16 and 8. Few lanes go to code that answers sooner than a wide kernel. The path is
// chosen from the CPU's features when the process starts; AGGNODE_LANES=generic or avx2 lowers it, Use changes it in tests.
// The build tag purego leaves the assembly out. Kernels are written by the programs in _asm (go generate); the committed
// output is compared with theirs by make generated.
//
// One compression of BLAKE2s takes 12.2 ns of a core in 16 lanes (AVX-512), 24 ns in 8 (AVX2) and 140 ns in portable code; up
// to four lanes take 111 ns together with AVX-512 (Intel Xeon, 2026-12). Blake2sOccupancy and KeccakOccupancy count how many
// of the computed lanes were wanted.
//
// The package knows nothing of keys or signatures. It knows of chains and trees only which word of a message counts steps,
// levels or nodes, so that these can go on inside a kernel; all other words are the caller's. It is no general hash library.
//
// Nothing here allocates, blocks or keeps state but the path and the two counts; every function may be called from any number
// of goroutines on disjoint data. The only failure is a broken invariant of the caller (a slice that is too short), which
// panics as an index out of range does. No function branches or indexes on the bytes it hashes, with the exceptions of the
// number of a node in Blake2s.Climb and of what names the chains in Blake2s.Advance.
package lanes
