package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// ringSwitch is what the stage "ring_switch" leaves: all claims on committed columns as one claim on the committed polynomial,
// the sum of its values with a weight that the terminal stage knows at one point.
type ringSwitch struct {
	sum gf.E // the claim

	// conjugates[k] is the weight of the packed column's claim at the input point, to the power 2^k in each coordinate.
	conjugates [laneBits]gf.E
	weights    [len(key.Claims)]gf.E // of each claim; zero for those that the Keccak reduction consumed
	output     gf.E                  // of the packed column's claim at the output point
}

// mapSteps are the steps of the ring switching map, each the power 2^step.
var mapSteps = [sliceLog]int{32, 16, 8, 4, 2, 1}

// ringSwitch is the stage "ring_switch". The Keccak reduction claims the packed column bit by bit: 64 slices, over the field of
// two elements. An F2-linear map, drawn by six challenges, takes them to one claim over the large field. Then the powers of one
// more challenge lambda join it with the claims on all other columns. It assumes values, input and keccakPoints. It leaves
// target.
func (c *check) ringSwitch() error {
	t := &c.target
	var drawn [sliceLog]gf.E
	c.sponge.challenges(drawn[:])
	t.conjugates = mapCoefficients(&drawn)

	// The slices' images are the bits of a word: x is the generator.
	t.sum = gf.E{}
	for i := laneBits - 1; i >= 0; i-- {
		t.sum = gf.Add(gf.MulK(t.sum, gf.Generator), mapSlice(&drawn, c.keccakPoints.slices[i]))
	}

	lambda := c.sponge.challenge()
	power := lambda
	for i := range key.Claims {
		t.weights[i] = gf.E{}
		if key.Claims[i].Point != key.PointKeccak {
			t.weights[i] = power
			t.sum = gf.Add(t.sum, gf.Mul(power, c.values[i]))
			power = gf.Mul(power, lambda)
		}
	}
	t.output = power
	t.sum = gf.Add(t.sum, gf.Mul(power, c.keccakPoints.word))
	return nil
}

// mapSlice is the ring switching map: v -> v + drawn[i] * v^(2^step), for the steps in turn.
func mapSlice(drawn *[sliceLog]gf.E, v gf.E) gf.E {
	for i, step := range mapSteps {
		v = gf.Add(v, gf.Mul(drawn[i], gf.SquareN(v, step)))
	}
	return v
}

// mapCoefficients are the coefficients of the same map as a sum of powers v^(2^k).
func mapCoefficients(drawn *[sliceLog]gf.E) (out [laneBits]gf.E) {
	out[0] = gf.One
	for i, step := range mapSteps {
		for k := 0; k < laneBits; k += 2 * step {
			out[k+step] = gf.Mul(drawn[i], gf.SquareN(out[k], step))
		}
	}
	return out
}
