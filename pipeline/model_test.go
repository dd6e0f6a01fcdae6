package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// model is the queue written down again, slowly: one list of all that waits, and
// the rules of ARCHITECTURE.md as sorts over it.
type model struct {
	limits      Limits
	current     wire.Slot
	waiting     []*Item // in order of arrival
	late        []*Item // in order of lapsing
	aggregating int
	sharing     int // aggregates that a worker may take at once
	busy        int
}

func (m *model) rank(it *Item) wire.Slot { return min(it.Slot, m.current) }

// of returns what waits in a class, in order of arrival, late votes aside.
func (m *model) of(class Class, k kind) (out []*Item) {
	for _, it := range m.waiting {
		if it.Class == class && it.kind == k {
			out = append(out, it)
		}
	}

	return out
}

func (m *model) drop(it *Item) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o *Item) bool { return o == it })
	m.late = slices.DeleteFunc(m.late, func(o *Item) bool { return o == it })
}

// push returns the items that go.
func (m *model) push(it *Item) (victims []*Item) {
	switch {
	case it.Class == ClassLocal:
		victims = m.pushLocal(it)
	case it.kind == kindBlock:
		victims = m.pushBlock(it)
	case it.kind == kindAttestation:
		victims = m.pushAttestation(it)
	default:
		victims = m.pushAggregate(it)
	}
	for _, v := range victims {
		m.drop(v)
	}
	if !slices.Contains(victims, it) {
		m.waiting = append(m.waiting, it)
	}

	return victims
}

func (m *model) pushLocal(it *Item) []*Item {
	bounds := map[kind]int{kindAttestation: localAttestationBound, kindAggregate: localAggregateBound, kindBlock: localBlockBound}
	in := m.of(ClassLocal, it.kind)
	if len(in) < bounds[it.kind] {
		return nil
	}
	oldest := slices.MinFunc(append(slices.Clone(in), it), func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.seq, b.seq))
	})

	return []*Item{oldest}
}

func (m *model) pushBlock(it *Item) []*Item {
	in := m.of(ClassBlock, kindBlock)
	if len(in) < blockBound {
		return nil
	}
	in = append(in, it)
	count := func(p *peerRecord) (n int) {
		for _, o := range in {
			if o.peer == p {
				n++
			}
		}

		return n
	}
	victim := slices.MaxFunc(in, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(count(a.peer), count(b.peer)), cmp.Compare(a.seq, b.seq))
	})

	return []*Item{victim}
}

func (m *model) pushAttestation(it *Item) []*Item {
	in := m.of(ClassAttestation, kindAttestation)
	if len(in)+len(m.late) < m.limits.Attestations {
		return nil
	}
	if len(m.late) > 0 {
		return []*Item{m.late[0]}
	}
	all := append(slices.Clone(in), it)
	oldest := m.rank(slices.MinFunc(all, func(a, b *Item) int { return cmp.Compare(m.rank(a), m.rank(b)) }))
	excess := func(p *peerRecord) (n int) {
		for _, o := range all {
			if o.peer == p {
				n++
			}
		}

		return n - p.verified()
	}
	// The weakest peer of the oldest rank, the one that came last among equals.
	candidates := slices.DeleteFunc(slices.Clone(all), func(o *Item) bool { return m.rank(o) != oldest })
	worst := slices.MaxFunc(candidates, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.peer.rejected(), b.peer.rejected()), cmp.Compare(excess(a.peer), excess(b.peer)), cmp.Compare(a.seq, b.seq))
	})
	// Its oldest surplus vote, or its newest.
	var surplus, newest *Item
	for _, o := range in {
		if o.peer != worst.peer || m.rank(o) != oldest {
			continue
		}
		if o.surplus && surplus == nil {
			surplus = o
		}
		if !o.surplus {
			newest = o
		}
	}
	switch {
	case surplus != nil:
		return []*Item{surplus}
	case worst.peer == it.peer && m.rank(it) == oldest:
		return []*Item{it}
	default:
		return []*Item{newest}
	}
}

