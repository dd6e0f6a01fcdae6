// Command keccak writes the Keccak-f[1600] kernels of internal/lanes: 8 lanes with AVX-512, 4 with AVX2, one with BMI.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

const rounds = 24

// unrolled is the number of rounds after which every lane of the state is back in its place (see place).
const unrolled = 4

// roundConstants are the constants of iota (FIPS 202 section 3.2.5).
var roundConstants = [rounds]uint64{
	0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
	0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
	0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
	0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
	0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
	0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
}

// rotations are the offsets of rho (section 3.2.2), by lane.
var rotations = [25]uint8{
	0, 1, 62, 28, 27,
	36, 44, 6, 55, 20,
	3, 10, 43, 25, 39,
	41, 45, 15, 21, 8,
	18, 2, 61, 56, 14,
}

// place is where lane (x, y) of the state lies before round i. A round puts the five lanes of a row of its output into the five
// places that their inputs left, so that no second state is needed: the lanes are spread by the matrix (1 0; 1 2) to the power
// of i, whose fourth power is the identity modulo 5 (Bertoni et al., Keccak implementation overview).
func place(i, x, y int) int {
	for range i % unrolled {
		y = (x + 2*y) % 5
	}
	return x + 5*y
}

// source is the lane that rho and pi move to (x, y).
func source(x, y int) (fromX, fromY int) { return (x + 3*y) % 5, x }

func rotation(x, y int) uint8 { return rotations[x+5*y] }

func main() {
	ConstraintExpr("amd64,!purego")
	c := constants()
	permuteAVX512(c)
	hashAVX512(c)
	stepAVX512(c)
	permuteAVX2(c)
	permuteBMI(c)
	Generate()
}

// constants puts the round constants into read-only data.
func constants() Mem {
	c := GLOBL("keccakRoundConstants", RODATA|NOPTR)
	for i, v := range roundConstants {
		DATA(8*i, U64(v))
	}
	return c
}
