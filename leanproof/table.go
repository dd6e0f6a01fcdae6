package leanproof

import (
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// tableBatch are the points at which the proofs of a batch ask for the value of the guest's table. The values come from one
// pass over it.
type tableBatch struct {
	checks [maxBatch]*check
	points [maxBatch]key.Point
	values [maxBatch]gf.E
	len    int
}

func (b *tableBatch) add(c *check, p key.Point) {
	b.checks[b.len], b.points[b.len] = c, p
	b.len++
}

// evaluate sets values and returns the proofs that they belong to.
func (b *tableBatch) evaluate(k *key.Key) []*check {
	k.EvaluateMany(b.points[:b.len], b.values[:b.len])
	return b.checks[:b.len]
}

// deferredPoint is the point to which the proofs inside this one carried their claims on the guest's table.
func (c *check) deferredPoint() (p key.Point) {
	for i := range p.Zeta {
		p.Zeta[i] = element(c.point, i)
	}
	for i := range p.Alpha {
		p.Alpha[i] = element(c.point, len(p.Zeta)+i)
	}
	return p
}

// defersNothing reports whether the deferred point is that of a proof without proofs inside: all zeros, where the table is
// zero, since its first slots are empty.
func (p *parts) defersNothing() bool {
	var some byte
	for _, b := range p.point {
		some |= b
	}
	return some == 0
}

// tablePoint is the point at which the proof needs the table's value. It assumes that all other stages accepted.
func (c *check) tablePoint() (p key.Point) {
	copy(p.Zeta[:], c.zeta[:])
	p.Alpha = c.alpha
	return p
}

// tableValue is the stage "table": with the guest's table's true value the sum of the table sumcheck is the claimed one.
func (c *check) tableValue(value gf.E) error {
	return c.equal(c.needed.at(value), c.evaluated, TableValue)
}
