package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

const (
	keccakPackLog = 4  // executions are handled in packs of 16
	laneBits      = 64 // bits of a lane: slices of the state
	sliceLog      = 6
	laneCount     = 25
	laneLog       = 5 // log of the lanes, padded to 32
	// keccakLocalBits are the variables of a bit within a state: slice, then lane.
	keccakLocalBits = sliceLog + laneLog
	maxKeccakRounds = maxTableHeight - keccakPackLog + key.KeccakSegmentLog
)

// keccakClaim is a claim on the states of all executions of KECCAK between two rounds: the sum over bits, executions, packs and
// segments of the state bit times the weights below is value. A segment is half a permutation, 12 rounds; the claim is on the
// same round of both.
type keccakClaim struct {
	value  gf.E
	one    gf.E                     // sum of pack: what the constant one weighs
	pack   [1 << keccakPackLog]gf.E // weight of each execution of a pack
	point  [maxKeccakRounds]gf.E    // packs, then segment; keccakRounds coordinates
	lanes  [laneCount]gf.E          // weight of each lane after theta, rho and pi
	slice  [sliceLog]gf.E           // the slices' weights are the eq table of this point, or the powers of g for the outputs
	slices [laneBits]gf.E           // that table
}

// keccakStart is what the stage "keccak" starts from, and its openings need again.
type keccakStart struct {
	lanes [1 << laneLog]gf.E    // weights of the output lanes
	point [maxKeccakRounds]gf.E // packs and segment
	value gf.E                  // claimed on the outputs of all segments but the last
}

// keccakLayers is the stage "keccak": it shows that the outputs of every execution of KECCAK, claimed by the table, are the
// permutation of some inputs, round by round from the last to the first. A round's claim is on outputs of chi, iota; a product
// polynomial carries it over the 16 executions of a pack, sumchecks over packs, segments and bits lead to the three factors of
// chi at one point, and theta, rho and pi, being linear, go into the weights of the next claim.
//
// It assumes chi and the claimed values of the output lanes. It leaves a claim on the inputs (keccak), and keccakStart for the
// outputs.
func (c *check) keccakLayers() error {
	k, from := &c.keccak, &c.keccakStart
	packs, rounds := c.keccakPacks(), c.keccakRounds()

	point := from.point[:rounds]
	copy(point, c.chi[keccakPackLog:c.table(key.TableKECCAK)])
	c.sponge.challenges(point[packs:])
	var lanes [laneLog]gf.E
	c.sponge.challenges(lanes[:])
	gf.EqTable(lanes[:], from.lanes[:])
	from.value = c.next()

	// The last segment's outputs are columns of the table; those of the others are in the packed column and opened later.
	var segments [key.KeccakSegments]gf.E
	gf.EqTable(point[packs:], segments[:])
	outputs := gf.Dot(from.lanes[:laneCount], c.values[key.KeccakOutputs:])
	k.value = gf.Add(from.value, gf.Mul(segments[key.KeccakSegments-1], outputs))
	k.one = gf.One
	k.point = from.point
	copy(k.lanes[:], from.lanes[:])
	gf.EqTable(c.chi[:keccakPackLog], k.pack[:])
	for z, power := 0, uint64(1); z < laneBits; z++ {
		k.slices[z] = gf.FromBase(power)
		power = gf.MulBase(power, gf.Generator)
	}
	for layer := range key.KeccakDepth {
		if err := c.keccakLayer(layer); err != nil {
			return err
		}
	}
	return nil
}

