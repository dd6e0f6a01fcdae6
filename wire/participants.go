package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Participants is a set of validator indices below RegistryLimit: the
// participants of an aggregate or of an attestation in a block. It is an
// immutable value; copies share their storage. The zero value is the empty set.
//
// The set remembers how many bits the bitlist had that it was decoded from,
// because a block's root depends on it. All set operations ignore that length
// and return sets in the shortest form, length = highest index + 1, which is
// what a node must emit (leanSpec participation.py).
type Participants struct {
	words  []uint64 // bit i of word w is index 64w+i; no zero word at the end
	ssz    []byte   // shortest SSZ form, nil for the empty set
	count  int      // set bits
	length int      // bits of the encoding this came from
}

// emptySSZ is the encoding of a bitlist of no bits. Never written.
var emptySSZ = []byte{1}

// NewParticipants returns the set of the indices, which may be in any order and
// may repeat. It fails on an index that is not below RegistryLimit.
func NewParticipants(indices []ValidatorIndex) (Participants, error) {
	var words [RegistryLimit / 64]uint64
	for _, v := range indices {
		if v >= RegistryLimit {
			return Participants{}, fmt.Errorf("validator index %d is not below the registry limit %d", v, RegistryLimit)
		}
		words[v/64] |= 1 << (v % 64)
	}

	return participantsOf(words[:], 0), nil
}

// participantsOf copies words and computes everything else. length is the
// bit length of the encoding, or less for the shortest form.
func participantsOf(words []uint64, length int) Participants {
	n := len(words)
	for n > 0 && words[n-1] == 0 {
		n--
	}
	if n == 0 {
		return Participants{length: length}
	}
	p := Participants{words: append(make([]uint64, 0, n), words[:n]...)}
	for _, w := range p.words {
		p.count += bits.OnesCount64(w)
	}
	shortest := 64*(n-1) + bits.Len64(p.words[n-1])
	p.length = max(length, shortest)
	p.ssz = appendBits(make([]byte, 0, shortest/8+1), p.words, shortest)

	return p
}

// appendBits appends the bitlist of the first length bits of words and its
// delimiter.
func appendBits(dst []byte, words []uint64, length int) []byte {
	start := len(dst)
	for i := range length/8 + 1 {
		var b byte
		if w := i / 8; w < len(words) {
			b = byte(words[w] >> (8 * (i % 8)))
		}
		dst = append(dst, b)
	}
	dst[start+length/8] |= 1 << (length % 8)

	return dst
}

// decodeParticipants reads a bitlist of at most RegistryLimit bits. Unset bits
// after the highest index are accepted.
func decodeParticipants(b []byte) (Participants, error) {
	length, err := bitlistLen(b, RegistryLimit)
	if err != nil {
		return Participants{}, err
	}
	var words [RegistryLimit/64 + 1]uint64
	var tail [8]byte
	n := 0
	for ; len(b) >= 8; b = b[8:] {
		words[n] = binary.LittleEndian.Uint64(b)
		n++
	}
	if copy(tail[:], b) > 0 {
		words[n] = binary.LittleEndian.Uint64(tail[:])
		n++
	}
	words[length/64] &^= 1 << (length % 64) // the delimiter

	return participantsOf(words[:n], length), nil
}

// Count returns the number of participants.
func (p Participants) Count() int { return p.count }

// Len returns the number of bits of the bitlist that this set came from: at
// least the highest index + 1, and more when the sender padded it.
func (p Participants) Len() int { return p.length }

// IsEmpty reports whether nobody takes part.
func (p Participants) IsEmpty() bool { return p.count == 0 }

// Contains reports whether v takes part. Any index may be asked for.
func (p Participants) Contains(v ValidatorIndex) bool {
	w := v / 64

	return w < ValidatorIndex(len(p.words)) && p.words[w]>>(v%64)&1 == 1
}

// Indices returns a fresh slice of all indices, ascending.
func (p Participants) Indices() []ValidatorIndex {
	out := make([]ValidatorIndex, 0, p.count)
	p.ForEach(func(v ValidatorIndex) { out = append(out, v) })

	return out
}

// ForEach calls f for each index, ascending.
func (p Participants) ForEach(f func(ValidatorIndex)) {
	for i, w := range p.words {
		for ; w != 0; w &= w - 1 {
			f(ValidatorIndex(64*i + bits.TrailingZeros64(w)))
		}
	}
}

// Highest returns the largest index; ok is false for the empty set.
func (p Participants) Highest() (v ValidatorIndex, ok bool) {
	n := len(p.words)
	if n == 0 {
		return 0, false
	}

	return ValidatorIndex(64*(n-1) + bits.Len64(p.words[n-1]) - 1), true
}

// IsSubsetOf reports whether every participant is in o.
func (p Participants) IsSubsetOf(o Participants) bool { return p.CountNotIn(o) == 0 }

// CountNotIn returns how many participants are not in o.
func (p Participants) CountNotIn(o Participants) int {
	n := 0
	for i, w := range p.words {
		if i < len(o.words) {
			w &^= o.words[i]
		}
		n += bits.OnesCount64(w)
	}

	return n
}

// Intersects reports whether p and o share a participant.
func (p Participants) Intersects(o Participants) bool {
	for i := range min(len(p.words), len(o.words)) {
		if p.words[i]&o.words[i] != 0 {
			return true
		}
	}

	return false
}

// Union returns the participants of p, of o or of both, in the shortest form.
func (p Participants) Union(o Participants) Participants {
	var words [RegistryLimit / 64]uint64
	copy(words[:], p.words)
	for i, w := range o.words {
		words[i] |= w
	}

	return participantsOf(words[:], 0)
}

// Minus returns the participants of p that are not in o, in the shortest form.
func (p Participants) Minus(o Participants) Participants {
	var words [RegistryLimit / 64]uint64
	n := copy(words[:], p.words)
	for i := range min(n, len(o.words)) {
		words[i] &^= o.words[i]
	}

	return participantsOf(words[:n], 0)
}

// Equal reports whether both are the same set, whatever their lengths.
func (p Participants) Equal(o Participants) bool {
	if p.count != o.count || len(p.words) != len(o.words) {
		return false
	}
	for i, w := range p.words {
		if w != o.words[i] {
			return false
		}
	}

	return true
}

// SSZ returns the shortest encoding, 1 to 513 bytes. The slice is shared: it
// must not be written. As a string it identifies the set.
func (p Participants) SSZ() []byte {
	if p.ssz == nil {
		return emptySSZ
	}

	return p.ssz
}

// AppendReceived appends the encoding with Len bits, the one that the set was
// decoded from.
func (p Participants) AppendReceived(dst []byte) []byte {
	return appendBits(dst, p.words, p.length)
}

// receivedSize returns the length in bytes of AppendReceived's encoding.
func (p Participants) receivedSize() int { return p.length/8 + 1 }

// HashTreeRoot returns the root of the Bitlist[4096] with Len bits.
func (p Participants) HashTreeRoot() Root {
	var chunks [RegistryLimit / 256]Root
	var b [RegistryLimit / 8]byte
	for i, w := range p.words {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	n := (len(p.words) + 3) / 4
	for i := range n {
		copy(chunks[i][:], b[32*i:])
	}

	return mixInLength(merkleize(chunks[:n], 4), uint64(p.length))
}

// String returns the number of participants and the highest index.
func (p Participants) String() string {
	v, ok := p.Highest()
	if !ok {
		return "0 participants"
	}

	return fmt.Sprintf("%d participants up to %d", p.count, v)
}
