package xmss

// subtreeHeight is the level at which a key keeps its tree: the 512 leaves below a node of that level are rebuilt when they
// are needed (20 to 60 ms), the levels above are computed on load.
const subtreeHeight = 9

// treeHasher makes the nodes of one Merkle tree of a key. Implementations are immutable.
type treeHasher interface {
	// leaves sets out[i] to the leaf of index first+i, computed from the seed. Cost of a leaf: 347 compressions or 211 permutations.
	leaves(first uint32, out []node)
	// parents sets out[i] to node first+i of level, whose children are children[2i] and children[2i+1].
	parents(level int, first uint32, children, out []node)
	// filler stands in for node index of level, outside the range of a key.
	filler(level int, index uint32) node
}

// section is the part of a tree between two levels over a run of nodes of the lower one: levels 0 to 9 over the leaves of one
// subtree, or level 9 to the root over all of a key. It is immutable once made.
//
// A node is real when a leaf in range lies below it, and else filler; real nodes of a level are contiguous.
type section struct {
	hash   treeHasher
	base   int      // lowest level
	lo, hi uint32   // first and last real node of the lowest level
	levels [][]node // levels[i]: the real nodes of level base+i, from lo>>i to hi>>i
}

// newSection takes the real nodes of level base, from number lo, and computes the levels up to top. The nodes must lie below
// one node of level top; it keeps nodes.
func newSection(hash treeHasher, base, top int, lo uint32, nodes []node) *section {
	s := &section{hash: hash, base: base, lo: lo, hi: lo + uint32(len(nodes)-1)}
	s.levels = append(make([][]node, 0, top-base+1), nodes)
	for l := base; l < top; l++ {
		s.levels = append(s.levels, s.above(l))
	}
	return s
}

// above computes the real nodes of the level above l.
func (s *section) above(l int) []node {
	lo, hi := s.lo>>(l-s.base), s.hi>>(l-s.base)
	children := s.levels[l-s.base]
	if lo&1 != 0 || hi&1 == 0 { // an outer node has a filler sibling
		padded := make([]node, 0, len(children)+2)
		if lo&1 != 0 {
			padded = append(padded, s.hash.filler(l, lo-1))
		}
		padded = append(padded, children...)
		if hi&1 == 0 {
			padded = append(padded, s.hash.filler(l, hi+1))
		}
		children = padded
	}
	out := make([]node, len(children)/2)
	s.hash.parents(l+1, lo>>1, children, out)
	return out
}

// top is the node that the section leads to.
func (s *section) top() node { return s.levels[len(s.levels)-1][0] }

// sibling is the node that an authentication path shows at level l for leaf index.
func (s *section) sibling(l int, index uint32) node {
	j := index>>l ^ 1
	lo, hi := s.lo>>(l-s.base), s.hi>>(l-s.base)
	if j < lo || j > hi {
		return s.hash.filler(l, j)
	}
	return s.levels[l-s.base][j-lo]
}

// appendPath appends the siblings of leaf index at the levels of the section, the lowest first.
func (s *section) appendPath(b []byte, index uint32) []byte {
	for l := s.base; l < s.base+len(s.levels)-1; l++ {
		n := s.sibling(l, index)
		b = append(b, n[:]...)
	}
	return b
}