// keccakLayer goes from the claim on the outputs of a round to one on its inputs.
func (c *check) keccakLayer(layer int) error {
	k := &c.keccak
	rounds := c.keccakRounds()

	// iota is known; the rest of the claim is carried by the product polynomial, whose coefficients weigh as its projection
	// to the executions says.
	var product [key.KeccakProductBits]gf.E
	c.nexts(product[:])
	carried := gf.Mul(c.iota(layer), k.one)
	for i := range product {
		carried = gf.Add(carried, gf.Mul(subsetSum(k.pack[:], key.KeccakProject[i]), product[i]))
	}
	if err := c.equal(carried, k.value, KeccakProduct); err != nil {
		return err
	}

	// At a random point the product is the product of the embedded packs: these weights are the next ones of the executions.
	s := c.sponge.challenge()
	var powers [key.KeccakEmbedBits]gf.E
	powers[0] = gf.One
	for i := range powers[1:] {
		powers[i+1] = gf.Mul(powers[i], s)
	}
	k.one = gf.E{}
	for i := range k.pack {
		k.pack[i] = subsetSum(powers[:], key.KeccakEmbed[i])
		k.one = gf.Add(k.one, k.pack[i])
	}
	value := horner(product[:], s)

	// Packs and segments: the eq factor of the claim's point is kept aside, so a round is of degree 2 and has two words.
	scale := gf.One
	for q := range k.point[:rounds] {
		z := k.point[q]
		p1, p2 := c.next(), c.next()
		y := c.sponge.challenge()
		gap := gf.Add(z, y)
		factor := complement(gap)
		value = gf.Add(value, gf.Add(gf.Mul(gap, p1), gf.Mul(gf.Add(z, gf.Square(y)), p2)))
		value = gf.Mul(factor, value)
		scale = gf.Mul(scale, factor)
		k.point[q] = y
	}
	// The bits of the state: degree 3, words as in the table sumcheck.
	var local [keccakLocalBits]gf.E
	for q := range local {
		p0, p2, p3 := c.next(), c.next(), c.next()
		y := c.sponge.challenge()
		y1 := complement(y)
		value = gf.Add(p0, gf.Mul(y, gf.Add(value, gf.Mul(y1, gf.Add(p2, gf.Mul(y1, p3))))))
		local[q] = y
	}

	// The three factors of chi at the point: a bit, and its two neighbours in the row.
	a0, a1, a2 := c.next(), c.next(), c.next()
	var lanes [1 << laneLog]gf.E
	gf.EqTable(local[sliceLog:], lanes[:])
	weight := c.layerWeight(layer, &local, &lanes)
	chi := gf.Add(gf.Mul(k.one, a0), gf.Mul(gf.Add(k.one, a1), a2))
	if err := c.equal(gf.Mul(scale, gf.Mul(weight, chi)), value, KeccakLayer); err != nil {
		return err
	}

	// One challenge joins the factors to a claim on chi's input; its weights on the lanes are those of three lanes of a row.
	r := c.sponge.challenge()
	k.value = gf.Add(a0, gf.Mul(r, gf.Add(a1, gf.Mul(r, a2))))
	for y := 0; y < laneCount; y += 5 {
		for x := range 5 {
			k.lanes[x+y] = gf.Add(lanes[x+y], gf.Mul(r, gf.Add(lanes[(x+4)%5+y], gf.Mul(r, lanes[(x+3)%5+y]))))
		}
	}
	copy(k.slice[:], local[:])
	gf.EqTable(k.slice[:], k.slices[:])
	return nil
}

// layerWeight is the weight that the claim gives to the bit of the state at local. For the outputs of the permutation it is a
// product; for those of an earlier round it goes through theta, rho and pi of the round after it.
func (c *check) layerWeight(layer int, local *[keccakLocalBits]gf.E, lanes *[1 << laneLog]gf.E) gf.E {
	if layer == 0 {
		return gf.Mul(gf.Dot(c.keccak.lanes[:], lanes[:]), generatorPowers(local[:sliceLog]))
	}
	var shifts [laneBits]gf.E
	shiftWeights(c.keccak.slice[:], local[:sliceLog], &shifts)
	return linearForm(&c.keccak.lanes, &shifts, lanes[:])
}

// iota is the weight of the round constants: what they add to the claim, over the segments.
func (c *check) iota(layer int) gf.E {
	k := &c.keccak
	var segments [key.KeccakSegments]gf.E
	gf.EqTable(k.point[c.keccakPacks():c.keccakRounds()], segments[:])
	var sum gf.E
	for m, weight := range segments {
		var bits gf.E
		for _, i := range key.KeccakIota[layer][m] {
			bits = gf.Add(bits, k.constantBit(layer, 1<<i-1))
		}
		sum = gf.Add(sum, gf.Mul(weight, bits))
	}
	return sum
}

// constantBit is the weight of bit z of lane 0.
func (k *keccakClaim) constantBit(layer, z int) gf.E {
	if layer == 0 {
		return gf.Mul(k.lanes[0], k.slices[z])
	}
	// Theta takes the bit to itself, to the five lanes of the next column, and to those of the column before it one bit up.
	moved := func(lane, z int) gf.E {
		return gf.Mul(k.lanes[key.KeccakPi[lane]], k.slices[(z+int(key.KeccakRho[lane]))%laneBits])
	}
	sum := moved(0, z)
	for y := 0; y < laneCount; y += 5 {
		sum = gf.Add(sum, gf.Add(moved(1+y, z), moved(4+y, z+1)))
	}
	return sum
}

// subsetSum is the sum of the elements of v with these indices.
func subsetSum(v []gf.E, indices []uint8) (sum gf.E) {
	for _, i := range indices {
		sum = gf.Add(sum, v[i])
	}
	return sum
}
