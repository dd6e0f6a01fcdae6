package main

import "fmt"

// bus writes the blocks of the bus with their coordinates and terms.
func bus(r *reader, w *writer) {
	b := busLists{
		reader: r,
		kind:   r.all("COORD_TYPE"), constant: r.all("COORD_CONST"), fresh: r.all("COORD_FRESH"),
		claim: r.all("COORD_CLAIM_SLOT"), padding: r.all("COORD_PADDING"),
		termAt: r.all("COORD_TERM_OFF"), terms: r.all("COORD_TERM_COUNT"),
		termKind: r.all("TERM_TYPE"), termConst: r.all("TERM_CONST"),
		a: r.all("TERM_COL_A"), b: r.all("TERM_COL_B"),
	}
	table, side := r.list("BLOCK_TABLE", blocks), r.list("BLOCK_SIDE", blocks)
	of, add := r.list("BLOCK_KAPPA_SRC", blocks), r.list("BLOCK_KAPPA_ADJ", blocks)
	at, count := r.list("BLOCK_COORD_OFF", blocks), r.list("BLOCK_COORD_COUNT", blocks)
	start := r.list("SIDE_BLOCK_START", sides+1)
	w.printf("// Blocks are the blocks of the bus by side, in the order in which the sides' challenges and claims meet them.\n")
	w.printf("var Blocks = [Sides][]Block{\n")
	for s := range sides {
		w.printf("{\n")
		for i := start[s]; i < start[s+1]; i++ {
			r.same("the side of a block", side[i], uint64(s))
			w.printf("{Table: %d, Height: Height{%d, %d}, Coords: []Coord{\n", table[i], of[i], add[i])
			for c := at[i]; c < at[i]+count[i]; c++ {
				if table[i] == framework {
					w.printf("%s,\n", b.frameworkCoord(c))
				} else {
					w.printf("%s,\n", b.tableCoord(c))
				}
			}
			w.printf("}},\n")
		}
		w.printf("},\n")
	}
	w.printf("}\n")
}

// busLists are the parallel lists of coordinates and terms.
type busLists struct {
	*reader
	kind, constant, fresh, claim, padding, termAt, terms []uint64
	termKind, termConst, a, b                            []uint64
}

// Kinds of coordinates and terms as the prover numbers them.
const (
	fromConstant = 0
	fromClaim    = 1
	fromIndex    = 3
	fromProgram  = 4

	termOne     = 0
	termColumn  = 1
	termScaled  = 2
	termProduct = 5
)

func (l *busLists) frameworkCoord(c uint64) string {
	l.same("the padding of a framework coordinate", l.padding[c], 0)
	l.same("the terms of a framework coordinate", l.terms[c], 0)
	switch l.kind[c] {
	case fromConstant:
		return fmt.Sprintf("{Kind: CoordConstant, Factor: %#x}", l.constant[c])
	case fromClaim:
		if l.fresh[c] != 0 {
			return fmt.Sprintf("{Kind: CoordClaim, Claim: %d, Fresh: true}", l.claim[c])
		}
		return fmt.Sprintf("{Kind: CoordClaim, Claim: %d}", l.claim[c])
	case fromIndex:
		return "{Kind: CoordIndex}"
	case fromProgram:
		return "{Kind: CoordProgram}"
	}
	l.fail("coordinate %d of the framework has kind %d", c, l.kind[c])
	return ""
}

func (l *busLists) tableCoord(c uint64) string {
	l.same("a fresh claim in a table's block", l.fresh[c], 0)
	s := "{Kind: CoordTerms"
	if p := l.padding[c]; p != 0 {
		s += fmt.Sprintf(", Padding: %#x", p)
	}
	s += ", Terms: []Term{"
	for t := l.termAt[c]; t < l.termAt[c]+l.terms[c]; t++ {
		switch l.termKind[t] {
		case termOne:
			s += fmt.Sprintf("{TermConstant, %#x, 0, 0}, ", l.termConst[t])
		case termColumn:
			s += fmt.Sprintf("{TermColumn, 1, %d, 0}, ", l.a[t])
		case termScaled:
			s += fmt.Sprintf("{TermColumn, %#x, %d, 0}, ", l.termConst[t], l.a[t])
		case termProduct:
			s += fmt.Sprintf("{TermProduct, %#x, %d, %d}, ", l.termConst[t], l.a[t], l.b[t])
		default:
			l.fail("term %d has kind %d", t, l.termKind[t])
		}
	}
	return s + "}}"
}
