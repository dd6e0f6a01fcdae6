package xmss_test

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/sha3"

	"aggnode/xmss"
)

// This file says both schemes once more, hash by hash over x/crypto, without anything of the package: the tests compare the two.
// A reference check with lax set skips the rule on the digest: what passes it then is refused for that rule alone.

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// refB2Full is the whole tweaked hash of scheme blake2s.
func refB2Full(p []byte, kind byte, sub, index uint32, payload ...[]byte) []byte {
	sum := blake2s.Sum256(join([]byte{0, kind, 0, 0}, le32(sub), make([]byte, 4), le32(index), p, join(payload...)))
	return sum[:]
}

func refB2(p []byte, kind byte, sub, index uint32, payload ...[]byte) []byte {
	return refB2Full(p, kind, sub, index, payload...)[:16]
}

// refB2Digits are the digits without regard to the spare bits, and whether the digest is admissible.
func refB2Digits(d []byte) (digits [42]int, ok bool) {
	sum := 0
	for i := range digits {
		half := binary.LittleEndian.Uint64(d[8*(i/21):])
		digits[i] = int(half >> (3 * (i % 21)) & 7)
		sum += digits[i]
	}
	return digits, sum == 195 && d[7] < 128 && d[15] < 128
}

func refB2Chain(p []byte, epoch uint32, i, from, to int, v []byte) []byte {
	for s := from; s < to; s++ {
		v = refB2(p, 1, uint32(8*i+s), epoch, v)
	}
	return v
}

// refClimb folds a path; parent hashes the children of node j of level l.
func refClimb(n []byte, index uint32, path []byte, parent func(l, j uint32, left, right []byte) []byte) []byte {
	for l := uint32(0); len(path) > 0; l++ {
		left, right := n, path[:16]
		if index>>l&1 != 0 {
			left, right = right, left
		}
		n = parent(l+1, uint32(uint64(index)>>(l+1)), left, right)
		path = path[16:]
	}
	return n
}

func refB2Root(p []byte, epoch uint32, leaf, path []byte) []byte {
	return refClimb(leaf, epoch, path, func(l, j uint32, left, right []byte) []byte { return refB2(p, 3, l, j, left, right) })
}

func refB2Verify(pk xmss.PublicKey, epoch uint32, message [32]byte, sig []byte, lax bool) error {
	if len(sig) != 1208 {
		return xmss.ErrLength
	}
	p := pk[16:]
	digits, ok := refB2Digits(refB2(p, 4, 0, epoch, message[:], sig[672:696], make([]byte, 8)))
	if !ok && !lax {
		return xmss.ErrCodeword
	}
	var tips []byte
	for i, d := range digits {
		tips = append(tips, refB2Chain(p, epoch, i, d, 7, sig[16*i:16*i+16])...)
	}
	if !bytes.Equal(refB2Root(p, epoch, refB2(p, 2, 0, epoch, tips), sig[696:]), pk[:16]) {
		return xmss.ErrRoot
	}
	return nil
}

// refB2Craft signs with the one-time key of (seed, epoch) under the first randomizer whose digest accept likes. All chain values
// are right; the path is arbitrary and the public key is the one it leads to.
func refB2Craft(seed []byte, epoch uint32, message [32]byte, accept func(d []byte) bool) (pk xmss.PublicKey, sig []byte) {
	p := refB2(make([]byte, 16), 5, 0, 0, seed)
	randomizer := make([]byte, 24)
	var d []byte
	for a := uint64(0); d == nil || !accept(d); a++ {
		binary.LittleEndian.PutUint64(randomizer, a)
		d = refB2(p, 4, 0, epoch, message[:], randomizer, make([]byte, 8))
	}
	digits, _ := refB2Digits(d)
	var tips []byte
	for i, digit := range digits {
		v := refB2Chain(p, epoch, i, 0, digit, refB2(p, 0, uint32(i), epoch, seed))
		sig = append(sig, v...)
		tips = append(tips, refB2Chain(p, epoch, i, digit, 7, v)...)
	}
	sig = append(sig, randomizer...)
	for l := range uint32(32) {
		sig = append(sig, refB2(p, 6, l, epoch, seed)...)
	}
	copy(pk[:], refB2Root(p, epoch, refB2(p, 2, 0, epoch, tips), sig[696:]))
	copy(pk[16:], p)
	return pk, sig
}

// refKcFull is the whole addressed hash of scheme keccak.
func refKcFull(p []byte, kind byte, step, hi, lo uint32, payload ...[]byte) []byte {
	h := sha3.NewLegacyKeccak256()
	h.Write(join(p, le32(lo), le32(hi)[:3], []byte{kind | byte(step)<<5}, make([]byte, 8), join(payload...)))
	return h.Sum(nil)
}

func refKc(p []byte, kind byte, step, hi, lo uint32, payload ...[]byte) []byte {
	return refKcFull(p, kind, step, hi, lo, payload...)[:16]
}

const refKcTop = uint32(1 << 23)

