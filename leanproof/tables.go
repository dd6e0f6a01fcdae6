package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// Columns of JUMP that its two identities speak of. Together they say that a jump is taken exactly where the condition is not
// zero.
const (
	jumpCondition = 5
	jumpInverse   = 12 // of the condition, where it has one
	jumpTaken     = 13 // one or zero
)

// tableSumcheck is the stage "tables": one sumcheck shows that the rows of the six tables add up to totals and that the two
// identities of JUMP hold in every row. Powers of a challenge eta join the five sums. All tables run together, the highest
// variable first: a table with fewer variables stands where the ones above are all one.
//
// The columns' values at the end, chi, are claims on committed columns. With them the sums can be computed, so the claim is an
// equation for the value of the guest's table, kept in needed and evaluated: it is the last thing that is checked.
//
// It assumes zeta, selectors and totals. It leaves chi and the values of all table columns.
func (c *check) tableSumcheck() error {
	var eta [key.EtaPowers]gf.E
	eta[0] = gf.One
	x := c.sponge.challenge()
	for i := range eta[1:] {
		eta[i+1] = gf.Mul(eta[i], x)
	}
	var claim affine
	for side, t := range c.totals {
		claim = claim.add(t.scale(eta[key.EtaForms+side]))
	}

	// A round's polynomial has degree 3. Its words are its value at 0 and the two coefficients of
	// p(y) = p(0) + y (p(0) + p(1) + (1 + y) (p2 + (1 + y) p3)), where p(0) + p(1) is the claim.
	n := c.rounds
	var above [maxTableHeight + 1]gf.E // above[j] is the product of the first j challenges
	above[0] = gf.One
	for j := range n {
		p0, p2, p3 := c.next(), c.next(), c.next()
		y := c.sponge.challenge()
		y1 := complement(y)
		claim.at0 = gf.Add(claim.at0, gf.Mul(y1, gf.Add(p2, gf.Mul(y1, p3))))
		claim = claim.scale(y)
		claim.at0 = gf.Add(claim.at0, p0)
		c.chi[n-1-j] = y
		above[j+1] = gf.Mul(above[j], y)
	}
	below := eqPrefixes(c.chi[:n], c.zeta[:n])

	value := key.BusClaims
	c.evaluated = gf.E{}
	for t := range key.Tables {
		columns := c.values[value:][:key.TableColumns[t]]
		value += len(columns)
		c.nexts(columns)
		var sum gf.E
		if t == key.TableJUMP {
			sum = jumpIdentities(columns, eta[0], eta[1])
		}
		for side := range key.Sides {
			sum = gf.Add(sum, gf.Mul(eta[key.EtaForms+side], c.entries(side, t, columns)))
		}
		h := c.table(t)
		c.evaluated = gf.Add(c.evaluated, gf.Mul(gf.Mul(above[n-h], below[h]), sum))
	}
	c.needed = claim
	return nil
}

// jumpIdentities joins the two identities of a row of JUMP: taken = condition * inverse, and condition * (taken + 1) = 0.
func jumpIdentities(columns []gf.E, eta0, eta1 gf.E) gf.E {
	first := gf.Add(columns[jumpTaken], gf.Mul(columns[jumpCondition], columns[jumpInverse]))
	second := gf.Mul(columns[jumpCondition], complement(columns[jumpTaken]))
	return gf.Add(gf.Mul(eta0, first), gf.Mul(eta1, second))
}

// entries is what a row with these column values adds to a side: its blocks' entries, weighed with their selectors.
func (c *check) entries(side, table int, columns []gf.E) gf.E {
	var sum gf.E
	for i := range key.Blocks[side] {
		b := &key.Blocks[side][i]
		if int(b.Table) != table {
			continue
		}
		v := c.entryBase(side)
		for j := range b.Coords {
			v = gf.Add(v, gf.Mul(c.coordWeight(side, j), coordinate(b.Coords[j].Terms, columns)))
		}
		sum = gf.Add(sum, gf.Mul(c.selectors[side][i], v))
	}
	return sum
}

// coordinate is the sum of terms over the columns of a row.
func coordinate(terms []key.Term, columns []gf.E) gf.E {
	var sum gf.E
	for i := range terms {
		t := &terms[i]
		var v gf.E
		switch t.Kind {
		case key.TermConstant:
			sum.C0 ^= t.Factor
			continue
		case key.TermColumn:
			v = columns[t.A]
		case key.TermProduct:
			v = gf.Mul(columns[t.A], columns[t.B])
		}
		if t.Factor != 1 {
			v = gf.MulK(v, t.Factor)
		}
		sum = gf.Add(sum, v)
	}
	return sum
}

// eqPrefixes returns the eq polynomial of the first k coordinates of a and b, for every k up to their length.
func eqPrefixes(a, b []gf.E) (out [maxTableHeight + 1]gf.E) {
	out[0] = gf.One
	for k := range a {
		out[k+1] = gf.Mul(out[k], complement(gf.Add(a[k], b[k])))
	}
	return out
}
