package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// machine is a set of vector instructions. Registers go by number: 0 to 15 are the work vector of the compression and spare is
// one more. Memory is read and written a whole row at a time, one word of each lane, or read as one word spread over all lanes.
//
// Message words are memory operands throughout, also with AVX-512: the load units have nothing else to do.
type machine interface {
	suffix() string
	// signature is that of a kernel; kernels that work on a part of the lanes take the offset of their part in each row.
	signature(params string) string
	// at is a pointer parameter as the address of its first row.
	at(param string) Mem
	// begin and end stand around the body of a kernel.
	begin()
	end()

	load(v int, from Mem)
	spread(v int, from Mem)
	spreadWord(v int, word Register)
	store(v int, to Mem)
	add(v, w int)
	addRow(v int, m Mem)
	addSpread(v int, m Mem)
	xor(v, w int)
	xorRow(v int, m Mem)
	xorSpread(v int, m Mem)
	rotate(v int, bits uint8) // to the right
	shift(v int, bits uint8)  // to the right

	// laneNumbers is a row with the numbers of the lanes.
	laneNumbers() Mem

	// choose marks the lanes in which bit 0 of v is set; exchange swaps a and b there.
	choose(v int)
	exchange(a, b int)

	// A quarter is four words of a register. insert reads quarter q of v; the first comes first and clears the others.
	quarters() int
	insert(q int, from Mem, v int)
	extract(q, v int, to Mem)

	register(v int) VecPhysical
	and(v, w int)
	widen(v int, from Mem)           // reads words of half the size
	pick(v int, from Mem, lanes int) // sets each lane to that of the 16 in a row which another register names
}

const spare = 16

// avx512 computes 16 lanes.
type avx512 struct{}

func zmm(v int) VecPhysical {
	return [...]VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16}[v]
}

func (avx512) suffix() string                 { return "AVX512" }
func (avx512) signature(params string) string { return "func(" + params + ")" }
func (avx512) at(param string) Mem            { return Mem{Base: Load(Param(param), GP64())} }
func (avx512) begin()                         {}
func (avx512) end()                           { VZEROUPPER(); RET() }

func (avx512) load(v int, from Mem)         { VMOVDQU32(from, zmm(v)) }
func (avx512) spread(v int, from Mem)       { VPBROADCASTD(from, zmm(v)) }
func (avx512) spreadWord(v int, w Register) { VPBROADCASTD(w, zmm(v)) }
func (avx512) store(v int, to Mem)          { VMOVDQU32(zmm(v), to) }
func (avx512) add(v, w int)                 { VPADDD(zmm(w), zmm(v), zmm(v)) }
func (avx512) addRow(v int, m Mem)          { VPADDD(m, zmm(v), zmm(v)) }
func (avx512) addSpread(v int, m Mem)       { VPADDD_BCST(m, zmm(v), zmm(v)) }
func (avx512) xor(v, w int)                 { VPXORD(zmm(w), zmm(v), zmm(v)) }
func (avx512) xorRow(v int, m Mem)          { VPXORD(m, zmm(v), zmm(v)) }
func (avx512) xorSpread(v int, m Mem)       { VPXORD_BCST(m, zmm(v), zmm(v)) }
func (avx512) rotate(v int, bits uint8)     { VPRORD(U8(bits), zmm(v), zmm(v)) }
func (avx512) shift(v int, bits uint8)      { VPSRLD(U8(bits), zmm(v), zmm(v)) }

func (avx512) laneNumbers() Mem { return constant(atLanes) }

func (avx512) choose(v int) { VPTESTMD_BCST(constant(atOne), zmm(v), K1) }

func (avx512) exchange(a, b int) {
	VMOVDQA32(zmm(a), zmm(spare))
	VMOVDQA32(zmm(b), K1, zmm(a))
	VMOVDQA32(zmm(spare), K1, zmm(b))
}

func (avx512) quarters() int { return 4 }

func (avx512) insert(q int, from Mem, v int) {
	if q == 0 {
		VMOVDQU(from, zmm(v).AsX())
		return
	}
	VINSERTI32X4(U8(q), from, zmm(v), zmm(v))
}

func (avx512) extract(q, v int, to Mem) {
	if q == 0 {
		VMOVDQU(zmm(v).AsX(), to)
		return
	}
	VEXTRACTI32X4(U8(q), zmm(v), to)
}

func (avx512) register(v int) VecPhysical      { return zmm(v) }
func (avx512) and(v, w int)                    { VPANDD(zmm(w), zmm(v), zmm(v)) }
func (avx512) widen(v int, from Mem)           { VPMOVZXWD(from, zmm(v)) }
func (avx512) pick(v int, from Mem, lanes int) { VPERMD(from, zmm(lanes), zmm(v)) }

// avx2 computes 8 lanes, one half of each row. It has one register too few: number 11 of the work vector lives on the stack.
// It was chosen as one of those that are never rotated. What was put there last is also in the spare register until that is
// used for something else, and is read from it as long: a load waits some cycles for the store before it.
type avx2 struct {
	kept    Mem
	isSpare bool // the spare register still holds what is in kept
}

const inMemory = 11

func ymm(v int) VecPhysical {
	return [...]VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, inMemory: nil, Y11, Y12, Y13, Y14, Y15}[v]
}

