package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// maxBlocks is the largest number of blocks of a side of the bus.
const maxBlocks = 54

// leaves is the stage "leaves": it takes the claimed value of each side's leaves at zeta apart. The leaves of a side are its
// blocks, each as an aligned range, and ones behind them. Here the framework's blocks (the ends of the run, the initial and
// final memory, the guest's table), the padding rows of the tables and the ones are computed and taken away; what remains must
// be the sum over the rows of the tables, which the next stage shows.
//
// It assumes zeta and leafClaims. It leaves selectors, the five values that framework blocks claim of committed columns, and
// totals: these depend on the value of the guest's table at (zeta, alpha), which is not known yet.
func (c *check) leaves() error {
	zeta := c.zeta[:c.busDepth]
	var padding [key.Tables]gf.E
	for t := range padding {
		padding[t] = paddingWeight(c.rows[t], zeta[:c.table(t)])
	}
	c.selectBlocks(key.Push)
	c.selectors[key.Pull] = c.selectors[key.Push] // the sides have blocks of the same heights
	c.selectBlocks(key.Count)

	var pushPadding gf.E
	for side := range key.Sides {
		selected := gf.E{}
		total := affine{at0: c.leafClaims[side]}
		for i := range key.Blocks[side] {
			b, weight := &key.Blocks[side][i], c.selectors[side][i]
			selected = gf.Add(selected, weight)
			if b.Table == key.Framework {
				total = total.add(c.frameworkBlock(b).scale(weight))
			}
		}
		// A padding row pulls what it pushes.
		pad := pushPadding
		if side != key.Pull {
			pad = c.paddingRows(side, &padding)
		}
		if side == key.Push {
			pushPadding = pad
		}
		total.at0 = gf.Add(total.at0, gf.Add(pad, complement(selected)))
		c.totals[side] = total
	}
	return nil
}

// selectBlocks places the blocks of a side and weighs each with the eq polynomial of its range at zeta.
func (c *check) selectBlocks(side int) {
	var (
		logs    [maxBlocks]int
		offsets [maxBlocks]uint64
	)
	blocks := key.Blocks[side]
	for i := range blocks {
		logs[i] = c.log(blocks[i].Height)
	}
	placements(logs[:len(blocks)], offsets[:])
	for i := range blocks {
		l := logs[i]
		c.selectors[side][i] = selector(offsets[i]>>l, c.zeta[l:c.busDepth])
	}
}

// frameworkBlock is the value of a block of the framework at zeta. It reads the values that the proof claims here.
func (c *check) frameworkBlock(b *key.Block) affine {
	v := affine{at0: c.beta}
	for i := range b.Coords {
		k := &b.Coords[i]
		var x gf.E
		switch k.Kind {
		case key.CoordConstant:
			v.at0 = gf.Add(v.at0, gf.MulK(c.fingerprints[i], k.Factor))
			continue
		case key.CoordProgram:
			// The table's slots are weighed by the same eq table of alpha: one value of its extension is the sum over all
			// slots.
			v.slope = gf.One
			continue
		case key.CoordClaim:
			if k.Fresh {
				c.values[k.Claim] = c.next()
			}
			x = c.values[k.Claim]
		case key.CoordIndex:
			x = generatorPowers(c.zeta[:c.log(b.Height)])
		}
		v.at0 = gf.Add(v.at0, gf.Mul(c.fingerprints[i], x))
	}
	return v
}

// generatorPowers is the extension of i -> g^i at point: the product of 1 + z (1 + g^(2^t)).
func generatorPowers(point []gf.E) gf.E {
	r, g := gf.One, uint64(gf.Generator)
	for _, z := range point {
		r = gf.Mul(r, complement(gf.MulK(z, g^1)))
		g = gf.MulBase(g, g)
	}
	return r
}

// paddingRows is what the padding rows of all tables add to a side. weights are those of the padding rows of each table.
func (c *check) paddingRows(side int, weights *[key.Tables]gf.E) gf.E {
	var sums [key.Tables]gf.E
	for i := range key.Blocks[side] {
		b := &key.Blocks[side][i]
		if b.Table == key.Framework {
			continue
		}
		v := c.entryBase(side)
		for j := range b.Coords {
			if p := b.Coords[j].Padding; p != 0 {
				v = gf.Add(v, gf.MulK(c.coordWeight(side, j), p))
			}
		}
		// The sumcheck counts the entry of every row; the leaf of a padding row is one instead.
		sums[b.Table] = gf.Add(sums[b.Table], gf.Mul(c.selectors[side][i], complement(v)))
	}
	return gf.Dot(sums[:], weights[:])
}

// entryBase is what every entry of a side starts with: beta, and nothing for the counts.
func (c *check) entryBase(side int) gf.E {
	if side == key.Count {
		return gf.E{}
	}
	return c.beta
}

// coordWeight is the weight of coordinate i in an entry; the counts have one coordinate and take it as it is.
func (c *check) coordWeight(side, i int) gf.E {
	if side == key.Count {
		return gf.One
	}
	return c.fingerprints[i]
}

// paddingWeight is the sum of the eq polynomial at point over the indices from rows on: the weight of the rows that are
// padding. rows is at most 2^len(point).
func paddingWeight(rows uint64, point []gf.E) gf.E {
	if rows>>len(point) != 0 {
		return gf.E{}
	}
	// From the low bit up: the weight of the low parts that are at least the low part of rows.
	weight := gf.One
	for k, z := range point {
		if rows>>k&1 == 1 {
			weight = gf.Mul(z, weight)
		} else {
			weight = gf.Add(z, gf.Mul(complement(z), weight))
		}
	}
	return weight
}
