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

// b2ChainSet is a set of chains: bit 3r stands for the r-th of the first half and bit 3r+1 for the r-th of the second.
type b2ChainSet uint64

// chains are the chains with a digit.
func (d *b2Digits) chains(digit uint8) b2ChainSet {
	all := uint64(digit) * b2Ones
	a, b := d[0]^all, d[1]^all // zero where the digit is
	return b2ChainSet(^(a|a>>1|a>>2)&b2Ones | ^(b|b>>1|b>>2)&b2Ones<<1)
}

// first is the chain of the lowest bit of a set that is not empty.
func (s b2ChainSet) first() uint8 { return b2ChainOf[bits.TrailingZeros64(uint64(s))] }

// b2ChainOf is the chain that each bit of a b2ChainSet stands for.
var b2ChainOf = func() (chains [64]uint8) {
	for r := range b2HalfChains {
		chains[b2DigitBits*r], chains[b2DigitBits*r+1] = uint8(r), uint8(r+b2HalfChains)
	}
	return chains
}()
