package leanproof

import (
	"slices"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

const (
	maxTail   = 1 << 5          // elements of the last level's message
	maxFolds  = maxCommittedLog // challenges of an opening, the tail's included
	maxSample = maxCommittedLog // coordinates of an out of domain point
)

// opening is the scratch of the stage "opening", and what the terminal stage needs of it.
type opening struct {
	claim quadratic      // of the current sumcheck round
	sum   gf.E           // what the last round's polynomial is at its challenge
	folds [maxFolds]gf.E // challenges in the order in which they were drawn
	used  int
	tail  [maxTail]gf.E // the message in clear

	levels [key.MaxLevels]openedLevel
	tree   merkle
	words  [maxRowWords]uint64
	row    [maxRowWords]gf.E
	fold   [maxRowWords]gf.E
	sums   [maxQueries]gf.E // of the distinct rows
}

// openedLevel is what a level leaves for the terminal stage.
type openedLevel struct {
	positions    [maxQueries]uint32 // of the opened rows, in the order drawn; as many as the level has queries
	lambda       gf.E               // weight of position i is lambda^i
	weight       gf.E               // of the sum over the positions
	sample       [maxSample]gf.E    // out of domain point on the message that this level commits to
	sampled      bool
	sampleWeight gf.E
}

// quadratic is the polynomial c0 + c1 x + c2 x^2.
type quadratic struct{ c0, c1, c2 gf.E }

func (q *quadratic) at(x gf.E) gf.E { return gf.Add(q.c0, gf.Mul(x, gf.Add(q.c1, gf.Mul(x, q.c2)))) }

// addScaled adds p times by.
func (q *quadratic) addScaled(p *quadratic, by gf.E) {
	q.c0 = gf.Add(q.c0, gf.Mul(by, p.c0))
	q.c1 = gf.Add(q.c1, gf.Mul(by, p.c1))
	q.c2 = gf.Add(q.c2, gf.Mul(by, p.c2))
}

// nextQuadratic reads a polynomial of degree 2 of which sum is p(0) + p(1): two words, its value at 0 and the coefficient of
// the square.
func (c *check) nextQuadratic(sum gf.E) quadratic {
	c0, c2 := c.next(), c.next()
	return quadratic{c0, gf.Add(sum, c2), c2}
}

// open is the stage "opening": the sum of the committed polynomial's values with the weight of the ring switch is target.sum.
// Each level folds some variables by sumcheck, commits to the message that is left, asks for its value at a random point, and
// then opens rows of the tree before at random positions: their sums are values of the new message too. A challenge joins all
// of that to the running sumcheck. The last level has its message in clear.
//
// It assumes target. It leaves folds, the levels' positions and weights, and sum, which the terminal stage must explain.
func (c *check) open() error {
	o, ladder := &c.opening, c.ladder
	o.used = 0
	o.sum = c.target.sum
	o.claim = c.nextQuadratic(o.sum)
	root := c.root
	for i := range ladder.Levels {
		next, err := c.openLevel(i, root)
		if err != nil {
			return err
		}
		root = next
	}
	for i := range int(ladder.LogTail) {
		c.foldRound(i < int(ladder.LogTail)-1)
	}
	return c.holds(c.cursor == len(c.words)/elementSize, StreamUnread)
}

// foldRound draws the challenge of a sumcheck round; more says that the proof goes on with the next round's polynomial.
func (c *check) foldRound(more bool) {
	o := &c.opening
	r := c.sponge.challenge()
	o.folds[o.used] = r
	o.used++
	o.sum = o.claim.at(r)
	if more {
		o.claim = c.nextQuadratic(o.sum)
	}
}

// openLevel runs level i, whose tree has this root, and returns the root of the next.
func (c *check) openLevel(i int, root digest) (next digest, err error) {
	o, ladder := &c.opening, c.ladder
	parameters, level := &ladder.Levels[i], &o.levels[i]
	first := o.used
	for range parameters.Folds {
		c.foldRound(true)
	}
	folds := o.folds[first:o.used]

	last := i == len(ladder.Levels)-1
	var sample quadratic
	var sampleSum gf.E
	level.sampled = false
	if last {
		c.nexts(o.tail[:1<<ladder.LogTail])
	} else {
		low, high := c.next(), c.next()
		if err := c.holds(low.C2|high.C2 == 0, DigestHalf); err != nil {
			return next, err
		}
		next = digest{low.C0, low.C1, high.C0, high.C1}
		if level.sampled = ladder.Levels[i+1].Samples == 1; level.sampled {
			c.sponge.challenges(level.sample[:parameters.LogMessage])
			sampleSum = c.next()
			sample = c.nextQuadratic(sampleSum)
		}
	}

	if err := c.holds(c.sponge.grind(c.skim(), parameters.GrindBits), Nonce); err != nil {
		return next, err
	}
	positions := level.positions[:parameters.Queries]
	c.drawPositions(positions, int(parameters.LogDomain))
	level.lambda = c.sponge.challenge()

	rows := &c.levels[i]
	distinct := o.tree.start(positions)
	if err := c.holds(len(distinct) == rows.count, MerkleMissing); err != nil {
		return next, err
	}
	if err := c.climb(rows, i == 0, int(parameters.LogDomain), root); err != nil {
		return next, err
	}
	c.sumRows(rows, i == 0, folds)
	var sum gf.E
	for j := len(positions) - 1; j >= 0; j-- {
		at, _ := slices.BinarySearch(distinct, positions[j])
		sum = gf.Add(gf.Mul(sum, level.lambda), o.sums[at])
	}

	// Joined to the running claim: the sample first, then the rows, with the next powers of lambda.
	rowsClaim := c.nextQuadratic(sum)
	weight := level.lambda
	if level.sampled {
		level.sampleWeight = weight
		o.claim.addScaled(&sample, weight)
		o.sum = gf.Add(o.sum, gf.Mul(weight, sampleSum))
		weight = gf.Mul(weight, level.lambda)
	}
	level.weight = weight
	o.claim.addScaled(&rowsClaim, weight)
	o.sum = gf.Add(o.sum, gf.Mul(weight, sum))
	return next, nil
}

// drawPositions fills out with positions of bits bits, as many from each challenge as fit in its 192, low bits first.
func (c *check) drawPositions(out []uint32, bits int) {
	for len(out) > 0 {
		e := c.sponge.challenge().Words()
		n := min(192/bits, len(out))
		for j := range n {
			at := j * bits
			v := e[at/64] >> (at % 64)
			if at%64+bits > 64 {
				v |= e[at/64+1] << (64 - at%64)
			}
			out[j] = uint32(v & (1<<bits - 1))
		}
		out = out[n:]
	}
}

// sumRows folds each opened row at the level's challenges. A row of the first level has words of the base field, the others
// elements. The first level's lanes run from the last to the first, and the lanes in front that hold nothing are left out.
func (c *check) sumRows(rows *openedRows, first bool, folds []gf.E) {
	o := &c.opening
	weights := o.fold[:1<<len(folds)]
	gf.EqTable(folds, weights)
	if !first {
		for i := range rows.count {
			row := rows.row(i)
			for j := range weights {
				o.row[j] = element(row, j)
			}
			o.sums[i] = gf.Dot(weights, o.row[:])
		}
		return
	}
	weights = weights[:rows.width]
	slices.Reverse(weights)
	for i := range rows.count {
		row := rows.row(i)
		for j := range weights {
			o.words[j] = word(row, j)
		}
		o.sums[i] = gf.DotK(weights, o.words[:])
	}
}
