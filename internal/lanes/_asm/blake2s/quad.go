package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The kernels of this file compute four lanes, one quarter of each row, for when few messages are at hand: they take half the
// time of the ones for 16. A register holds four words of four messages, word after word, so that a row of the work vector,
// words 4i to 4i+3, is one register and the four quarter rounds run in one. What limits them is the time from one result to
// the next, not the number of instructions; so for the diagonals all rows but the second are turned, which is the one that is
// ready last.

const quadSuffix = "Quad"

var quadRows = [4]VecPhysical{Z0, Z1, Z2, Z3}

// quarterOf is a pointer parameter as the address of the quarter in its first row.
func quarterOf(param string) Mem {
	p := Load(Param(param), GP64())
	ADDQ(Load(Param("offset"), GP64()), p)
	return Mem{Base: p}
}

// quadLoad sets a register to four rows.
func quadLoad(array Mem, rows []int, to VecPhysical) {
	VMOVDQU(row(array, rows[0]), to.AsX())
	for i := 1; i < 4; i++ {
		VINSERTI32X4(U8(i), row(array, rows[i]), to, to)
	}
}

func quadStore(from VecPhysical, array Mem, first int) {
	VMOVDQU(from.AsX(), row(array, first))
	for i := 1; i < 4; i++ {
		VEXTRACTI32X4(U8(i), from, row(array, first+i))
	}
}

// quadBegin sets the registers that stay the same: the first half of the work vector of a message in one block and the
// second half, without what depends on the message's length.
func quadBegin() {
	spread := Z31 // 0 0 0 0 1 1 1 1 2 …
	VPMOVZXBD(constant(atSpread), spread)
	for i, at := range [4]int{atInitial, atInitial + 4, atIV, atIV + 4} {
		VBROADCASTI32X4(constant(at), quadFixed[i])
		VPERMD(quadFixed[i], spread, quadFixed[i])
	}
}

// quadFixed are the rows of the work vector as they begin.
var quadFixed = [4]VecPhysical{Z8, Z9, Z10, Z11}

// quadLength puts the number of bytes and the mark of a last block where the work vector begins.
func quadLength(total, final Register) {
	mask := GP32()
	for _, part := range []struct {
		value Register
		words uint32
	}{{total, 0x000f}, {final, 0x0f00}} { // words 0 and 2 of the last row
		MOVL(U32(part.words), mask)
		KMOVW(mask, K1)
		VPBROADCASTD(part.value, Z4)
		VPXORD(Z4, quadFixed[3], K1, quadFixed[3])
	}
}

// quadRounds sets the work vector and runs the ten rounds on it with the message m.
func quadRounds(m Mem) {
	a, b, c, d := quadRows[0], quadRows[1], quadRows[2], quadRows[3]
	words := [4]VecPhysical{Z4, Z5, Z6, Z7}
	for i, v := range quadRows {
		VMOVDQA32(quadFixed[i], v)
	}
	for _, s := range sigma {
		for i, rows := range [4][]int{
			{s[0], s[2], s[4], s[6]},
			{s[1], s[3], s[5], s[7]},
			{s[14], s[8], s[10], s[12]}, // the diagonal that goes through word 4 is the last
			{s[15], s[9], s[11], s[13]},
		} {
			quadLoad(m, rows, words[i])
		}
		for i := range 4 {
			VPADDD(words[i], a, a)
			VPADDD(b, a, a)
			VPXORD(a, d, d)
			VPRORD(U8([2]int{16, 8}[i%2]), d, d)
			VPADDD(d, c, c)
			VPXORD(c, b, b)
			VPRORD(U8([2]int{12, 7}[i%2]), b, b)
			switch i {
			case 1:
				quadTurn(a, 3)
				quadTurn(d, 2)
				quadTurn(c, 1)
			case 3:
				quadTurn(a, 1)
				quadTurn(d, 2)
				quadTurn(c, 3)
			}
		}
	}
}

