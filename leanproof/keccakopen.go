package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// keccakPoints is where the two openings of the packed Keccak column are made: execution within a pack, packs, slot.
type keccakPoints struct {
	output, input [maxTableHeight + key.KeccakSlotLog]gf.E
	word          gf.E           // the column's claimed value at output
	slices        [laneBits]gf.E // claimed at input: the value of each bit of the column's words
}

// keccakOpenings is the stage "keccak_openings": the claims on the outputs of the segments but the last, and on the inputs of
// all, become claims on the packed column at one point each: its slots hold 25 lanes a segment's input, then the outputs. It
// assumes keccakStart and keccak. It leaves keccakPoints.
func (c *check) keccakOpenings() error {
	from, k, to := &c.keccakStart, &c.keccak, &c.keccakPoints
	packs, rounds := c.keccakPacks(), c.keccakRounds()

	outSlot := to.output[keccakPackLog+packs:][:key.KeccakSlotLog]
	value := c.quadraticRounds(from.value, outSlot)
	to.word = c.next()
	outLanes := slotLanes(outSlot, from.point[packs:rounds], 1, key.KeccakSegments-1)
	weight := gf.Dot(outLanes[:], from.lanes[:])
	if err := c.equal(gf.Mul(weight, to.word), value, KeccakOutput); err != nil {
		return err
	}
	copy(to.output[:], c.chi[:keccakPackLog])
	copy(to.output[keccakPackLog:], from.point[:packs])

	value = c.quadraticRounds(k.value, to.input[:keccakPackLog])
	inSlot := to.input[keccakPackLog+packs:][:key.KeccakSlotLog]
	value = c.quadraticRounds(value, inSlot)
	c.nexts(to.slices[:])
	var executions [1 << keccakPackLog]gf.E
	gf.EqTable(to.input[:keccakPackLog], executions[:])
	weight = gf.Dot(executions[:], k.pack[:])

	// shifts[r] is the sum of the slices, each with the weight of the slice that r moves it to.
	var twice [2 * laneBits]gf.E
	copy(twice[:], k.slices[:])
	copy(twice[laneBits:], k.slices[:])
	var shifts [laneBits]gf.E
	for r := range shifts {
		shifts[r] = gf.Dot(to.slices[:], twice[r:])
	}
	inLanes := slotLanes(inSlot, k.point[packs:rounds], 0, key.KeccakSegments)
	weight = gf.Mul(weight, linearForm(&k.lanes, &shifts, inLanes[:]))
	if err := c.equal(weight, value, KeccakInput); err != nil {
		return err
	}
	copy(to.input[keccakPackLog:], k.point[:packs])
	return nil
}

// quadraticRounds runs a sumcheck of degree 2 over len(point) variables, two words a round: the value at 0 and the coefficient
// of the square. It fills point with the challenges and returns the claim at the end.
func (c *check) quadraticRounds(claim gf.E, point []gf.E) gf.E {
	for i := range point {
		p0, p2 := c.next(), c.next()
		point[i] = c.sponge.challenge()
		claim = gf.Add(p0, gf.Mul(point[i], gf.Add(gf.Add(claim, p2), gf.Mul(point[i], p2))))
	}
	return claim
}

// slotLanes weighs the lanes of count states of the packed column, from state first on, by the slot's point and by the
// segment's.
func slotLanes(slot, segment []gf.E, first, count int) (lanes [laneCount]gf.E) {
	var (
		slots    [1 << key.KeccakSlotLog]gf.E
		segments [key.KeccakSegments]gf.E
	)
	gf.EqTable(slot, slots[:])
	gf.EqTable(segment, segments[:])
	for l := range lanes {
		for m := range count {
			lanes[l] = gf.Add(lanes[l], gf.Mul(segments[m], slots[laneCount*(first+m)+l]))
		}
	}
	return lanes
}
