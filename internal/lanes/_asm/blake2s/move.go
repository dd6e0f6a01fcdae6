package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// The kernels of this file move 16 bytes of each lane between memory, where the words of a lane lie together, and rows.
// A register takes the bytes of the lanes i, i+4, i+8, …; four of these registers make four rows, or come from them, by
// transposing squares of four words.

func gather(x machine) {
	TEXT("blake2sGather"+x.suffix(), NOSPLIT, x.signature("rows *[4][16]uint32, from *byte, at *[16]uint32, limit uint32")+" bool")
	Doc("blake2sGather"+x.suffix()+" sets each lane of rows to the 16 bytes at its place behind from. It does nothing and is false",
		"when a place is beyond limit.")
	Pragma("noescape")
	x.begin()
	rows, at := x.at("rows"), x.at("at")
	x.within(at, Load(Param("limit"), GP32()), "refused")
	from := Load(Param("from"), GP64())
	place := GP64()
	for i := range 4 {
		for q := range x.quarters() {
			MOVL(at.Offset(4*(4*q+i)), place.As32())
			x.insert(q, Mem{Base: from, Index: place, Scale: 1}, i)
		}
	}
	transpose(x)
	for i := range 4 {
		x.store(i, row(rows, i))
	}
	answer(x, true)
	Label("refused")
	answer(x, false)
}

func scatter(x machine) {
	TEXT("blake2sScatter"+x.suffix(), NOSPLIT, x.signature("to *byte, at *[16]uint32, limit uint32, rows *[4][16]uint32")+" bool")
	Doc("blake2sScatter"+x.suffix()+" is the inverse of blake2sGather"+x.suffix()+": it sets the bytes at the places to the lanes of rows.")
	Pragma("noescape")
	x.begin()
	rows, at := x.at("rows"), x.at("at")
	x.within(at, Load(Param("limit"), GP32()), "refused")
	to := Load(Param("to"), GP64())
	for i := range 4 {
		x.load(i, row(rows, i))
	}
	transpose(x)
	place := GP64()
	for i := range 4 {
		for q := range x.quarters() {
			MOVL(at.Offset(4*(4*q+i)), place.As32())
			x.extract(q, i, Mem{Base: to, Index: place, Scale: 1})
		}
	}
	answer(x, true)
	Label("refused")
	answer(x, false)
}

// answer ends a kernel with a result.
func answer(x machine, ok bool) {
	v := GP8()
	MOVB(U8(map[bool]uint8{true: 1}[ok]), v)
	Store(v, ReturnIndex(0))
	x.end()
}

// transpose turns the squares of four words in each quarter of the registers 0 to 3: word j of register i becomes word i of
// register j.
func transpose(x machine) {
	x.unpack(0, 1, 4, 5, false)
	x.unpack(2, 3, 6, 7, false)
	x.unpack(4, 6, 0, 1, true)
	x.unpack(5, 7, 2, 3, true)
}
