package main

import (
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// rowSize is the distance between the rows of an array, whatever part of them a machine takes.
const rowSize = 64

func row(array Mem, i int) Mem { return array.Offset(rowSize * i) }

// The four quarter rounds of each half of a round.
var (
	columns   = [4][4]int{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}
	diagonals = [4][4]int{{0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13}, {3, 4, 9, 14}}
)

// rounds runs the ten rounds on the work vector. addWord adds a message word to a register; it is not called for the words
// in zeros. With digestOnly, the last rotations of what only the second half of the digest depends on are left out.
func rounds(x machine, addWord func(v, word int), digestOnly bool, zeros ...int) {
	for r, s := range sigma {
		quarter(x, columns, s[:8], addWord, false, zeros)
		quarter(x, diagonals, s[8:], addWord, digestOnly && r == len(sigma)-1, zeros)
	}
}

// quarter takes four independent quarter rounds forward side by side. The two halves of each differ in message words and
// rotations.
func quarter(x machine, places [4][4]int, words []int, addWord func(v, word int), isLast bool, zeros []int) {
	for half, bits := range [2][2]uint8{{16, 12}, {8, 7}} {
		each := func(do func(a, b, c, d int)) {
			for _, p := range places {
				do(p[0], p[1], p[2], p[3])
			}
		}
		for i, p := range places {
			if word := words[2*i+half]; !slices.Contains(zeros, word) {
				addWord(p[0], word)
			}
		}
		each(func(a, b, _, _ int) { x.add(a, b) })
		each(func(a, _, _, d int) { x.xor(d, a) })
		each(func(_, _, _, d int) { x.rotate(d, bits[0]) })
		each(func(_, _, c, d int) { x.add(c, d) })
		if isLast && half == 1 {
			return
		}
		each(func(_, b, c, _ int) { x.xor(b, c) })
		each(func(_, b, _, _ int) { x.rotate(b, bits[1]) })
	}
}

// start sets the second half of the work vector for a last block; total is the place of its word 12 among the constants.
func start(x machine, total int) {
	for i := range 8 {
		x.spread(8+i, constant(atIV+i))
	}
	x.spread(12, constant(total))
	x.spread(14, constant(atLast))
}

func absorb(x machine) {
	TEXT("blake2sAbsorb"+x.suffix(), NOSPLIT, x.signature("h *[8][16]uint32, m *[16][16]uint32, total, final uint32"))
	Doc("blake2sAbsorb" + x.suffix() + " takes a block into each of the states. final is 0, or all ones for a last block.")
	Pragma("noescape")
	x.begin()
	h, m := x.at("h"), x.at("m")
	for i := range 8 {
		x.load(i, row(h, i))
		x.spread(8+i, constant(atIV+i))
	}
	total, final := Load(Param("total"), GP32()), Load(Param("final"), GP32())
	XORL(constant(atIV+4), total)
	x.spreadWord(12, total)
	XORL(constant(atIV+6), final)
	x.spreadWord(14, final)
	rounds(x, func(v, word int) { x.addRow(v, row(m, word)) }, false)
	for i := range 8 {
		x.xor(i, 8+i)
		x.xorRow(i, row(h, i))
		x.store(i, row(h, i))
	}
	x.end()
}

func walk(x machine) {
	TEXT("blake2sWalk"+x.suffix(), NOSPLIT, x.signature("m *[16][16]uint32, steps uint64"))
	Doc("blake2sWalk"+x.suffix()+" makes steps of chains, at least one: each replaces words 8 to 11 by the digest of the",
		"48 bytes of the message and adds one to word 1. Words 2 and 12 to 15 are taken to be zero.")
	Pragma("noescape")
	x.begin()
	walkOn(x, x.at("m"), Load(Param("steps"), GP64()))
	x.end()
}

// walkOn makes steps of chains; it counts down steps.
func walkOn(x machine, m Mem, steps Register) {
	Label("step")
	for i := range 8 {
		x.spread(i, constant(atInitial+i))
	}
	start(x, atTotal48)
	rounds(x, func(v, word int) { x.addRow(v, row(m, word)) }, true, 2, 12, 13, 14, 15)
	for i := range 4 {
		x.xor(i, 8+i)
		x.xorSpread(i, constant(atInitial+i))
		x.store(i, row(m, 8+i))
	}
	increment(x, row(m, 1))
	DECQ(steps)
	JNZ(LabelRef("step"))
}

// increment adds one to every word of a row.
func increment(x machine, r Mem) {
	x.spread(0, constant(atOne))
	x.addRow(0, r)
	x.store(0, r)
}

func climb(x machine) {
	TEXT("blake2sClimb"+x.suffix(), NOSPLIT, x.signature("m *[16][16]uint32, siblings *[4][16]uint32, levels uint64"))
	Doc("blake2sClimb"+x.suffix()+" goes up levels of trees, at least one. Words 8 to 11 of the message are the node, word 3",
		"its number, word 1 its level, each of which becomes that of the parent. Word 2 is taken to be zero; words 12 to 15",
		"are overwritten.")
	Pragma("noescape")
	x.begin()
	m, siblings := x.at("m"), x.at("siblings")
	levels := Load(Param("levels"), GP64())
	Label("level")
	x.load(0, row(m, 3))
	x.choose(0)
	x.shift(0, 1)
	x.store(0, row(m, 3))
	increment(x, row(m, 1))
	for i := range 4 {
		x.load(1, row(m, 8+i))
		x.load(2, row(siblings, i))
		x.exchange(1, 2)
		x.store(1, row(m, 8+i))
		x.store(2, row(m, 12+i))
	}
	for i := range 8 {
		x.spread(i, constant(atInitial+i))
	}
	start(x, atTotal64)
	rounds(x, func(v, word int) { x.addRow(v, row(m, word)) }, true, 2)
	for i := range 4 {
		x.xor(i, 8+i)
		x.xorSpread(i, constant(atInitial+i))
		x.store(i, row(m, 8+i))
	}
	ADDQ(U32(4*rowSize), siblings.Base)
	DECQ(levels)
	JNZ(LabelRef("level"))
	x.end()
}

func trials(x machine) {
	TEXT("blake2sTrials"+x.suffix(), NOSPLIT, x.signature("suffix *[6][16]uint32, digest *[4][16]uint32, "+
		"begun *[8][16]uint32, second *[8][16]uint32, prefix *[8]uint32"))
	Doc("blake2sTrials"+x.suffix()+" makes trials, one a lane. The digest that the state begun, of 64 bytes, and the 8 words",
		"second give is cut to 24 bytes, suffix. These, as the end of a message of 96 bytes, and the state prefix give digest.")
	Pragma("noescape")
	x.begin()
	suffix, digest, begun, second := x.at("suffix"), x.at("digest"), x.at("begun"), x.at("second")
	prefix := Mem{Base: Load(Param("prefix"), GP64())}

	for i := range 8 {
		x.load(i, row(begun, i))
	}
	start(x, atTotal96)
	rounds(x, func(v, word int) { x.addRow(v, row(second, word)) }, false, 8, 9, 10, 11, 12, 13, 14, 15)
	for i := range 6 {
		x.xor(i, 8+i)
		x.xorRow(i, row(begun, i))
		x.store(i, row(suffix, i))
	}

	for i := range 8 {
		x.spread(i, prefix.Offset(4*i))
	}
	start(x, atTotal96)
	rounds(x, func(v, word int) { x.addRow(v, row(suffix, word)) }, true, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	for i := range 4 {
		x.xor(i, 8+i)
		x.xorSpread(i, prefix.Offset(4*i))
		x.store(i, row(digest, i))
	}
	x.end()
}
