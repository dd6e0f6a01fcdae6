package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// The kernels of this file move 16 bytes of each lane between memory, where the words of a lane lie together, and rows.
// A register takes the bytes of the lanes i, i+4, i+8, …; four of these registers make four rows, or come from them, by
// transposing squares of four words.

func gather(x machine) {
	TEXT("blake2sGather"+x.suffix(), NOSPLIT, x.signature("rows *[4][16]uint32, from *byte, stride, count uint64"))
	Doc("blake2sGather"+x.suffix()+" sets count times four rows, at least once: each lane to 16 bytes, of which those of the next",
		"rows lie behind and those of the next lane stride bytes further on.")
	Pragma("noescape")
	x.begin()
	rows := x.at("rows")
	from, stride := Load(Param("from"), GP64()), Load(Param("stride"), GP64())
	count, at, three := Load(Param("count"), GP64()), GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	Label("next")
	MOVQ(from, at)
	for q := range x.quarters() {
		if q > 0 {
			LEAQ(Mem{Base: at, Index: stride, Scale: 4}, at)
		}
		x.insert(q, Mem{Base: at}, 0)
		x.insert(q, Mem{Base: at, Index: stride, Scale: 1}, 1)
		x.insert(q, Mem{Base: at, Index: stride, Scale: 2}, 2)
		x.insert(q, Mem{Base: at, Index: three, Scale: 1}, 3)
	}
	transpose(x)
	for i := range 4 {
		x.store(i, row(rows, i))
	}
	ADDQ(U8(16), from)
	ADDQ(U32(4*rowSize), rows.Base)
	DECQ(count)
	JNZ(LabelRef("next"))
	x.end()
}

// A chain is named by its position, its number and its owner, from the lowest bits on.
const (
	positionBits = 3
	stepBits     = positionBits + 6 // of word 1 of a step, which is all but the owner
)

// advance is walk with all that goes before and after it, so that a chain's value takes no other way than memory, registers,
// rows, steps and back. Owner and number have few enough bits that no place is outside the values, whatever names a chain.

func advance(x machine) {
	TEXT("blake2sAdvance"+x.suffix(), NOSPLIT, "func(m *[16][16]uint32, owners *[8][16]uint32, values *byte, stride uint32, "+
		"chains *uint16, steps uint64)")
	Doc("blake2sAdvance" + x.suffix() + " is Blake2s.Advance for one chain a lane. m is working memory, whatever it holds before.")
	Pragma("noescape")
	x.begin()
	m := Mem{Base: Load(Param("m"), GP64())}
	owners := Mem{Base: Load(Param("owners"), GP64())}
	const step, owner, place, mask = 0, 1, 2, 3 // registers
	x.widen(step, Mem{Base: Load(Param("chains"), GP64())})
	VPSRLD(U8(stepBits), x.register(step), x.register(owner))
	x.spread(mask, constant(atOwnerMask))
	x.and(owner, mask)
	x.spread(mask, constant(atStepMask))
	x.and(step, mask)
	x.store(step, row(m, 1))
	VPSRLD(U8(positionBits), x.register(step), x.register(step))
	VPSLLD(U8(4), x.register(step), x.register(step)) // 16 bytes a value
	x.spreadWord(place, Load(Param("stride"), GP32()))
	VPMULLD(x.register(owner), x.register(place), x.register(place))
	x.add(place, step)
	places := row(m, 12) // no word of a step
	x.store(place, places)
	for _, word := range []int{0, 3, 4, 5, 6, 7} {
		x.pick(3, row(owners, word), owner)
		x.store(3, row(m, word))
	}

	values, at := Load(Param("values"), GP64()), GP64()
	each := func(do func(q int, value Mem, v int)) {
		for i := range 4 {
			for q := range x.quarters() {
				MOVL(places.Offset(4*(4*q+i)), at.As32())
				do(q, Mem{Base: values, Index: at, Scale: 1}, i)
			}
		}
	}
	each(x.insert)
	transpose(x)
	for i := range 4 {
		x.store(i, row(m, 8+i))
	}
	walkOn(x, m, Load(Param("steps"), GP64()))
	for i := range 4 {
		x.load(i, row(m, 8+i))
	}
	transpose(x)
	each(func(q int, value Mem, v int) { x.extract(q, v, value) })
	x.end()
}

// transpose turns the squares of four words in each quarter of the registers 0 to 3: word j of register i becomes word i of
// register j.
func transpose(x machine) {
	words := func(a, b, low, high int) {
		VPUNPCKLDQ(x.register(b), x.register(a), x.register(low))
		VPUNPCKHDQ(x.register(b), x.register(a), x.register(high))
	}
	pairs := func(a, b, low, high int) {
		VPUNPCKLQDQ(x.register(b), x.register(a), x.register(low))
		VPUNPCKHQDQ(x.register(b), x.register(a), x.register(high))
	}
	words(0, 1, 4, 5)
	words(2, 3, 6, 7)
	pairs(4, 6, 0, 1)
	pairs(5, 7, 2, 3)
}
