package leanproof

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// draft is a proof that can be edited and written again.
type draft struct {
	xmss, sphincs []Claim
	point         []byte
	words         []gf.E
	levels        []draftLevel
}

type draftLevel struct {
	rows     [][]uint64
	siblings []byte
}

func newDraft(t testing.TB, proof []byte) *draft {
	t.Helper()
	var p parts
	require.NoError(t, p.decode(proof))
	claims := p.claims()
	d := &draft{xmss: claims.XMSS, sphincs: claims.SPHINCS, point: slices.Clone(p.point)}
	for i := range len(p.words) / elementSize {
		d.words = append(d.words, element(p.words, i))
	}
	for i := range p.depth {
		o := &p.levels[i]
		l := draftLevel{siblings: slices.Clone(o.siblings)}
		for r := range o.count {
			row := make([]uint64, o.width)
			for w := range row {
				row[w] = word(o.row(r), w)
			}
			l.rows = append(l.rows, row)
		}
		d.levels = append(d.levels, l)
	}
	return d
}

// randomDraft has random words everywhere, in the lengths that a proof with this inverse rate and committed size has.
func randomDraft(t *testing.T, r *rand.Rand, logRate, logSize int) *draft {
	t.Helper()
	claim := Claim{PublicKey: [32]byte{1}, Message: [32]byte{2}}
	d := &draft{xmss: []Claim{claim}, point: make([]byte, pointSize*elementSize)}
	d.words = make([]gf.E, announcedWords)
	d.words[0].C0 = uint64(logSize - 3)
	for i := range key.Tables {
		d.words[1+i].C0 = 1 + r.Uint64N(500)
	}
	d.words[7].C0 = uint64(logRate)
	for i := range 2 {
		d.words[8+i] = gf.E{C0: r.Uint64(), C1: r.Uint64()}
	}
	var s sizes
	require.Equal(t, StreamLength, s.checkSizes(&parts{words: d.encodeWords()}))
	require.Equal(t, logSize, s.codeLog)
	require.Same(t, key.LadderFor(logRate, logSize), s.ladder)
	for len(d.words) < s.wordCount() {
		d.words = append(d.words, gf.E{C0: r.Uint64(), C1: r.Uint64(), C2: r.Uint64()})
	}
	for i := range s.ladder.Levels {
		row := make([]uint64, 3<<s.ladder.Levels[i].Folds)
		if i == 0 {
			row = row[:s.width]
		}
		for w := range row {
			row[w] = r.Uint64()
		}
		d.levels = append(d.levels, draftLevel{rows: [][]uint64{row}})
	}
	return d
}

func appendWords(b []byte, words ...uint64) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func (d *draft) encodeWords() []byte {
	var b []byte
	for _, e := range d.words {
		w := e.Words()
		b = appendWords(b, w[:]...)
	}
	return b
}

// wordsAt is where the proof words stand in the encoding.
func (d *draft) wordsAt() int {
	return 8 + claimSize*len(d.xmss) + 8 + claimSize*len(d.sphincs) + 8 + 8 + len(d.point) + 8
}

func (d *draft) encode() []byte {
	var b []byte
	for _, list := range [][]Claim{d.xmss, d.sphincs} {
		b = appendWords(b, uint64(len(list)))
		for _, c := range list {
			b = append(append(b, c.PublicKey[:]...), c.Message[:]...)
		}
	}
	b = append(appendWords(b, 0, pointSize), d.point...)
	b = append(appendWords(b, uint64(len(d.words))), d.encodeWords()...)
	b = appendWords(b, uint64(len(d.levels)))
	for _, l := range d.levels {
		b = appendWords(b, uint64(len(l.rows)))
		for _, row := range l.rows {
			b = appendWords(appendWords(b, uint64(len(row))), row...)
		}
		b = append(appendWords(b, uint64(len(l.siblings)/digestSize)), l.siblings...)
	}
	return b
}

// A forger makes proofs of things that were never proved. Nearly every check of the algorithm compares an element with one that
// the prover is free to choose: the forger chooses it to fit, the last word before the check, and goes on with the challenges
// that follow. What it can not do is open a committed tree at the positions drawn: its proofs have made-up rows. So all its
// proofs are refused at MerkleRoot, and a verifier without that check accepts them.
//
// That gives a proof for each check which that check alone refuses: spare names a check that the forger leaves failing, once.
type forger struct {
	t             *testing.T
	v             *Verifier
	d             *draft
	spare         Refusal // left failing
	nth           int     // which of its kind: 0 is the first
	met           []int   // where, in proof words, checks of that kind were seen to fail
	deferred      gf.E    // the table at the draft's deferred point, once it was evaluated
	deferredKnown bool

	tamper func(*check) // applied to a proof after its sizes were checked, when not nil
}

// verdict is how a run of the stages with a transcript ended.
type verdict struct {
	refusal    Refusal // RefusalUnknown: it went through
	difference gf.E
	check      *check
	last       lanes.KeccakState // input of the last permutation
}

// run takes the draft through the stages, all trees' roots waived.
func (f *forger) run() (out verdict) {
	f.t.Helper()
	c := new(check)
	out.check = c
	require.NoError(f.t, c.decode(f.d.encode()))
	require.NoError(f.t, c.checkSizes(&c.parts))
	if f.tamper != nil {
		f.tamper(c)
	}
	c.audit = func(r Refusal, difference gf.E) bool {
		out.difference = difference
		if r == f.spare {
			if !slices.Contains(f.met, c.cursor) {
				f.met = append(f.met, c.cursor)
			}
			return slices.Index(f.met, c.cursor) == f.nth
		}
		return r == MerkleRoot
	}
	c.sponge.trace = func(s *lanes.KeccakState) { out.last = *s }
	if !f.deferredKnown {
		p := c.deferredPoint()
		f.deferred, f.deferredKnown = f.v.key.Evaluate(p.Zeta[:], p.Alpha[:]), true
	}
	c.deferred = f.deferred
	if err := c.transcript(f.t.Context(), f.v.seed); err != nil {
		out.refusal = err.(Refusal)
	}
	return out
}

