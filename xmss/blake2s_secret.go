package xmss

import (
	"context"
	"encoding/binary"
	"sync"

	"aggnode/internal/lanes"
)

// b2Secret derives everything of a blake2s key from its seed; it is the treeHasher of the key.
type b2Secret struct {
	param b2Param
	seed  [8]uint32
}

func newB2Secret(seed *[32]byte) *b2Secret {
	s := &b2Secret{}
	b2PutWords(s.seed[:], seed[:])
	var zero b2Param
	s.param = b2Param(s.tagged(&zero, b2Parameter, 0, 0))
	return s
}

// tagged hashes the seed under a tweak.
func (s *b2Secret) tagged(p *b2Param, kind, sub, index uint32) lanes.Blake2sDigest {
	var b lanes.Blake2sBlock
	p.tweak(&b, kind, sub, index)
	copy(b[8:], s.seed[:])
	h := lanes.Blake2sInitial()
	h.Absorb(&b, 64, true)
	return h.Digest()
}

// b2Chain is the working memory for 16 chains of a key.
type b2Chain struct {
	run    lanes.Blake2s
	starts lanes.Blake2sWide // inputs of chain starts; word 1 is the chain
	states lanes.Blake2sStates
	steps  lanes.Blake2sWide // inputs of chain steps; words 8 to 11 are the value that the chain has come to
}

// init sets everything but the chains and the epochs.
func (c *b2Chain) init(s *b2Secret) {
	c.run = lanes.NewBlake2s()
	s.param.tweakAll(&c.starts, b2ChainStart, 0)
	s.param.tweakAll(&c.steps, b2ChainStep, 0)
	for i, w := range s.seed {
		b2Fill(&c.starts[8+i], w)
	}
}

// start puts the chains of starts to their first value.
func (c *b2Chain) start(used lanes.LaneSet) {
	c.states.Reset()
	c.run.Absorb(&c.states, &c.starts, 64, true, used)
	for k, chain := range c.starts[1] {
		c.steps[1][k] = chain << b2DigitBits
	}
	copy(c.steps[8:12], c.states[:4])
}

// leaves takes one chain of 16 epochs at a time, so that the tips are in place for the leaf's own hash as they come.
func (s *b2Secret) leaves(first uint32, out []node) {
	var c b2Chain
	c.init(s)
	defer c.run.Done()
	for len(out) > 0 {
		n := min(len(out), lanes.Blake2sWidth)
		s.leafGroup(&c, first, out[:n])
		first, out = first+uint32(n), out[n:]
	}
}

// leafGroup computes at most 16 leaves.
func (s *b2Secret) leafGroup(c *b2Chain, first uint32, out []node) {
	var leaf lanes.Blake2sWide
	var h lanes.Blake2sStates
	h.Reset()
	used := lanes.FirstLanes(len(out))
	for k := range lanes.Blake2sWidth {
		c.starts[3][k] = first + uint32(k)
	}
	c.steps[3] = c.starts[3]
	s.param.tweakAll(&leaf, b2Leaf, 0)
	leaf[3] = c.starts[3]
	for chain := range b2Chains {
		b2Fill(&c.starts[1], uint32(chain))
		c.start(used)
		c.run.Walk(&c.steps, b2ChainTop, used)
		word := 8 + 4*chain
		copy(leaf[word%16:][:4], c.steps[8:12])
		if word%16 == 12 {
			block := word / 16
			c.run.Absorb(&h, &leaf, uint32(64*(block+1)), block == b2LeafBlocks-1, used)
		}
	}
	for k := range out {
		out[k] = b2Column((*b2Rows)(h[:]), k)
	}
}

// parents puts the left children in the place of nodes at even numbers and the right ones in that of their siblings.
func (s *b2Secret) parents(level int, first uint32, children, out []node) {
	run := lanes.NewBlake2s()
	defer run.Done()
	var m lanes.Blake2sWide
	var siblings b2Rows
	s.param.tweakAll(&m, b2Node, 0)
	for len(out) > 0 {
		n := min(len(out), lanes.Blake2sWidth)
		b2Fill(&m[1], uint32(level-1))
		for k := range n {
			m[3][k] = 2 * (first + uint32(k))
			b2PutColumn((*b2Rows)(m[8:]), uint(k), &children[2*k])
			b2PutColumn(&siblings, uint(k), &children[2*k+1])
		}
		run.Climb(&m, siblings[:], lanes.FirstLanes(n))
		for k := range n {
			out[k] = b2Column((*b2Rows)(m[8:]), k)
		}
		first, children, out = first+uint32(n), children[2*n:], out[n:]
	}
}