func (*avx2) suffix() string                 { return "AVX2" }
func (*avx2) signature(params string) string { return "func(" + params + ", offset uint64)" }

func (*avx2) at(param string) Mem {
	p := Load(Param(param), GP64())
	offset := Load(Param("offset"), GP64())
	ADDQ(offset, p)
	return Mem{Base: p}
}

// begin puts what is kept in memory where it can not lie across two cache lines, which the stack says nothing about.
func (x *avx2) begin() {
	const size = 32
	local, aligned := AllocLocal(2*size), GP64()
	LEAQ(local.Offset(size-1), aligned)
	ANDQ(I8(-size), aligned)
	x.kept, x.isSpare = Mem{Base: aligned}, false
}

func (x *avx2) end() { VZEROUPPER(); RET() }

// source is where register v can be read.
func (x *avx2) source(v int) Op {
	switch {
	case v != inMemory:
		return ymm(v)
	case x.isSpare:
		return ymm(spare)
	}
	return x.kept
}

// free is the spare register, for anything but what is kept.
func (x *avx2) free() VecPhysical {
	x.isSpare = false
	return ymm(spare)
}

// keep stores the spare register as what is kept.
func (x *avx2) keep() {
	VMOVDQU(ymm(spare), x.kept)
	x.isSpare = true
}

func (x *avx2) load(v int, from Mem) {
	if v == inMemory {
		VMOVDQU(from, ymm(spare))
		x.keep()
		return
	}
	VMOVDQU(from, ymm(v))
}

func (x *avx2) spread(v int, from Mem) {
	if v == inMemory {
		VPBROADCASTD(from, ymm(spare))
		x.keep()
		return
	}
	VPBROADCASTD(from, ymm(v))
}

func (x *avx2) spreadWord(v int, word Register) {
	VMOVD(word, ymm(v).AsX())
	VPBROADCASTD(ymm(v).AsX(), ymm(v))
}

func (x *avx2) store(v int, to Mem) { VMOVDQU(ymm(v), to) }

func (x *avx2) add(v, w int) {
	if v == inMemory {
		VPADDD(x.source(v), ymm(w), ymm(spare))
		x.keep()
		return
	}
	VPADDD(x.source(w), ymm(v), ymm(v))
}

func (x *avx2) xor(v, w int)          { VPXOR(x.source(w), ymm(v), ymm(v)) }
func (*avx2) addRow(v int, m Mem)     { VPADDD(m, ymm(v), ymm(v)) }
func (*avx2) xorRow(v int, m Mem)     { VPXOR(m, ymm(v), ymm(v)) }
func (*avx2) shift(v int, bits uint8) { VPSRLD(U8(bits), ymm(v), ymm(v)) }

func (x *avx2) addSpread(v int, m Mem) {
	word := x.free()
	VPBROADCASTD(m, word)
	VPADDD(word, ymm(v), ymm(v))
}

func (x *avx2) xorSpread(v int, m Mem) {
	word := x.free()
	VPBROADCASTD(m, word)
	VPXOR(word, ymm(v), ymm(v))
}

func (x *avx2) rotate(v int, bits uint8) {
	switch bits {
	case 16:
		VPSHUFB(constant(atRotate16), ymm(v), ymm(v))
	case 8:
		VPSHUFB(constant(atRotate8), ymm(v), ymm(v))
	default:
		high := x.free()
		VPSLLD(U8(32-bits), ymm(v), high)
		VPSRLD(U8(bits), ymm(v), ymm(v))
		VPOR(high, ymm(v), ymm(v))
	}
}

func (*avx2) laneNumbers() Mem {
	numbers := GP64()
	LEAQ(constant(atLanes), numbers)
	ADDQ(Load(Param("offset"), GP64()), numbers)
	return Mem{Base: numbers}
}

// The mark of a lane is the top bit of the last register of the work vector.
func (*avx2) choose(v int) { VPSLLD(U8(31), ymm(v), ymm(15)) }

func (x *avx2) exchange(a, b int) {
	other := x.free()
	VBLENDVPS(ymm(15), ymm(b), ymm(a), other)
	VBLENDVPS(ymm(15), ymm(a), ymm(b), ymm(b))
	VMOVDQA(other, ymm(a))
}

func (*avx2) quarters() int { return 2 }

func (*avx2) insert(q int, from Mem, v int) {
	if q == 0 {
		VMOVDQU(from, ymm(v).AsX())
		return
	}
	VINSERTI128(U8(q), from, ymm(v), ymm(v))
}

func (*avx2) extract(q, v int, to Mem) { VEXTRACTI128(U8(q), ymm(v), to) }

func (*avx2) register(v int) VecPhysical { return ymm(v) }
func (*avx2) and(v, w int)               { VPAND(ymm(w), ymm(v), ymm(v)) }
func (*avx2) widen(v int, from Mem)      { VPMOVZXWD(from, ymm(v)) }

func (x *avx2) pick(v int, from Mem, lanes int) {
	upper := ymm(15) // of lanes 8 to 15, by the top bit
	VPSLLD(U8(28), ymm(lanes), upper)
	VPERMD(from, ymm(lanes), ymm(v))
	second := x.free()
	VPERMD(from.Offset(32), ymm(lanes), second)
	VBLENDVPS(upper, second, ymm(v), ymm(v))
}