func (m *model) aggregateOrder(a, b *Item) int {
	rank := func(it *Item) int {
		switch {
		case it.peer.forgedAggregates():
			return 2
		case it.Slot < m.current:
			return 1
		default:
			return 0
		}
	}

	return cmp.Or(cmp.Compare(rank(a)/2, rank(b)/2), cmp.Compare(old(a, m.current), old(b, m.current)),
		cmp.Compare(b.gain, a.gain), cmp.Compare(a.seq, b.seq))
}

func old(it *Item, current wire.Slot) int {
	if it.Slot < current {
		return 1
	}

	return 0
}

func (m *model) pushAggregate(it *Item) (victims []*Item) {
	in := append(m.of(ClassAggregate, kindAggregate), it)
	gone := func(v *Item) bool {
		victims = append(victims, v)
		in = slices.DeleteFunc(in, func(o *Item) bool { return o == v })

		return v == it
	}
	if m.busy >= m.limits.Workers {
		own := slices.DeleteFunc(slices.Clone(in), func(o *Item) bool { return o.peer != it.peer })
		if len(own) > aggregatesPerPeer && gone(slices.MaxFunc(own, m.aggregateOrder)) {
			return victims
		}
	}
	for {
		bytes := 0
		of := map[*peerRecord]int{}
		for _, o := range in {
			bytes += o.Size
			of[o.peer] += o.Size
		}
		if len(in) <= aggregateBound && bytes <= aggregateBytes {
			return victims
		}
		if gone(slices.MaxFunc(in, func(a, b *Item) int {
			return cmp.Or(cmp.Compare(m.rank(b), m.rank(a)), cmp.Compare(of[a.peer], of[b.peer]),
				cmp.Compare(a.Size, b.Size), cmp.Compare(a.seq, b.seq))
		})) {
			return victims
		}
	}
}

// take returns what a free worker does next.
func (m *model) take() (out []*Item) {
	first := func(items []*Item, order func(a, b *Item) int) []*Item {
		if len(items) == 0 {
			return nil
		}

		return []*Item{slices.MinFunc(items, order)}
	}
	fifo := func(a, b *Item) int { return cmp.Compare(a.seq, b.seq) }
	proof := func() []*Item {
		if own := first(m.of(ClassLocal, kindAggregate), fifo); own != nil {
			return own
		}

		waiting := m.of(ClassAggregate, kindAggregate)
		most := min(m.sharing, 1+len(waiting)/waitingPerExtra)
		slices.SortFunc(waiting, m.aggregateOrder)
		var batch []*Item
		for _, it := range waiting {
			if len(batch) < most && !slices.ContainsFunc(batch, it.isNested) {
				batch = append(batch, it)
			}
		}

		return batch
	}
	choices := []func() []*Item{
		func() []*Item { return first(m.of(ClassLocal, kindBlock), fifo) },
		func() []*Item {
			return first(m.of(ClassBlock, kindBlock), func(a, b *Item) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), fifo(a, b)) })
		},
		func() []*Item {
			if m.aggregating == 0 {
				return proof()
			}

			return nil
		},
		func() (out []*Item) {
			for _, it := range m.of(ClassLocal, kindAttestation) {
				if len(out) == maxBatch || len(out) > 0 && it.DataRoot != out[0].DataRoot {
					break
				}
				out = append(out, it)
			}

			return out
		},
		func() []*Item {
			votes := m.of(ClassAttestation, kindAttestation)
			head := first(votes, func(a, b *Item) int { return cmp.Or(cmp.Compare(m.rank(b), m.rank(a)), fifo(a, b)) })
			if head == nil {
				return nil
			}
			same := slices.DeleteFunc(votes, func(o *Item) bool { return o.Slot != head[0].Slot || o.DataRoot != head[0].DataRoot })

			return same[:min(len(same), maxBatch)]
		},
		func() []*Item { return m.late[:min(len(m.late), 1)] },
		func() []*Item {
			if m.aggregating < m.limits.Workers-1 {
				return proof()
			}

			return nil
		},
	}
	for _, choose := range choices {
		if out = slices.Clone(choose()); len(out) > 0 {
			break
		}
	}
	for _, it := range out {
		m.drop(it)
	}
	if len(out) > 0 {
		m.busy++
		if out[0].kind == kindAggregate {
			m.aggregating++
		}
	}

	return out
}

