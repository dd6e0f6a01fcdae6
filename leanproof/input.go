package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// publicInput claims that the memory starts with the statement: its four words are the low and the middle limb of the first two
// cells, whose high limb is zero. The claim is made on the line through both cells, at one challenge. It assumes that the table
// sumcheck is over. It leaves input and the last three claimed values.
func (c *check) publicInput() error {
	c.input = c.sponge.challenge()
	values := c.values[key.BusClaims+key.ColumnValues:]
	for limb := range 2 {
		first, second := c.statement[limb], c.statement[2+limb]
		values[limb] = gf.AddBase(gf.MulK(c.input, first^second), first)
	}
	values[2] = gf.E{}
	return nil
}

// inputWeight is the eq polynomial between the point of that claim, (input, 0, 0, ...), and point.
func (c *check) inputWeight(point []gf.E) gf.E {
	r := complement(gf.Add(c.input, point[0]))
	for _, z := range point[1:] {
		r = gf.Mul(r, complement(z))
	}
	return r
}
