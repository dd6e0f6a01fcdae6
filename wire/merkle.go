package wire

import (
	"crypto/sha256"
	"encoding/binary"
)

// maxDepth is the deepest tree of a container here: the 2^24 chunks of
// Bitlist[HistoricalRootsLimit * MaxRegistryLimit] in a state.
const maxDepth = 24

// zeroRoots holds the root of a subtree of zero chunks for each depth. Never
// written after initialisation.
var zeroRoots = func() (z [maxDepth + 1]Root) {
	for i := range maxDepth {
		z[i+1] = hashPair(&z[i], &z[i])
	}

	return z
}()

// hashPair returns SHA-256 of a and b.
func hashPair(a, b *Root) Root {
	var buf [64]byte
	copy(buf[:32], a[:])
	copy(buf[32:], b[:])

	return sha256.Sum256(buf[:])
}

// merkleize returns the root of a tree of 2^depth chunks of which the first are
// given and the others are zero. It overwrites chunks. There must be at most
// 2^depth chunks, and depth at most maxDepth.
func merkleize(chunks []Root, depth int) Root {
	if len(chunks) == 0 {
		return zeroRoots[depth]
	}
	for d := range depth {
		n := len(chunks)
		for i := 0; i < n; i += 2 {
			right := &zeroRoots[d]
			if i+1 < n {
				right = &chunks[i+1]
			}
			chunks[i/2] = hashPair(&chunks[i], right)
		}
		chunks = chunks[:(n+1)/2]
	}

	return chunks[0]
}

// mixInLength returns the root of a list from the root of its content.
func mixInLength(root Root, n uint64) Root {
	length := uint64Chunk(n)

	return hashPair(&root, &length)
}

// uint64Chunk returns the chunk of a 64-bit number.
func uint64Chunk(v uint64) (c Root) {
	binary.LittleEndian.PutUint64(c[:], v)

	return c
}

// chunksOf returns b cut into 32-byte chunks, the last one padded with zeros.
func chunksOf(b []byte) []Root {
	chunks := make([]Root, (len(b)+31)/32)
	for i := range chunks {
		copy(chunks[i][:], b[32*i:])
	}

	return chunks
}

// bitlistDepth returns the depth of the tree of a bitlist of at most limit bits.
func bitlistDepth(limit int) int { return depthOf((limit + 255) / 256) }

// depthOf returns the depth of the smallest tree with at least n leaves.
func depthOf(n int) int {
	d := 0
	for 1<<d < n {
		d++
	}

	return d
}