// refKcDigits are the digits without regard to the spare bits, and whether the digest is a codeword.
func refKcDigits(d []byte) (digits [58]int, ok bool) {
	sum := 0
	for i := range digits {
		digits[i] = int(d[i/4] >> (2 * (i % 4)) & 3)
		sum += digits[i]
	}
	return digits, sum == 106 && refKcSpare(d) == 0
}

// refKcSpare are bits 116 to 127 of a digest.
func refKcSpare(d []byte) uint16 { return binary.LittleEndian.Uint16(d[14:]) >> 4 }

func refKcChain(p []byte, layer, index uint32, i, from, to int, v []byte) []byte {
	for s := from; s < to; s++ {
		v = refKc(p, 1, uint32(s), layer, index, v, le64(uint64(i)), make([]byte, 8))
	}
	return v
}

func refKcRoot(p []byte, layer, index uint32, leaf, path []byte) []byte {
	return refClimb(leaf, index, path, func(l, j uint32, left, right []byte) []byte { return refKc(p, 3, 0, layer|l, j, left, right) })
}

// refKcLayer is the root that a layer's part leads to; false when the digest is no codeword.
func refKcLayer(p []byte, layer, index uint32, signed, part []byte) (root []byte, ok bool) {
	digits, ok := refKcDigits(refKc(p, 12, 0, layer, index, signed, part[:16]))
	var tips []byte
	for i, d := range digits {
		tips = append(tips, refKcChain(p, layer, index, i, d, 3, part[16+16*i:32+16*i])...)
	}
	return refKcRoot(p, layer, index, refKc(p, 2, 0, layer, index, tips), part[944:]), ok
}

func refKcVerify(pk xmss.PublicKey, epoch uint32, message [32]byte, sig []byte, lax bool) error {
	if len(sig) != 2404 {
		return xmss.ErrLength
	}
	if leafIndex(sig) != epoch {
		return xmss.ErrEpoch
	}
	root, ok := refKcLayer(pk[16:], 0, epoch, message[:], sig[4:1204])
	if !ok && !lax {
		return xmss.ErrCodeword
	}
	root, ok = refKcLayer(pk[16:], refKcTop, epoch>>16, root, sig[1204:])
	if !ok && !lax {
		return xmss.ErrCodeword
	}
	if !bytes.Equal(root, pk[:16]) {
		return xmss.ErrRoot
	}
	return nil
}

func refKcParameter(seed []byte) []byte { return refKc(make([]byte, 16), 28, 0, 0, 0, seed) }

func refKcStart(p, seed []byte, layer, index uint32, i int) []byte {
	return refKcFull(p, 29, 0, layer|uint32(i/2), index, seed)[16*(i%2):][:16]
}

// refKcLeaf is the leaf of the one-time key of an index.
func refKcLeaf(p, seed []byte, layer, index uint32) []byte {
	var tips []byte
	for i := range 58 {
		tips = append(tips, refKcChain(p, layer, index, i, 0, 3, refKcStart(p, seed, layer, index, i))...)
	}
	return refKc(p, 2, 0, layer, index, tips)
}

// refKcCraft is refB2Craft for one layer's part; it gives the root that the part leads to.
func refKcCraft(seed []byte, layer, index uint32, signed []byte, accept func(d []byte) bool) (part, root []byte) {
	p := refKcParameter(seed)
	randomizer := make([]byte, 16)
	var d []byte
	for a := uint64(0); d == nil || !accept(d); a++ {
		binary.LittleEndian.PutUint64(randomizer, a)
		d = refKc(p, 12, 0, layer, index, signed, randomizer)
	}
	digits, _ := refKcDigits(d)
	part = append(part, randomizer...)
	for i, digit := range digits {
		part = append(part, refKcChain(p, layer, index, i, 0, digit, refKcStart(p, seed, layer, index, i))...)
	}
	for l := range uint32(16) {
		part = append(part, refKc(p, 27, 0, layer|l, index, seed)...)
	}
	return part, refKcRoot(p, layer, index, refKcLeaf(p, seed, layer, index), part[944:])
}

// leafIndex is the leaf index in a keccak signature, 0 when it has none.
func leafIndex(sig []byte) uint32 {
	if len(sig) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(sig)
}

// digitSum is the sum of the digits of a digest that is not a codeword.
func digitSum(digits []int) (sum int) {
	for _, d := range digits {
		sum += d
	}
	return sum
}

func refVerify(s xmss.Scheme, c *xmss.Check, lax bool) error {
	if s == xmss.Blake2s {
		return refB2Verify(c.PublicKey, c.Epoch, c.Message, c.Signature, lax)
	}
	return refKcVerify(c.PublicKey, c.Epoch, c.Message, c.Signature, lax)
}

// oneBit reports whether exactly the named spare bit (116..127) is set.
func oneBit(d []byte, bit int) bool {
	return bits.OnesCount16(refKcSpare(d)) == 1 && refKcSpare(d)>>(bit-116) == 1
}