// quadTurn moves word i+by of a row to place i.
func quadTurn(v VecPhysical, by int) {
	var order int
	for i := range 4 {
		order |= (i + by) % 4 << (2 * i)
	}
	VSHUFI32X4(U8(order), v, v, v)
}

func quadAbsorb() {
	TEXT("blake2sAbsorb"+quadSuffix, NOSPLIT, "func(h *[8][16]uint32, m *[16][16]uint32, total, final uint32, offset uint64)")
	Doc("blake2sAbsorb" + quadSuffix + " is blake2sAbsorbAVX512 for the four lanes that start offset bytes into a row.")
	Pragma("noescape")
	quadBegin()
	quadLength(Load(Param("total"), GP32()), Load(Param("final"), GP32()))
	h, m := quarterOf("h"), quarterOf("m")
	quadLoad(h, []int{0, 1, 2, 3}, quadFixed[0])
	quadLoad(h, []int{4, 5, 6, 7}, quadFixed[1])
	quadRounds(m)
	for i := range 2 {
		VPXORD(quadRows[2+i], quadRows[i], quadRows[i])
		VPXORD(quadFixed[i], quadRows[i], quadRows[i])
		quadStore(quadRows[i], h, 4*i)
	}
	VZEROUPPER()
	RET()
}

// quadBlock is quadBegin for messages of total bytes in one block.
func quadBlock(total uint32) {
	quadBegin()
	length, final := GP32(), GP32()
	MOVL(U32(total), length)
	MOVL(U32(0xffffffff), final)
	quadLength(length, final)
}

// quadHash makes the digest of a message in one block, which goes to words 8 to 11 of the same message.
func quadHash(m Mem) {
	quadRounds(m)
	VPXORD(quadRows[2], quadRows[0], quadRows[0])
	VPXORD(quadFixed[0], quadRows[0], quadRows[0])
	quadStore(quadRows[0], m, 8)
}

// quadIncrement adds one to the words of a quarter of a row.
func quadIncrement(r Mem) {
	VPBROADCASTD(constant(atOne), X4)
	VPADDD(r, X4, X4)
	VMOVDQU(X4, r)
}

func quadWalk() {
	TEXT("blake2sWalk"+quadSuffix, NOSPLIT, "func(m *[16][16]uint32, steps uint64, offset uint64)")
	Doc("blake2sWalk" + quadSuffix + " is blake2sWalkAVX512 for the four lanes that start offset bytes into a row.")
	Pragma("noescape")
	quadBlock(48)
	m := quarterOf("m")
	steps := Load(Param("steps"), GP64())
	Label("step")
	quadHash(m)
	quadIncrement(row(m, 1))
	DECQ(steps)
	JNZ(LabelRef("step"))
	VZEROUPPER()
	RET()
}

func quadClimb() {
	TEXT("blake2sClimb"+quadSuffix, NOSPLIT, "func(m *[16][16]uint32, siblings *[4][16]uint32, levels uint64, offset uint64)")
	Doc("blake2sClimb" + quadSuffix + " is blake2sClimbAVX512 for the four lanes that start offset bytes into a row.")
	Pragma("noescape")
	quadBlock(64)
	m, siblings := quarterOf("m"), quarterOf("siblings")
	levels := Load(Param("levels"), GP64())
	Label("level")
	VMOVDQU(row(m, 3), X4)
	VPTESTMD_BCST(constant(atOne), X4, K1)
	VPSRLD(U8(1), X4, X4)
	VMOVDQU(X4, row(m, 3))
	quadIncrement(row(m, 1))
	for i := range 4 {
		VMOVDQU(row(m, 8+i), X4)
		VMOVDQU(row(siblings, i), X5)
		VMOVDQA(X4, X6)
		VMOVDQA32(X5, K1, X4)
		VMOVDQA32(X6, K1, X5)
		VMOVDQU(X4, row(m, 8+i))
		VMOVDQU(X5, row(m, 12+i))
	}
	quadHash(m)
	ADDQ(U32(4*rowSize), siblings.Base)
	DECQ(levels)
	JNZ(LabelRef("level"))
	VZEROUPPER()
	RET()
}
