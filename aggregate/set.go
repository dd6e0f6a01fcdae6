package aggregate

import (
	"encoding/binary"
	"hash"
	"math/bits"
	"slices"

	"aggnode/wire"
)

// set is a mutable set of validator indices, the planner's working form of participants. It grows to its highest member,
// which wire.MaxRegistryLimit bounds: what is added comes from participants and from votes of the registry. The zero value
// is the empty set. Pass it by pointer: a copy shares its storage.
type set struct {
	words []uint64 // bit i of word w is index 64w+i
}

// setOf returns the participants as a set.
func setOf(p wire.Participants) *set {
	s := new(set)
	if highest, ok := p.Highest(); ok {
		s.grow(int(highest/64) + 1)
	}
	p.ForEach(s.add)
	return s
}

func (s *set) clone() set { return set{slices.Clone(s.words)} }

// grow makes room for n words.
func (s *set) grow(n int) {
	if missing := n - len(s.words); missing > 0 {
		s.words = append(s.words, make([]uint64, missing)...)
	}
}

func (s *set) add(v wire.ValidatorIndex) {
	s.grow(int(v/64) + 1)
	s.words[v/64] |= 1 << (v % 64)
}

func (s *set) has(v wire.ValidatorIndex) bool {
	w := v / 64
	return w < wire.ValidatorIndex(len(s.words)) && s.words[w]>>(v%64)&1 == 1
}

func (s *set) count() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// addAll makes s the union of s and o.
func (s *set) addAll(o *set) {
	s.grow(len(o.words))
	for i, w := range o.words {
		s.words[i] |= w
	}
}

// addCommon adds to s what a and b share.
func (s *set) addCommon(a, b *set) {
	n := min(len(a.words), len(b.words))
	s.grow(n)
	for i := range n {
		s.words[i] |= a.words[i] & b.words[i]
	}
}

// countNotIn returns how many members of s are not in o.
func (s *set) countNotIn(o *set) int {
	n, common := 0, min(len(s.words), len(o.words))
	for i := range common {
		n += bits.OnesCount64(s.words[i] &^ o.words[i])
	}
	for _, w := range s.words[common:] {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s *set) isSubsetOf(o *set) bool { return s.countNotIn(o) == 0 }

func (s *set) intersects(o *set) bool {
	for i := range min(len(s.words), len(o.words)) {
		if s.words[i]&o.words[i] != 0 {
			return true
		}
	}
	return false
}

// indices returns the members, ascending.
func (s *set) indices() []wire.ValidatorIndex {
	out := make([]wire.ValidatorIndex, 0, s.count())
	for i, w := range s.words {
		for ; w != 0; w &= w - 1 {
			out = append(out, wire.ValidatorIndex(64*i+bits.TrailingZeros64(w)))
		}
	}
	return out
}

// writeTo feeds the number of words of the set and the words to a hash, so that sets one after the other stay apart. Of
// sets that only add and addAll made, equal ones feed the same.
func (s *set) writeTo(h hash.Hash) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+8*len(s.words)), uint64(len(s.words)))
	for _, w := range s.words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h.Write(b)
}
