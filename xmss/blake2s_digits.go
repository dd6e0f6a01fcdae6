package xmss

import "math/bits"

// b2Digits are the digits of an encoding: 21 in each half, 3 bits each from the lowest on. Chain 0 is the lowest of the first
// half.
type b2Digits [2]uint64

const (
	b2HalfChains = b2Chains / 2
	b2Ones       = 0o111_111_111_111_111_111_111 // bit 0 of all digits of a half
)

// b2DigitsOf reads the digits of a digest, or reports that it is not admissible: bit 63 of both halves must be zero and the
// digits must sum to the target.
func b2DigitsOf(w0, w1, w2, w3 uint32) (d b2Digits, ok bool) {
	d = b2Digits{uint64(w0) | uint64(w1)<<32, uint64(w2) | uint64(w3)<<32}
	sum := 0
	for bit := range b2DigitBits {
		plane := d[0]>>bit&b2Ones | d[1]>>bit&b2Ones<<1 // this bit of all 42 digits
		sum += bits.OnesCount64(plane) << bit
	}
	return d, (d[0]|d[1])>>63 == 0 && sum == b2TargetSum
}

// of is the digit of a chain.
func (d *b2Digits) of(chain int) uint8 {
	return uint8(d[chain/b2HalfChains]>>(chain%b2HalfChains*b2DigitBits)) & b2ChainTop
}