// lapse is what happens at a verdict deadline.
func (m *model) lapse(it *Item) {
	m.drop(it)
	if it.Class == ClassAttestation {
		m.late = append(m.late, it)
	}
}

// contest runs the queue and the model over the same operations.
type contest struct {
	t       *testing.T
	queue   queue
	model   model
	seq     uint64
	peers   []*peerRecord
	running [][]*Item
	sizes   []wire.Participants
}

func newContest(t *testing.T, workers int) *contest {
	limits := limitsFor(64, 1, 1, workers)
	limits.Attestations = 24 // reached within a short input
	c := &contest{t: t, queue: newQueue(limits, 64), model: model{limits: limits}}
	c.queue.sharing = func() int { return c.model.sharing }
	for i := range 6 {
		c.peers = append(c.peers, &peerRecord{id: fmt.Sprint(i)})
	}
	for _, n := range []int{1, 3, 8} {
		var list []int
		for v := range n {
			list = append(list, v)
		}
		c.sizes = append(c.sizes, participants(t, list...))
	}
	c.advance(10)

	return c
}

func (c *contest) advance(slot wire.Slot) {
	c.queue.advance(slot)
	c.model.current = slot
	for _, p := range c.peers {
		p.rotate(slot)
	}
}

// arrive makes an item from three bytes.
func (c *contest) arrive(a, b, d byte) {
	c.seq++
	it := &Item{seq: c.seq, peer: c.peers[int(b)%len(c.peers)], Arrival: time.Unix(int64(c.seq), 0)}
	it.Slot = c.model.current + wire.Slot(b/8%4) - 2
	it.DataRoot[0] = d % 3
	switch a % 8 {
	case 0:
		it.Class, it.kind = ClassBlock, kindBlock
	case 1, 2:
		it.Class, it.kind, it.Size = ClassAggregate, kindAggregate, 1+int(d)<<14
		it.Aggregate = &wire.SignedAggregate{Participants: c.sizes[int(d)%len(c.sizes)]}
		it.gain = it.Aggregate.Participants.Count()
	case 3:
		it.Class, it.kind = ClassLocal, kind(1+d%3)
		it.Attestation = &wire.SignedAttestation{}
	default:
		it.Class, it.kind = ClassAttestation, kindAttestation
		it.Attestation = &wire.SignedAttestation{ValidatorIndex: wire.ValidatorIndex(d / 3 % 8)}
	}
	if it.Class == ClassLocal {
		it.peer = &peerRecord{}
	}
	want := c.model.push(it)
	var got []*Item
	add := func(v *Item) {
		if v != nil {
			got = append(got, v)
		}
	}
	switch {
	case it.Class == ClassLocal:
		add(c.queue.local.push(it))
	case it.kind == kindBlock:
		add(c.queue.blocks.push(it))
	case it.kind == kindAttestation:
		add(c.queue.attestations.push(it))
	default:
		got = c.queue.aggregates.push(it, c.queue.busy >= c.queue.workers, got)
	}
	require.Equal(c.t, seqs(want), seqs(got), "who goes when %s %d comes", it.Class, it.seq)
}

func (c *contest) take() {
	require.Equal(c.t, c.model.aggregating < max(1, c.queue.workers-1) && c.proofsWait() || c.othersWait(), c.queue.ready())
	want, got := c.model.take(), c.queue.take(nil)
	require.Equal(c.t, seqs(want), seqs(got), "what a worker takes")
	if len(got) > 0 {
		c.running = append(c.running, got)
	}
}

