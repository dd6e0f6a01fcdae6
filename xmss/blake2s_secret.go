package xmss

import (
	"context"

	"aggnode/internal/lanes"
)

// trialLanes is the number of randomizers tried side by side: what the widest lanes take. The first admissible one in trial order
// counts, so the number changes nothing but speed.
const trialLanes = 16

// trialsPerCheck is the number of trials between two looks at ctx: about 2 ms.
const trialsPerCheck = 4096

// b2Secret derives everything of a blake2s key from its seed; it is the treeHasher of the key.
type b2Secret struct {
	param b2Param
	seed  [8]uint32
}

func newB2Secret(seed *[32]byte) *b2Secret {
	s := &b2Secret{}
	b2PutWords(s.seed[:], seed[:])
	var zero b2Param
	d := s.tagged(&zero, b2Parameter, 0, 0)
	s.param = b2Param(d)
	return s
}

// tagged hashes the seed under a tweak.
func (s *b2Secret) tagged(p *b2Param, kind, sub, index uint32) lanes.Blake2sDigest {
	var in [1]lanes.Blake2sBlock
	var out [1]lanes.Blake2sDigest
	p.tweak(&in[0], kind, sub, index)
	copy(in[0][8:], s.seed[:])
	lanes.Blake2s64(out[:], in[:])
	return out[0]
}

// b2Chain is the working memory for the chains of one one-time key.
type b2Chain struct {
	blocks [b2Chains]lanes.Blake2sBlock
	out    [b2Chains]lanes.Blake2sDigest
}

// start puts all chains of epoch to their first value.
func (c *b2Chain) start(s *b2Secret, epoch uint32) {
	for i := range c.blocks {
		s.param.tweak(&c.blocks[i], b2ChainStart, uint32(i), epoch)
		copy(c.blocks[i][8:], s.seed[:])
	}
	lanes.Blake2s64(c.out[:], c.blocks[:])
	for i := range c.blocks {
		s.param.step(&c.blocks[i], i, 0, epoch)
		copy(c.blocks[i][8:12], c.out[i][:])
	}
}

func (s *b2Secret) leaf(epoch uint32) node {
	var c b2Chain
	c.start(s, epoch)
	for range b2ChainTop {
		b2StepAll(c.blocks[:], c.out[:])
	}
	var in [b2LeafBlocks]lanes.Blake2sBlock
	s.param.tweak(&in[0], b2Leaf, 0, epoch)
	for i := range c.blocks {
		word := 8 + 4*i
		copy(in[word/16][word%16:][:4], c.blocks[i][8:12])
	}
	h := lanes.Blake2sInitial()
	for b := range in {
		h.Absorb(&in[b], uint32(64*(b+1)), b == b2LeafBlocks-1)
	}
	d := h.Digest()
	return b2Bytes(&d)
}

func (s *b2Secret) parents(level int, first uint32, children, out []node) {
	var in [trialLanes]lanes.Blake2sBlock
	var digests [trialLanes]lanes.Blake2sDigest
	for done := 0; done < len(out); {
		n := min(len(out)-done, trialLanes)
		for k := range n {
			i := done + k
			s.param.tweak(&in[k], b2Node, uint32(level), first+uint32(i))
			b2PutWords(in[k][8:12], children[2*i][:])
			b2PutWords(in[k][12:16], children[2*i+1][:])
		}
		lanes.Blake2s64(digests[:n], in[:n])
		for k := range n {
			out[done+k] = b2Bytes(&digests[k])
		}
		done += n
	}
}

func (s *b2Secret) filler(level int, index uint32) node {
	d := s.tagged(&s.param, b2Filler, uint32(level), index)
	return b2Bytes(&d)
}

// appendValues appends the chain values of epoch, each at its digit.
func (s *b2Secret) appendValues(b []byte, epoch uint32, digits *[b2Chains]uint8) []byte {
	var c b2Chain
	var values [b2Chains]node
	c.start(s, epoch)
	for position := range b2ChainTop + 1 {
		for i, d := range digits {
			if int(d) == position {
				v := lanes.Blake2sDigest(c.blocks[i][8:12])
				values[i] = b2Bytes(&v)
			}
		}
		if position < b2ChainTop {
			b2StepAll(c.blocks[:], c.out[:])
		}
	}
	for i := range values {
		b = append(b, values[i][:]...)
	}
	return b
}

// b2Found is the outcome of a search: the first admissible randomizer.
type b2Found struct {
	randomizer [b2RandomizerSize / 4]uint32
	digits     [b2Chains]uint8
	trials     int // randomizers looked at, this one included
}

// search tries randomizers until one makes the message's digest admissible: 2^14.85 trials of 3 compressions on average, 16 ms
// in portable code. The randomizer of trial a is a hash over seed and message under a tweak with a in it.
func (s *b2Secret) search(ctx context.Context, epoch uint32, message *[MessageSize]byte) (*b2Found, error) {
	var encoder b2Encoder
	encoder.init(&s.param, epoch, message)
	var first, second, encoded [trialLanes]lanes.Blake2sBlock
	for k := range trialLanes {
		s.param.tweak(&first[k], b2Randomizer, 0, epoch)
		copy(first[k][8:], s.seed[:])
		b2PutWords(second[k][:8], message[:])
	}
	for a := uint64(0); a < 1<<32; a += trialLanes {
		if a%trialsPerCheck == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var states [trialLanes]lanes.Blake2sState
		for k := range states {
			states[k] = lanes.Blake2sInitial()
			first[k][1] = uint32(a) + uint32(k)
		}
		lanes.Blake2sAbsorb(states[:], first[:], 64, false)
		lanes.Blake2sAbsorb(states[:], second[:], 96, true)
		for k := range states {
			copy(encoded[k][:b2RandomizerSize/4], states[k][:])
			states[k] = encoder.prefix
		}
		lanes.Blake2sAbsorb(states[:], encoded[:], 96, true)
		for k := range states {
			d := states[k].Digest()
			if digits, ok := b2Digits(&d); ok {
				f := &b2Found{digits: digits, trials: int(a) + k + 1}
				copy(f.randomizer[:], encoded[k][:])
				return f, nil
			}
		}
	}
	return nil, errNoRandomizer
}
