package aggregate

import (
	"encoding/binary"
	"hash"
	"math/bits"

	"aggnode/wire"
)

// set is a mutable set of validator indices below wire.RegistryLimit, the planner's working form of participants.
// 512 bytes; pass by pointer.
type set [wire.RegistryLimit / 64]uint64

// setOf returns the participants as a set.
func setOf(p wire.Participants) *set {
	s := new(set)
	p.ForEach(s.add)
	return s
}

func (s *set) add(v wire.ValidatorIndex) { s[v/64] |= 1 << (v % 64) }

func (s *set) has(v wire.ValidatorIndex) bool {
	return v < wire.RegistryLimit && s[v/64]>>(v%64)&1 == 1
}

func (s *set) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// addAll makes s the union of s and o.
func (s *set) addAll(o *set) {
	for i, w := range o {
		s[i] |= w
	}
}

// countNotIn returns how many members of s are not in o.
func (s *set) countNotIn(o *set) int {
	n := 0
	for i, w := range s {
		n += bits.OnesCount64(w &^ o[i])
	}
	return n
}

func (s *set) isSubsetOf(o *set) bool {
	for i, w := range s {
		if w&^o[i] != 0 {
			return false
		}
	}
	return true
}

func (s *set) intersects(o *set) bool {
	for i, w := range s {
		if w&o[i] != 0 {
			return true
		}
	}
	return false
}

// indices returns the members, ascending.
func (s *set) indices() []wire.ValidatorIndex {
	out := make([]wire.ValidatorIndex, 0, s.count())
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			out = append(out, wire.ValidatorIndex(64*i+bits.TrailingZeros64(w)))
		}
	}
	return out
}

// writeTo feeds the 512 bytes of the set to a hash.
func (s *set) writeTo(h hash.Hash) {
	var b [8]byte
	for _, w := range s {
		binary.LittleEndian.PutUint64(b[:], w)
		h.Write(b[:])
	}
}
