//go:build !amd64 || purego

package lanes

func permute(_ Path, a *KeccakState) { permuteGeneric(a) }

func permuteWide(p Path, a *KeccakWide, n int) {
	permuteSerial(p, a, n)
}

func keccakComputed(_ Path, n int) int { return n }

func hashWide(p Path, out *KeccakWideDigest, message []KeccakRow, n int) {
	hashLong(p, out, message, n)
}

func stepWide(p Path, block *KeccakWide64, increment uint64, n int) {
	stepWideByDigest(p, block, increment, n)
}
