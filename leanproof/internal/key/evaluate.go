package key

import "aggnode/leanproof/internal/gf"

// Point is a point of the table's multilinear extension.
type Point struct {
	Zeta  [ProgramLog]gf.E               // of the instruction, low bit first
	Alpha [ProgramVars - ProgramLog]gf.E // of the slot
}

// maxPass is how many points are evaluated in one pass over the table, by the size of the scratch memory: 48 KiB a point.
const maxPass = 16

// scratch is the memory of one pass.
type scratch struct {
	basis  [blockSize]gf.E
	points [maxPass]pointScratch
	wide   planes // the low basis at a block's wide instructions
}

// planes are the limbs of the basis of a block's instructions.
type planes [3][blockSize]uint64

func (p *planes) slice(n int) gf.Planes { return gf.Planes{p[0][:n], p[1][:n], p[2][:n]} }

// pointScratch is what a pass keeps of one point.
type pointScratch struct {
	low     planes
	high    [1 << highLog]gf.E
	weights [Slots]gf.E
	blocks  [1 << highLog]gf.E // values of the blocks, without their factor in high
}

// Evaluate returns the value at a point of the multilinear polynomial whose values on the cube are the guest's table: zeta has
// ProgramLog elements, alpha four; it panics if they are shorter. A point takes 0.7 ms, 1.2 ms when the key is in no cache, and
// 40 ms in portable Go (Intel Xeon with AVX-512, 2026-12).
func (k *Key) Evaluate(zeta, alpha []gf.E) gf.E {
	var (
		p   [1]Point
		out [1]gf.E
	)
	copy(p[0].Zeta[:], zeta[:ProgramLog])
	copy(p[0].Alpha[:], alpha[:len(p[0].Alpha)])
	k.EvaluateMany(p[:], out[:])
	return out[0]
}

// EvaluateMany sets out[i] to the table's value at points[i]. Points share passes over the table: one alone waits for memory,
// more of them do not. out is at least as long as points, else it panics.
func (k *Key) EvaluateMany(points []Point, out []gf.E) {
	out = out[:len(points)]
	s, ok := k.scratches.Get().(*scratch)
	if !ok {
		s = new(scratch)
	}
	defer k.scratches.Put(s)
	for len(points) > 0 {
		n := min(len(points), maxPass)
		k.table.evaluate(s, points[:n], out[:n])
		points, out = points[n:], out[n:]
	}
}

func (t *table) evaluate(s *scratch, points []Point, out []gf.E) {
	for i := range points {
		s.points[i].prepare(&points[i], &s.basis)
	}
	for b := range t.blocks {
		for i := range points {
			p := &s.points[i]
			p.blocks[b] = t.blocks[b].value(p, &s.wide)
		}
	}
	for i := range points {
		out[i] = t.sum(&s.points[i])
	}
}

// prepare computes the bases of the point's parts. basis is overwritten.
func (p *pointScratch) prepare(at *Point, basis *[blockSize]gf.E) {
	gf.EqTable(at.Zeta[:blockLog], basis[:])
	for i := range basis {
		p.low[0][i], p.low[1][i], p.low[2][i] = basis[i].C0, basis[i].C1, basis[i].C2
	}
	gf.EqTable(at.Zeta[blockLog:], p.high[:])
	gf.EqTable(at.Alpha[:], p.weights[:])
}

// value is the value of the block at the point, without the block's factor. The basis of its wide instructions is gathered to
// wide.
func (b *block) value(p *pointScratch, wide *planes) gf.E {
	for j, i := range b.wide {
		i %= blockSize
		wide[0][j], wide[1][j], wide[2][j] = p.low[0][i], p.low[1][i], p.low[2][i]
	}
	all, some := p.low.slice(blockSize), wide.slice(len(b.wide))
	var slots [UsedSlots]gf.E
	gf.DotColumns(slots[:denseSlots], &all, b.dense)
	gf.DotColumns(slots[denseSlots:], &some, b.sparse)
	return gf.Dot(slots[:], p.weights[FirstSlot:])
}

// sum adds up the blocks. The instructions of all behind the stored ones are alike, and a block's low basis sums to one.
func (t *table) sum(p *pointScratch) gf.E {
	var same, behind gf.E
	for s, w := range t.last {
		same = gf.Add(same, gf.MulK(p.weights[FirstSlot+s], w))
	}
	for _, h := range p.high[len(t.blocks):] {
		behind = gf.Add(behind, h)
	}
	return gf.Add(gf.Dot(p.blocks[:len(t.blocks)], p.high[:]), gf.Mul(behind, same))
}
