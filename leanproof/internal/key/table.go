package key

// The instructions in blocks: a block's instructions share the high coordinates of a point, so that the products of low and
// high part are made once a block. The low part's basis, 24 KiB, stays in the first level cache.
const (
	blockLog  = 10
	blockSize = 1 << blockLog
	highLog   = ProgramLog - blockLog

	denseSlots = 4 // nearly every instruction has words in them
)

// table is the guest's table without what is zero or the same in every row of a block.
type table struct {
	blocks []block // the first ones
	last   row     // every instruction of all blocks that follow
}

// block is the instructions that share their high bits. Words lie one slot behind the other, and those of all blocks in one
// piece of memory each, in the order in which an evaluation reads them.
type block struct {
	dense  []uint64 // of all the block's instructions, in the dense slots
	wide   []uint16 // the instructions, as offsets in the block, that have words in the other ones
	sparse []uint64 // these words
}

// slot returns the words of slot FirstSlot + s: of all the block's instructions where s is dense, else of the wide ones.
func (b *block) slot(s int) []uint64 {
	if s < denseSlots {
		return b.dense[s*blockSize : (s+1)*blockSize]
	}
	s -= denseSlots
	return b.sparse[s*len(b.wide) : (s+1)*len(b.wide)]
}

// newTable makes the table of the guest's instructions; the last of them stands for all that follow.
func newTable(g *guest) table {
	var t table
	wide := 0
	g.rows(func(r *row) {
		t.last = *r
		if r.isWide() {
			wide++
		}
	})
	fill := 0 // instructions behind the last one in its block
	if n := len(g.operations) % blockSize; n != 0 {
		fill = blockSize - n
	}
	if t.last.isWide() {
		wide += fill
	}
	total := len(g.operations) + fill
	t.blocks = make([]block, 0, total/blockSize)
	space := block{
		dense:  make([]uint64, 0, total*denseSlots),
		wide:   make([]uint16, 0, wide),
		sparse: make([]uint64, 0, wide*(UsedSlots-denseSlots)),
	}
	rows := make([]row, 0, blockSize)
	add := func(r *row) {
		if rows = append(rows, *r); len(rows) == blockSize {
			t.blocks = append(t.blocks, space.next(rows))
			rows = rows[:0]
		}
	}
	g.rows(add)
	for range fill {
		add(&t.last)
	}
	return t
}

// next makes a block of its rows at the end of the memory of all of them.
func (space *block) next(rows []row) block {
	dense, wide, sparse := len(space.dense), len(space.wide), len(space.sparse)
	for i := range rows {
		if rows[i].isWide() {
			space.wide = append(space.wide, uint16(i))
		}
	}
	b := block{wide: space.wide[wide:]}
	for s := range UsedSlots {
		if s < denseSlots {
			for i := range rows {
				space.dense = append(space.dense, rows[i][s])
			}
			continue
		}
		for _, i := range b.wide {
			space.sparse = append(space.sparse, rows[i][s])
		}
	}
	b.dense, b.sparse = space.dense[dense:], space.sparse[sparse:]
	return b
}

// slot calls yield with the words of all instructions in a slot, block by block. The words are valid during the call.
func (t *table) slot(slot int, yield func(words *[blockSize]uint64)) {
	var words [blockSize]uint64
	s := slot - FirstSlot
	for i := range Instructions / blockSize {
		clear(words[:])
		switch {
		case s < 0 || s >= UsedSlots:
		case i >= len(t.blocks):
			for j := range words {
				words[j] = t.last[s]
			}
		case s < denseSlots:
			copy(words[:], t.blocks[i].slot(s))
		default:
			b := &t.blocks[i]
			for j, w := range b.slot(s) {
				words[b.wide[j]] = w
			}
		}
		yield(&words)
	}
}
