package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

const (
	// pointSize is the number of coordinates of the deferred point: 19 of the instruction, 4 of the slot.
	pointSize = key.ProgramVars
	// elementSize is the length in bytes of an element of GF(2^192): three little-endian words.
	elementSize = 24
	// digestSize is the length in bytes of a Keccak-256 digest.
	digestSize = 32
	// maxQueries is the largest number of query positions of a level, over all codes.
	maxQueries = 225
)

// parts is a proof taken apart: slices of its bytes, nothing copied.
type parts struct {
	xmss    claimList
	sphincs claimList
	point   []byte // pointSize elements: where the children's claims on the guest's table were carried to
	words   []byte // elements: all that the prover sent, Merkle rows excepted
	levels  [key.MaxLevels]openedRows
	depth   int // levels used
}

// openedRows is what the proof opens of one Merkle tree.
type openedRows struct {
	count    int    // rows
	width    int    // words of 8 bytes a row
	rows     []byte // count times: the width, then so many words
	siblings []byte // digests, in the order in which the climb needs them
}

// row is the words of the i-th row, little-endian.
func (o *openedRows) row(i int) []byte {
	size := 8 + 8*o.width
	return o.rows[i*size+8 : (i+1)*size]
}

// reader walks over the bytes of a proof. After a fault it stays at the end and reads zeros.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.failed = nil, true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) count() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return word(b, 0)
}

// list reads a count and so many items of size bytes; more items than most are a fault.
func (r *reader) list(size, most uint64) []byte {
	n := r.count()
	if n > most {
		r.rest, r.failed = nil, true
		return nil
	}
	return r.take(n * size)
}

// decode is the stage "decode": it takes a proof apart, to its last byte, and allocates nothing. It bounds every count, but
// does not yet know which counts are right: that is checkSizes'. proof must not change while p is in use.
func (p *parts) decode(proof []byte) error {
	*p = parts{}
	r := reader{rest: proof}
	p.xmss = r.list(claimSize, key.MaxKeys)
	p.sphincs = r.list(claimSize, key.MaxKeys)
	roots := r.count()
	switch {
	case r.failed:
		return Encoding
	case roots != 0:
		return DataRoots
	}
	coordinates := r.count()
	switch {
	case r.failed:
		return Encoding
	case coordinates != pointSize:
		return FieldLength
	}
	p.point = r.take(pointSize * elementSize)
	p.words = r.list(elementSize, maxWords)
	depth := r.count()
	switch {
	case r.failed:
		return Encoding
	case depth > key.MaxLevels:
		return MerkleShape
	}
	p.depth = int(depth)
	for i := range p.depth {
		if err := p.levels[i].decode(&r); err != nil {
			return err
		}
	}
	if r.failed || len(r.rest) != 0 {
		return Encoding
	}
	return nil
}

// maxWords bounds the number of proof words (the guest's STREAM_CAP).
const maxWords = 8192

// maxSiblings bounds the siblings of one level: every query position alone on its path up the deepest tree.
const maxSiblings = maxQueries * maxTreeDepth

func (o *openedRows) decode(r *reader) error {
	rows := r.count()
	if rows > maxQueries {
		return MerkleShape
	}
	o.count = int(rows)
	start := r.rest
	for i := range o.count {
		width := r.count()
		if width > maxRowWords || i > 0 && int(width) != o.width {
			return MerkleShape
		}
		o.width = int(width)
		r.take(8 * width)
	}
	if r.failed {
		return Encoding
	}
	o.rows = start[:len(start)-len(r.rest)]
	o.siblings = r.list(digestSize, maxSiblings)
	return nil
}

// element reads the i-th element of b.
func element(b []byte, i int) gf.E {
	b = b[elementSize*i:][:elementSize]
	return gf.E{C0: word(b, 0), C1: word(b, 1), C2: word(b, 2)}
}
