package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Participants is a set of validator indices below MaxRegistryLimit: the
// participants of an aggregate or of an attestation in a block. The decoders and
// encoders of a [Profile] hold it to the profile's own limit. It is an immutable
// value; copies share their storage. The zero value is the empty set.
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
// may repeat. It fails on an index that is not below MaxRegistryLimit.
func NewParticipants(indices []ValidatorIndex) (Participants, error) {
	if len(indices) == 0 {
		return Participants{}, nil
	}
	highest := slices.Max(indices)
	if highest >= MaxRegistryLimit {
		return Participants{}, fmt.Errorf("validator index %d is not below the largest registry limit %d", highest, MaxRegistryLimit)
	}
	words := make([]uint64, highest/64+1)
	for _, v := range indices {
		words[v/64] |= 1 << (v % 64)
	}

	return participantsOf(words, 0), nil
}

// participantsOf takes words over and computes everything else. length is the
// bit length of the encoding, or less for the shortest form.
func participantsOf(words []uint64, length int) Participants {
	n := len(words)
	for n > 0 && words[n-1] == 0 {
		n--
	}
	if n == 0 {
		return Participants{length: length}
	}
	p := Participants{words: words[:n:n]}
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

// decodeParticipants reads a bitlist of at most limit bits. Unset bits after the
// highest index are accepted.
func decodeParticipants(b []byte, limit int) (Participants, error) {
	length, err := bitlistLen(b, limit)
	if err != nil {
		return Participants{}, err
	}
	words := make([]uint64, length/64+1)
	var tail [8]byte
	n := 0
	for ; len(b) >= 8; b = b[8:] {
		words[n] = binary.LittleEndian.Uint64(b)
		n++
	}
	if copy(tail[:], b) > 0 {
		words[n] = binary.LittleEndian.Uint64(tail[:])
	}
	words[length/64] &^= 1 << (length % 64) // the delimiter

	return participantsOf(words, length), nil
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
	words := make([]uint64, max(len(p.words), len(o.words)))
	copy(words, p.words)
	for i, w := range o.words {
		words[i] |= w
	}

	return participantsOf(words, 0)
}

// Minus returns the participants of p that are not in o, in the shortest form.
func (p Participants) Minus(o Participants) Participants {
	words := slices.Clone(p.words)
	for i := range min(len(words), len(o.words)) {
		words[i] &^= o.words[i]
	}

	return participantsOf(words, 0)
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

// SSZ returns the shortest encoding, 1 to MaxRegistryLimit/8 + 1 bytes. The slice
// is shared: it must not be written. As a string it identifies the set.
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

// HashTreeRoot returns the root of the bitlist of Len bits and of the profile's
// limit, which the set must keep.
func (p Participants) HashTreeRoot(profile *Profile) Root {
	var chunks [MaxRegistryLimit / 256]Root
	for i, w := range p.words {
		binary.LittleEndian.PutUint64(chunks[i/4][8*(i%4):], w)
	}
	n := (len(p.words) + 3) / 4

	return mixInLength(merkleize(chunks[:n], bitlistDepth(profile.RegistryLimit)), uint64(p.length))
}

// checkParticipants refuses a set to encode that is past the registry limit.
func (p *Profile) checkParticipants(set Participants) error {
	if set.length > p.RegistryLimit {
		return fmt.Errorf("%s in %d bits, profile %s allows %d", set, set.length, p.Name, p.RegistryLimit)
	}

	return nil
}

// String returns the number of participants and the highest index.
func (p Participants) String() string {
	v, ok := p.Highest()
	if !ok {
		return "0 participants"
	}

	return fmt.Sprintf("%d participants up to %d", p.count, v)
}
