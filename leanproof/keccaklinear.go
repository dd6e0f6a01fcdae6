package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// linearForm is the linear part of a round, theta then rho then pi, between two weightings of a state: lanes weigh those after
// pi, shifts[r] is what a bit weighs there that was moved up by r, and from weighs the lanes before theta.
func linearForm(lanes *[laneCount]gf.E, shifts *[laneBits]gf.E, from []gf.E) gf.E {
	var (
		sum                 gf.E
		column, columnAbove [5]gf.E // weight of a parity of column x, in place and moved up by one
		parity              [5]gf.E // weight of the lanes of a column before theta
	)
	for i := range laneCount {
		x := i % 5
		rotation := int(key.KeccakRho[i])
		lane := lanes[key.KeccakPi[i]]
		moved := gf.Mul(lane, shifts[rotation])
		sum = gf.Add(sum, gf.Mul(from[i], moved))
		column[x] = gf.Add(column[x], moved)
		columnAbove[x] = gf.Add(columnAbove[x], gf.Mul(lane, shifts[(rotation+1)%laneBits]))
		parity[x] = gf.Add(parity[x], from[i])
	}
	for x := range 5 {
		sum = gf.Add(sum, gf.Mul(parity[x], gf.Add(column[(x+1)%5], columnAbove[(x+4)%5])))
	}
	return sum
}

// shiftWeights sets out[r], for each r, to the extension of "a = b + r mod 64" at the points a and b, low bit first.
//
// The addition goes bit by bit with a carry. After t bits there are two values, for no carry and for a carry, and they depend
// only on the t low bits of r: so the values of all r grow as a tree does.
func shiftWeights(a, b []gf.E, out *[laneBits]gf.E) {
	var plain, carry [laneBits]gf.E
	plain[0] = gf.One
	for t := range sliceLog {
		both := gf.Mul(a[t], b[t])
		onlyA, onlyB := gf.Add(a[t], both), gf.Add(b[t], both)
		same := complement(gf.Add(a[t], b[t]))
		for r := range 1 << t {
			p, q := plain[r], carry[r]
			samePlain, onlyAPlain := gf.Mul(p, same), gf.Mul(p, onlyA)
			sameCarry, onlyACarry := gf.Mul(q, same), gf.Mul(q, onlyA)
			onlyBPlain, onlyBCarry := gf.Mul(p, onlyB), gf.Mul(q, onlyB)
			high := r + 1<<t
			// Bit t of r is clear: the sum's bit is b's, or its opposite with a carry, which goes on where b's is set.
			plain[r], carry[r] = gf.Add(samePlain, onlyACarry), onlyBCarry
			// It is set: the opposite without a carry, which starts where b's is set; b's with one, and the carry stays.
			plain[high], carry[high] = onlyAPlain, gf.Add(onlyBPlain, sameCarry)
		}
	}
	for r := range out {
		out[r] = gf.Add(plain[r], carry[r])
	}
}
