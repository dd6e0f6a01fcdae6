//go:build !purego

package lanes

// permute is Keccak-f[1600] of one state. The scalar code keeps the processor's front end full (185 operations a round); vector
// registers, with a lane or a row in each, would be no faster by the count of their instructions.
func permute(p Path, a *KeccakState) {
	if p == PathGeneric {
		permuteGeneric(a)
		return
	}
	keccakPermuteBMI((*[25]uint64)(a))
}

func permuteWide(p Path, a *KeccakWide, n int) {
	wide := (*[25]KeccakRow)(a)
	switch {
	case isSerial(p, n):
		permuteSerial(p, a, n)
	case p == PathAVX512:
		keccakPermuteAVX512(wide)
	default:
		keccakPermuteAVX2(wide, 0)
		if n > 4 {
			keccakPermuteAVX2(wide, 1)
		}
	}
}

// keccakComputed is the number of states that permuteWide permutes for n wanted ones.
func keccakComputed(p Path, n int) int {
	switch {
	case isSerial(p, n):
		return n
	case p == PathAVX512:
		return KeccakLanes
	}
	return (n + 3) &^ 3
}

// hashWide hashes the first n of eight messages of 8 or 10 words.
func hashWide(p Path, out *KeccakWideDigest, message []KeccakRow, n int) {
	if p == PathAVX512 && n > 1 {
		keccakHashAVX512((*[4]KeccakRow)(out), &message[0], len(message))
		return
	}
	hashLong(p, out, message, n)
}

// stepWide is KeccakStepWide for one block.
func stepWide(p Path, block *KeccakWide64, increment uint64, n int) {
	if p == PathAVX512 && n == KeccakLanes {
		keccakStepAVX512((*[8]KeccakRow)(block), increment)
		return
	}
	stepWideByDigest(p, block, increment, n)
}