func (c *contest) proofsWait() bool {
	return len(c.model.of(ClassAggregate, kindAggregate))+len(c.model.of(ClassLocal, kindAggregate)) > 0
}

func (c *contest) othersWait() bool {
	aggregates := len(c.model.of(ClassAggregate, kindAggregate)) + len(c.model.of(ClassLocal, kindAggregate))

	return len(c.model.waiting)+len(c.model.late) > aggregates
}

func (c *contest) putDown(i byte) {
	if len(c.running) == 0 {
		return
	}
	at := int(i) % len(c.running)
	if c.running[at][0].kind == kindAggregate {
		c.model.aggregating--
	}
	c.queue.putDown(c.running[at])
	c.model.busy--
	c.running = slices.Delete(c.running, at, at+1)
}

// lapse lets the verdict deadline of a waiting item come.
func (c *contest) lapse(i byte) {
	if len(c.model.waiting) == 0 {
		return
	}
	it := c.model.waiting[int(i)%len(c.model.waiting)]
	c.model.lapse(it)
	if it.Class == ClassAttestation {
		c.queue.attestations.lapse(it)
	} else {
		c.queue.remove(it)
	}
}

// agree compares what waits.
func (c *contest) agree() {
	got := map[uint64]bool{}
	c.queue.waiting(func(it *Item) { got[it.seq] = true })
	want := map[uint64]bool{}
	for _, it := range slices.Concat(c.model.waiting, c.model.late) {
		want[it.seq] = true
	}
	if !maps.Equal(want, got) { // require.Equal alone would take most of the time
		require.Equal(c.t, want, got)
	}
	bytes := 0
	for _, it := range c.model.of(ClassAggregate, kindAggregate) {
		bytes += it.Size
	}
	require.Equal(c.t, bytes, c.queue.aggregates.bytes)
	for _, p := range c.peers {
		attestations, blocks, aggs := 0, 0, 0
		for _, it := range slices.Concat(c.model.waiting, c.model.late) {
			if it.peer == p {
				switch it.Class {
				case ClassAttestation:
					attestations++
				case ClassBlock:
					blocks++
				case ClassAggregate:
					aggs++
				case ClassLocal, ClassUnknown:
				}
			}
		}
		if want, got := [3]int{attestations, blocks, aggs}, [3]int{p.queuedAttestations, p.queuedBlocks, p.queuedAggs}; want != got {
			require.Equal(c.t, want, got, "peer %s", p.id)
		}
	}
}

func seqs(items []*Item) (out []uint64) {
	for _, it := range items {
		out = append(out, it.seq)
	}

	return out
}

// play runs the operations that the bytes stand for: the number of workers, then
// four bytes an operation.
func play(t *testing.T, in []byte) {
	c := newContest(t, 1+int(in[0]%4))
	c.model.sharing = 1 + int(in[0]/4%2)*7
	for in = in[1:]; len(in) >= 4; in = in[4:] {
		switch op, a, b, d := in[0]%16, in[1], in[2], in[3]; op {
		default:
			c.arrive(a, b, d)
		case 10, 11:
			if len(c.running) < c.queue.workers {
				c.take()
			}
		case 12, 13:
			c.putDown(a)
		case 14:
			c.lapse(a)
		case 15:
			switch p := c.peers[int(b)%len(c.peers)]; a % 8 {
			case 0:
				c.advance(c.model.current + 1)
			case 1, 2:
				p.reject(kindAttestation)
			case 3:
				p.reject(kindAggregate)
			default:
				p.current.verified++
			}
		}
		c.agree()
	}
}

// FuzzQueueAgainstModel runs random operations through the queue and the slow
// model, and compares every take and every eviction.
func FuzzQueueAgainstModel(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		seed := make([]byte, 1+4*400)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) <= 1+4*400 {
			play(t, in)
		}
	})
}