// tableWord is the index of the last column value in the proof words.
func (c *check) tableWord() int {
	n := announcedWords + 2
	for left, point := c.busDepth, 0; left > 0; {
		step := productStep(left)
		n += 4*point + 3<<step
		point += step
		left -= step
	}
	return n + key.BusClaims + 3*c.rounds + key.ColumnValues - 1
}

// forge changes the draft until the only checks that it fails are MerkleRoot and the spared one.
func (f *forger) forge() {
	f.t.Helper()
	tableDone := f.spare == TableValue
	for range 200 {
		got := f.run()
		c := got.check
		// The table's value is wanted at the end, but what it depends on stands before everything that must be chosen after it.
		if !tableDone && c.cursor > c.tableWord()+1 {
			tableDone = true
			f.fitTable(c)
			continue
		}
		switch got.refusal {
		case RefusalUnknown:
			return
		case Nonce:
			f.d.words[c.cursor-1] = grindNonce(f.t, got.last, c)
		case MerkleMissing, MerkleUnused:
			f.makeRows(c)
		case OpeningTerminal:
			f.fitRow(got)
		case DigestHalf:
			f.d.words[c.cursor-1].C2, f.d.words[c.cursor-2].C2 = 0, 0
		default:
			f.fitWord(got, c.cursor-1)
		}
	}
	f.t.Fatal("the forgery does not come to an end")
}

// fitWord changes a word on which the failed check's difference depends as an affine function.
func (f *forger) fitWord(got verdict, i int) {
	f.d.words[i] = gf.AddBase(f.d.words[i], 1)
	moved := f.run()
	if moved.refusal == RefusalUnknown || moved.check.cursor > got.check.cursor {
		return // it fits already
	}
	slope := gf.Add(got.difference, moved.difference)
	require.False(f.t, slope.IsZero(), "%v at word %d", got.refusal, i)
	f.d.words[i] = gf.Add(f.d.words[i], gf.Mul(moved.difference, gf.Inverse(slope)))
}

// fitTable does the same for the value of the guest's table, at a word of another place.
func (f *forger) fitTable(c *check) {
	i := c.tableWord()
	difference := func(c *check) gf.E {
		p := c.tablePoint()
		return gf.Add(c.needed.at(f.v.key.Evaluate(p.Zeta[:], p.Alpha[:])), c.evaluated)
	}
	before := difference(c)
	f.d.words[i] = gf.AddBase(f.d.words[i], 1)
	after := difference(f.run().check)
	f.d.words[i] = gf.Add(f.d.words[i], gf.Mul(after, gf.Inverse(gf.Add(before, after))))
}

// fitRow makes the opening's end fit by an element of a row of the last tree, which no challenge depends on.
func (f *forger) fitRow(got verdict) {
	row := f.d.levels[len(f.d.levels)-1].rows[0]
	row[0] ^= 1
	moved := f.run()
	delta := gf.Mul(moved.difference, gf.Inverse(gf.Add(got.difference, moved.difference)))
	for i, w := range delta.Words() {
		row[i] ^= w
	}
}

// makeRows gives the level that the run came to as many rows and siblings as its positions ask for.
func (f *forger) makeRows(c *check) {
	level := 0
	for used := 0; used < c.opening.used; level++ {
		used += int(c.ladder.Levels[level].Folds)
	}
	level--
	l := &f.d.levels[level]
	drawn := c.opening.levels[level].positions[:c.ladder.Levels[level].Queries]
	positions := slices.Clone(new(merkle).start(drawn))
	for len(l.rows) < len(positions) {
		l.rows = append(l.rows, slices.Clone(l.rows[0]))
	}
	l.rows = l.rows[:len(positions)]
	siblings := 0
	for range c.ladder.Levels[level].LogDomain {
		alone := len(positions)
		for i := range positions {
			if i > 0 && positions[i-1]^1 == positions[i] {
				alone -= 2
			}
		}
		siblings += alone
		for i := range positions {
			positions[i] >>= 1
		}
		positions = slices.Compact(positions)
	}
	l.siblings = make([]byte, siblings*digestSize)
}

// grindNonce finds a nonce that meets its bits. state is the input of the permutation after a nonce that did not.
func grindNonce(t *testing.T, state lanes.KeccakState, c *check) gf.E {
	t.Helper()
	lane := slices.Index([]uint64{state[3], state[7], state[11], state[15]}, tagNonce)
	require.GreaterOrEqual(t, lane, 0)
	level := 0
	for used := 0; used < c.opening.used; level++ {
		used += int(c.ladder.Levels[level].Folds)
	}
	mask := uint64(1)<<c.ladder.Levels[level-1].GrindBits - 1
	for n := uint64(0); n < 1<<26; n += lanes.KeccakLanes {
		var wide lanes.KeccakWide
		for l := range uint64(lanes.KeccakLanes) {
			for i := range state {
				wide[i][l] = state[i]
			}
			wide[4*lane][l], wide[4*lane+1][l], wide[4*lane+2][l] = n+l, 0, 0
		}
		lanes.PermuteWide(&wide, lanes.KeccakLanes)
		for l := range uint64(lanes.KeccakLanes) {
			if wide[0][l]&mask == 0 {
				return gf.FromBase(n + l)
			}
		}
	}
	t.Fatal("no nonce found")
	return gf.E{}
}