func (s *b2Secret) filler(level int, index uint32) node {
	d := s.tagged(&s.param, b2Filler, uint32(level), index)
	return b2Bytes(&d)
}

// appendValues appends the chain values of epoch, each at its digit. All chains go to their tips, so the time tells nothing.
func (s *b2Secret) appendValues(b []byte, epoch uint32, digits *b2Digits) []byte {
	var c b2Chain
	c.init(s)
	defer c.run.Done()
	b2Fill(&c.starts[3], epoch)
	b2Fill(&c.steps[3], epoch)
	for first := 0; first < b2Chains; first += lanes.Blake2sWidth {
		n := min(b2Chains-first, lanes.Blake2sWidth)
		used := lanes.FirstLanes(n)
		for k := range n {
			c.starts[1][k] = uint32(first + k)
		}
		c.start(used)
		var values [lanes.Blake2sWidth]node
		for position := range b2ChainTop + 1 {
			for k := range n {
				if int(digits.of(first+k)) == position {
					values[k] = b2Column((*b2Rows)(c.steps[8:]), k)
				}
			}
			if position < b2ChainTop {
				c.run.Walk(&c.steps, 1, used)
			}
		}
		for k := range n {
			b = append(b, values[k][:]...)
		}
	}
	return b
}

// b2Found is the outcome of a search: the first admissible randomizer.
type b2Found struct {
	randomizer [b2RandomizerSize]byte
	digits     b2Digits
	trials     int // randomizers looked at, this one included
}

// b2Search is the working memory of a search, which lies together: kernels stall where what they read lies a multiple of 4 KiB
// from what they have just written, and on a stack of changing depth some of it did now and then. On the heap no row lies
// across two cache lines.
type b2Search struct {
	begun    lanes.Blake2sStates // where they were not begun ahead
	out      lanes.Blake2sOutcome
	trials   lanes.Blake2sTrials
	_        [8]uint32 // ends the row that trials ends in
	beginner b2Beginner
}

var b2Searches = sync.Pool{New: func() any { return new(b2Search) }}

// search tries randomizers until one makes the message's digest admissible: 2^14.85 trials of 3 compressions on average, 1.1
// ms with AVX-512 and 13 ms in portable code; a third less where the trials were begun ahead. The randomizer of trial a is a
// hash over seed and message under a tweak with a in it. Trials are made side by side, and the first admissible one in their
// order counts.
func (s *b2Secret) search(ctx context.Context, epoch uint32, message *[MessageSize]byte, ahead []lanes.Blake2sStates) (*b2Found, error) {
	search := b2Searches.Get().(*b2Search)
	defer b2Searches.Put(search)
	run, d := &search.beginner.run, &search.out.Digest
	for w := range search.trials.Second {
		b2Fill(&search.trials.Second[w], binary.LittleEndian.Uint32(message[4*w:]))
	}
	search.trials.Prefix = s.param.encoding(epoch, message)
	search.beginner.init(s, epoch)
	defer search.beginner.clear()
	for a := uint64(0); a < 1<<32; a += lanes.Blake2sWidth {
		if a%trialsPerCheck == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		begun := &search.begun
		if i := a / lanes.Blake2sWidth; i < uint64(len(ahead)) {
			begun = &ahead[i]
		} else {
			search.beginner.begin(begun, uint32(a))
		}
		run.Try(&search.out, &search.trials, begun)
		var candidates lanes.LaneSet // a quarter of all: bit 63 of both halves is zero
		for k := range lanes.Blake2sWidth {
			candidates |= lanes.LaneSet(^(d[1][k] | d[3][k]) >> 31 << k)
		}
		for ; candidates != 0; candidates = candidates.Without() {
			k := candidates.First()
			if digits, ok := b2DigitsOf(d[0][k], d[1][k], d[2][k], d[3][k]); ok {
				f := &b2Found{digits: digits, trials: int(a) + k + 1}
				for w := range search.out.Suffix {
					binary.LittleEndian.PutUint32(f.randomizer[4*w:], search.out.Suffix[w][k])
				}
				return f, nil
			}
		}
	}
	return nil, errNoRandomizer
}
