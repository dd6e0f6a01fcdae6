package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// terminal is the stage "terminal": what is left of the opening's sum must be the product of two values at one point: that of
// the committed polynomial, which the message in clear gives, and that of the weight, which is known: the positions' and
// samples' weights of every level, and those of the ring switch.
//
// The opening draws its challenges in the order in which it folds: the lanes of the first tree first, which are the
// polynomial's highest variables. It assumes target and opening.
func (c *check) terminal() error {
	o, ladder := &c.opening, c.ladder
	folds := o.folds[:o.used]
	tail := folds[o.used-int(ladder.LogTail):]
	message := fold(o.tail[:1<<ladder.LogTail], tail)

	var point [maxCommittedLog]gf.E
	n := copy(point[:], folds[rowLog:])
	copy(point[n:], folds[:rowLog])

	weight := c.openedWeight(point[:o.used])
	used := 0
	for i := range ladder.Levels {
		used += int(ladder.Levels[i].Folds)
		level, rest := &o.levels[i], folds[used:]
		queries := level.positions[:ladder.Levels[i].Queries]
		var sum gf.E
		for j := len(queries) - 1; j >= 0; j-- {
			sum = gf.Add(gf.Mul(sum, level.lambda), positionWeight(queries[j], rest))
		}
		weight = gf.Add(weight, gf.Mul(level.weight, sum))
		if level.sampled {
			weight = gf.Add(weight, gf.Mul(level.sampleWeight, gf.Eq(rest, level.sample[:len(rest)])))
		}
	}
	return c.equal(gf.Mul(weight, message), o.sum, OpeningTerminal)
}

// positionWeight is the weight with which a message's values, at point, make the value of its code at a position. The code is
// evaluation in the novel polynomial basis: variable t is multiplied by the vanishing polynomial of the t-th subspace,
// normalized, at the position.
func positionWeight(position uint32, point []gf.E) gf.E {
	r := gf.One
	vanishing := uint64(position)
	for t, z := range point {
		if t > 0 {
			vanishing = gf.MulBase(vanishing, vanishing^key.Vanishing[t-1])
		}
		normal := gf.MulBase(vanishing, key.VanishingInverses[t])
		r = gf.Mul(r, complement(gf.MulK(z, normal^1)))
	}
	return r
}

// openedWeight is the weight of the ring switch at point: each claim's eq polynomial, in the range of its column.
func (c *check) openedWeight(point []gf.E) gf.E {
	var (
		logs      [len(key.Columns)]int
		offsets   [len(key.Columns)]uint64
		selectors [len(key.Columns)]gf.E
	)
	for i, h := range key.Columns {
		logs[i] = c.log(h)
	}
	placements(logs[:], offsets[:])
	for i, l := range logs {
		selectors[i] = selector(offsets[i]>>l, point[l:])
	}

	bus := eqPrefixes(c.zeta[:min(c.busDepth, len(point))], point)
	table := eqPrefixes(c.chi[:c.rounds], point)
	height := c.table(key.TableKECCAK)
	var slots [1 << key.KeccakSlotLog]gf.E
	gf.EqTable(point[height:][:key.KeccakSlotLog], slots[:])

	var sums [len(key.Columns)]gf.E // of the claims' weights, by column
	for i := range key.Claims {
		claim := &key.Claims[i]
		l := logs[claim.Column]
		var at gf.E
		switch claim.Point {
		case key.PointBus:
			at = bus[l]
		case key.PointTable:
			at = table[l]
		case key.PointInput:
			at = c.inputWeight(point[:l])
		case key.PointSlot:
			at = gf.Mul(table[height], slots[claim.Slot])
		case key.PointKeccak:
			continue
		}
		sums[claim.Column] = gf.Add(sums[claim.Column], gf.Mul(c.target.weights[i], at))
	}
	packed := gf.Mul(c.target.output, gf.Eq(c.keccakPoints.output[:logs[key.KeccakColumn]], point))
	packed = gf.Add(packed, c.conjugateWeight(point[:logs[key.KeccakColumn]]))
	sums[key.KeccakColumn] = gf.Add(sums[key.KeccakColumn], packed)
	return gf.Dot(sums[:], selectors[:])
}

// conjugateWeight is the ring switched weight of the packed column: the claim's point goes through all powers 2^k.
func (c *check) conjugateWeight(point []gf.E) gf.E {
	z := c.keccakPoints.input
	var sum gf.E
	for k := range c.target.conjugates {
		sum = gf.Add(sum, gf.Mul(c.target.conjugates[k], gf.Eq(z[:len(point)], point)))
		for i := range point {
			z[i] = gf.Square(z[i])
		}
	}
	return sum
}
