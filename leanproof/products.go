package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// productStep is how many layers of the grand products are taken together when left are to come: two, and one first where
// their number is odd.
func productStep(left int) int {
	if left%2 == 1 {
		return 1
	}
	return 2
}

// products is the stage "products": the challenges of the bus, then one GKR argument for three trees of products, whose leaves
// are all that is pushed, all that is pulled, and the read counts. Pushed and pulled have one product by construction: the
// proof gives one word for both. The counts' product must not be zero.
//
// From the roots it walks to the leaves: the claims on the three nodes at a point become, by a sumcheck with lambda as weight
// of the trees, values of their two or four children, which new challenges fold to a claim at a longer point. It assumes that
// the announced words are in the transcript. It leaves alpha, fingerprints, beta, zeta and leafClaims.
func (c *check) products() error {
	c.sponge.challenges(c.alpha[:])
	gf.EqTable(c.alpha[:], c.fingerprints[:])
	c.beta = c.sponge.challenge()

	product, counts := c.next(), c.next()
	if err := c.holds(!counts.IsZero(), CountZero); err != nil {
		return err
	}
	claims := [key.Sides]gf.E{product, product, counts}
	point := c.zeta[:0]
	for left := c.busDepth; left > 0; {
		step := productStep(left)
		left -= step
		if err := c.productLayer(&claims, point, step); err != nil {
			return err
		}
		point = c.zeta[:len(point)+step]
	}
	c.leafClaims = claims
	return nil
}

// productLayer goes down step layers, from claims at point to claims at a point that is step longer, which it leaves in zeta:
// the challenges that fold the children, then those of the sumcheck.
func (c *check) productLayer(claims *[key.Sides]gf.E, point []gf.E, step int) error {
	lambda := c.sponge.challenge()
	combine := func(v *[key.Sides]gf.E) gf.E {
		return gf.Add(v[0], gf.Mul(lambda, gf.Add(v[1], gf.Mul(lambda, v[2]))))
	}
	claim := combine(claims)

	// A round's polynomial has degree 4: four words give it, and its value at 0 follows from the claim,
	// which is (1 + z) p(0) + z p(1).
	var fresh [maxBusDepth]gf.E
	for q, z := range point {
		var p [5]gf.E
		c.nexts(p[1:])
		fresh[q] = c.sponge.challenge()
		p[0] = gf.Add(claim, gf.Mul(z, gf.Add(gf.Add(p[1], p[2]), gf.Add(p[3], p[4]))))
		claim = horner(p[:], fresh[q])
	}

	var children [key.Sides][4]gf.E
	n := 1 << step
	for s := range children {
		c.nexts(children[s][:n])
	}
	var products [key.Sides]gf.E
	for s := range children {
		products[s] = children[s][0]
		for _, v := range children[s][1:n] {
			products[s] = gf.Mul(products[s], v)
		}
	}
	if err := c.equal(combine(&products), claim, ProductLayer); err != nil {
		return err
	}

	rounds := len(point)
	var folds [2]gf.E
	c.sponge.challenges(folds[:step])
	for s := range children {
		claims[s] = fold(children[s][:n], folds[:step])
	}
	copy(c.zeta[:], folds[:step])
	copy(c.zeta[step:], fresh[:rounds])
	return nil
}
