package lanes

// KeccakLanes is the number of states in the wide form. A permutation takes 48 ns of a core in the eight lanes of AVX-512,
// 142 ns in the four of AVX2, and alone 270 ns with BMI or 340 to 380 ns in portable code (Intel Xeon with AVX-512,
// 2026-12).
const KeccakLanes = 8

// KeccakRow is one word of each of eight states or messages.
type KeccakRow = [KeccakLanes]uint64

// KeccakWide is eight states of Keccak-f[1600]: word w of state l, its lane (w mod 5, w / 5), is element [w][l], on every
// path.
type KeccakWide [25]KeccakRow

// KeccakWide64 is eight messages of 64 bytes as little-endian words: word w of message l is element [w][l].
type KeccakWide64 [8]KeccakRow

// KeccakWide80 is eight messages of 80 bytes.
type KeccakWide80 [10]KeccakRow

// KeccakWideDigest is eight Keccak-256 digests, 32 bytes each; the schemes use the first two words.
type KeccakWideDigest [4]KeccakRow

// PermuteWide is Keccak-f[1600] on the first n states, 0 to 8; the others hold anything afterwards. Its lanes are not in
// KeccakOccupancy.
func PermuteWide(a *KeccakWide, n int) {
	_ = a[0][:n]
	permuteWide(Current(), a, n)
}

// Keccak64Wide hashes the first n messages of in, eight to an element, into out. The lanes of out beyond them hold anything
// afterwards. It panics when in or out has not n messages.
func Keccak64Wide(out []KeccakWideDigest, in []KeccakWide64, n int) {
	p := Current()
	for b := 0; b*KeccakLanes < n; b++ {
		hashWide(p, &out[b], in[b][:], min(n-b*KeccakLanes, KeccakLanes))
	}
	countKeccak(p, n, 1)
}

// Keccak80Wide is Keccak64Wide for messages of 80 bytes.
func Keccak80Wide(out []KeccakWideDigest, in []KeccakWide80, n int) {
	p := Current()
	for b := 0; b*KeccakLanes < n; b++ {
		hashWide(p, &out[b], in[b][:], min(n-b*KeccakLanes, KeccakLanes))
	}
	countKeccak(p, n, 1)
}

// KeccakStepWide takes the first n messages of blocks one step along their chains: words 4 and 5 of a message become the first
// 16 bytes of its digest, and word 2 grows by increment. The other messages stay as they are. It panics when blocks has not n
// messages.
func KeccakStepWide(blocks []KeccakWide64, increment uint64, n int) {
	p := Current()
	for b := 0; b*KeccakLanes < n; b++ {
		stepWide(p, &blocks[b], increment, min(n-b*KeccakLanes, KeccakLanes))
	}
	countKeccak(p, n, 1)
}

// KeccakLongWide hashes n equally long messages, 0 to 8, of len(words) words each: word w of message l is words[w][l]. The
// lanes of out beyond n hold anything afterwards.
func KeccakLongWide(out *KeccakWideDigest, words []KeccakRow, n int) {
	_ = out[0][:n]
	p := Current()
	hashLong(p, out, words, n)
	countKeccak(p, n, len(words)/KeccakRate+1)
}

// hashLong is KeccakLongWide without the count.
func hashLong(p Path, out *KeccakWideDigest, words []KeccakRow, n int) {
	if isSerial(p, n) {
		for l := range n {
			hashLane(p, out, words, l)
		}
		return
	}
	var a KeccakWide
	for len(words) >= KeccakRate {
		a.add(words[:KeccakRate])
		permuteWide(p, &a, n)
		words = words[KeccakRate:]
	}
	a.add(words)
	a.pad(len(words))
	permuteWide(p, &a, n)
	copy(out[:], a[:len(out)])
}

// add adds the next words of the messages to the states.
func (a *KeccakWide) add(words []KeccakRow) {
	for w := range words {
		for l, v := range words[w] {
			a[w][l] ^= v
		}
	}
}

// pad adds the padding after so many words of the last block.
func (a *KeccakWide) pad(words int) {
	for l := range a[0] {
		a[words][l] ^= padFirst
		a[KeccakRate-1][l] ^= padLast
	}
}

// isSerial says that n states are permuted one after another: in portable code, and when there is one, which the code for one
// state serves better than four or eight lanes (270 ns against 560 and 390 ns; Intel Xeon with AVX-512, 2026-12).
func isSerial(p Path, n int) bool { return p == PathGeneric || n <= 1 }

// countKeccak counts the permutations of n messages, eight at a time, each of so many blocks.
func countKeccak(p Path, n, blocks int) {
	if n > 0 {
		computed := n/KeccakLanes*keccakComputed(p, KeccakLanes) + keccakComputed(p, n%KeccakLanes)
		keccakLanes.add(Occupancy{Used: uint64(n * blocks), Capacity: uint64(computed * blocks)})
	}
}

// hashLane hashes message l alone.
func hashLane(p Path, out *KeccakWideDigest, message []KeccakRow, l int) {
	var a KeccakState
	for len(message) >= KeccakRate {
		for w := range KeccakRate {
			a[w] ^= message[w][l]
		}
		permute(p, &a)
		message = message[KeccakRate:]
	}
	for w := range message {
		a[w] ^= message[w][l]
	}
	a.pad(len(message))
	permute(p, &a)
	for w := range out {
		out[w][l] = a[w]
	}
}

// stepWideByDigest is stepWide by way of hashWide.
func stepWideByDigest(p Path, block *KeccakWide64, increment uint64, n int) {
	var d KeccakWideDigest
	hashWide(p, &d, block[:], n)
	for l := range n {
		block[2][l] += increment
		block[4][l], block[5][l] = d[0][l], d[1][l]
	}
}

// permuteSerial is Keccak-f[1600] on the first n states, one after another.
func permuteSerial(p Path, a *KeccakWide, n int) {
	for l := range n {
		var s KeccakState
		for w := range s {
			s[w] = a[w][l]
		}
		permute(p, &s)
		for w, v := range s {
			a[w][l] = v
		}
	}
}
