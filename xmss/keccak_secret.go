package xmss

import (
	"context"

	"aggnode/internal/lanes"
)

// The seed derivation of keccak keys is this package's own: the one of py-lean-pq is not published, so a seed means something
// only here, while public keys and signatures are common. Each call is the scheme's own tagged hash,
//
//	Keccak256(P | A | seed 32 | rest),   A = lo u32 | hi u24 | type u8 | zeros 8
//
// with types that no hash of the scheme uses (those are 1, 2, 3 and 12), x = epoch in the bottom layer and epoch >> 16 in the top
// one, F = 0 in the bottom layer and 2^23 in the top one:
//
//	call                          type  P             lo  hi     rest                    output used
//	public parameter              28    16 zero bytes 0   0      none                    bytes 0..15
//	starts of chains 2j and 2j+1  29    of the key    x   F + j  none                    bytes 0..15 and 16..31, j = 0..28
//	randomizer base               30    of the key    x   F      signed value 32 or 16   bytes 0..15
//
// The randomizer of trial a is the base with a added to its first 8 bytes as a little-endian number, modulo 2^64: a trial
// then costs one permutation, and the randomizers of a message are unknown to whoever does not hold the seed until one is
// published. testdata/keccak/derivation.json holds values made with x/crypto's Keccak.
const (
	kcParameter  = 28 << 56
	kcChainStart = 29 << 56
	kcRandomizer = 30 << 56
)

// kcSecret derives everything of a keccak key from its seed.
type kcSecret struct {
	param kcParam
	seed  [4]uint64
}

func newKcSecret(seed *[32]byte) *kcSecret {
	s := &kcSecret{}
	lo, hi := kcWords(seed[:]), kcWords(seed[16:])
	s.seed = [4]uint64{lo[0], lo[1], hi[0], hi[1]}
	var zero kcParam
	var in [1]lanes.KeccakBlock64
	var out [1]lanes.KeccakDigest
	s.tagged(&in[0], &zero, kcParameter)
	lanes.Keccak64(out[:], in[:])
	s.param = kcParam(out[0])
	return s
}

// tagged sets a block to the seed under an address.
func (s *kcSecret) tagged(b *lanes.KeccakBlock64, p *kcParam, address uint64) {
	*b = lanes.KeccakBlock64{p[0], p[1], address, 0, s.seed[0], s.seed[1], s.seed[2], s.seed[3]}
}

// kcTree is one layer of a key as a treeHasher. Leaf numbers are epochs in the bottom layer and epoch >> 16 in the top one.
type kcTree struct {
	*kcSecret
	layer kcLayer
}

// kcChain is the working memory for the chains of one one-time key.
type kcChain struct {
	blocks [kcChains]lanes.KeccakBlock64
	out    [kcChains]lanes.KeccakDigest
	pairs  [kcChains / 2][4]uint64
}

// start puts all chains of an index to their first value.
func (c *kcChain) start(t kcTree, index uint32) {
	for j := range c.pairs {
		t.tagged(&c.blocks[j], &t.param, uint64(index)|uint64(t.layer)|uint64(j)<<32|kcChainStart)
	}
	lanes.Keccak64Full(c.pairs[:], c.blocks[:len(c.pairs)])
	for i := range c.blocks {
		t.param.step(&c.blocks[i], t.layer, i, 0, index)
		copy(c.blocks[i][4:6], c.pairs[i/2][2*(i%2):])
	}
}

func (t kcTree) leaf(index uint32) node {
	var c kcChain
	c.start(t, index)
	for range kcChainTop {
		kcStepAll(c.blocks[:], c.out[:])
	}
	var words [kcLeafWords]uint64
	for i := range c.blocks {
		copy(words[4+2*i:], c.blocks[i][4:6])
	}
	d := t.param.leaf(&words, t.layer, index)
	return kcBytes(&d)
}

func (t kcTree) parents(level int, first uint32, children, out []node) {
	var in [trialLanes]lanes.KeccakBlock64
	var digests [trialLanes]lanes.KeccakDigest
	for done := 0; done < len(out); {
		n := min(len(out)-done, trialLanes)
		for k := range n {
			i := done + k
			b := &in[k]
			t.param.nodeBlock(b, t.layer, uint32(level), first+uint32(i))
			left, right := kcWords(children[2*i][:]), kcWords(children[2*i+1][:])
			b[4], b[5], b[6], b[7] = left[0], left[1], right[0], right[1]
		}
		lanes.Keccak64(digests[:n], in[:n])
		for k := range n {
			out[done+k] = kcBytes(&digests[k])
		}
		done += n
	}
}

// filler is never asked for: the trees of this scheme are full.
func (t kcTree) filler(int, uint32) node { panic("xmss: filler node in a full tree") }

// appendValues appends the chain values of an index, each at its digit.
func (t kcTree) appendValues(b []byte, index uint32, digits *[kcChains]uint8) []byte {
	var c kcChain
	var values [kcChains]node
	c.start(t, index)
	for position := range kcChainTop + 1 {
		for i, d := range digits {
			if int(d) == position {
				v := lanes.KeccakDigest(c.blocks[i][4:6])
				values[i] = kcBytes(&v)
			}
		}
		if position < kcChainTop {
			kcStepAll(c.blocks[:], c.out[:])
		}
	}
	for i := range values {
		b = append(b, values[i][:]...)
	}
	return b
}

// kcFound is the outcome of a search: the first admissible randomizer.
type kcFound struct {
	randomizer [2]uint64
	digits     [kcChains]uint8
}

// randomizerBase is the randomizer of trial 0.
func (t kcTree) randomizerBase(index uint32, signed []byte) [2]uint64 {
	var words [12]uint64
	var b lanes.KeccakBlock64
	t.tagged(&b, &t.param, uint64(index)|uint64(t.layer)|kcRandomizer)
	copy(words[:], b[:])
	n := 8
	for ; len(signed) > 0; signed = signed[16:] {
		w := kcWords(signed)
		words[n], words[n+1] = w[0], w[1]
		n += 2
	}
	var a lanes.KeccakState
	a.Finish(words[:n])
	return a.Digest()
}

// search tries randomizers until one makes the digest of the signed value (message or bottom root) a codeword: about 2^20 trials of
// one permutation, 0.45 s in portable code; one search in a hundred takes over 2 s.
func (t kcTree) search(ctx context.Context, index uint32, signed []byte) (*kcFound, error) {
	var e kcEncoder
	e.init(&t.param, t.layer, index, signed)
	base := t.randomizerBase(index, signed)
	for a := uint64(0); a < 1<<40; a += trialLanes {
		if a%trialsPerCheck == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for k, d := range e.digests(base, a) {
			if digits, ok := kcDigits(&d); ok {
				return &kcFound{randomizer: [2]uint64{base[0] + a + uint64(k), base[1]}, digits: digits}, nil
			}
		}
	}
	return nil, errNoRandomizer
}

// appendPart appends the one-time part of a layer's signature without its path: randomizer and chain values.
func (t kcTree) appendPart(ctx context.Context, b []byte, index uint32, signed []byte) ([]byte, error) {
	found, err := t.search(ctx, index, signed)
	if err != nil {
		return nil, err
	}
	d := lanes.KeccakDigest(found.randomizer)
	r := kcBytes(&d)
	b = append(b, r[:]...)
	return t.appendValues(b, index, &found.digits), nil
}
