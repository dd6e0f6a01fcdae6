package lanes

// KeccakState is the state of Keccak-f[1600]: lane (x, y) is element x + 5y, little-endian. The zero value is the state
// before the first block. It is a plain value: copying it keeps the state after a fixed prefix.
type KeccakState [25]uint64

// KeccakDigest is the first 16 bytes of a Keccak-256 digest as little-endian words.
type KeccakDigest [2]uint64

// KeccakRate is the length of a block of Keccak-256 in words: 136 bytes.
const KeccakRate = 17

// padding of Keccak-256: the bit after the message (the original padding, 0x01, not the 0x06 of SHA-3), and the last bit
// of the block, in lane 16.
const (
	padFirst = 0x01
	padLast  = 0x80 << 56
)

// Absorb takes one whole block of a longer message into the state.
func (a *KeccakState) Absorb(block *[KeccakRate]uint64) {
	for i, w := range block {
		a[i] ^= w
	}
	Permute(a)
}

// Finish takes the last words of a message (fewer than a whole block) with their padding into the state.
// Digest reads the result.
func (a *KeccakState) Finish(words []uint64) {
	_ = a[:KeccakRate][len(words)]
	for i, w := range words {
		a[i] ^= w
	}
	a.pad(len(words))
	Permute(a)
}

// pad adds the padding after so many words of the last block.
func (a *KeccakState) pad(words int) {
	a[words] ^= padFirst
	a[KeccakRate-1] ^= padLast
}

// Digest is the first half of the digest once the message was finished.
func (a *KeccakState) Digest() KeccakDigest { return KeccakDigest{a[0], a[1]} }

// Permute is Keccak-f[1600].
func Permute(a *KeccakState) { permute(Current(), a) }
