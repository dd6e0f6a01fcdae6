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
// with types that no hash of the scheme uses (those are 1, 2, 3 and 12), x = epoch in the bottom layer and epoch >> 16 in
// the top one, F = 0 in the bottom layer and 2^23 in the top one:
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
	words := s.tagged(&zero, kcParameter)
	var a lanes.KeccakState
	a.Finish(words[:])
	s.param = kcParam(a.Digest())
	return s
}

// tagged is the seed under an address, the input of the calls above without their rest.
func (s *kcSecret) tagged(p *kcParam, address uint64) [8]uint64 {
	return [8]uint64{p[0], p[1], address, 0, s.seed[0], s.seed[1], s.seed[2], s.seed[3]}
}

// kcTree is one layer of a key as a treeHasher. Leaf numbers are epochs in the bottom layer and epoch >> 16 in the top one.
type kcTree struct {
	*kcSecret
	layer kcLayer
}

// startAddress is the address under which the starts of chains 2j and 2j+1 are made.
func (t kcTree) startAddress(index uint32, j int) uint64 {
	return uint64(index) | uint64(t.layer) | uint64(j)<<32 | kcChainStart
}

func (t kcTree) leaves(first uint32, out []node) {
	var in kcLeafInput
	var d lanes.KeccakWideDigest
	for len(out) > 0 {
		n := min(len(out), lanes.KeccakLanes)
		t.tips(first, &in)
		for lane := range in[0] {
			in[0][lane], in[1][lane], in[2][lane] = t.param[0], t.param[1], t.layer.leaf(first+uint32(lane))
		}
		lanes.KeccakLongWide(&d, in[:], n)
		for lane := range n {
			at := kcLane(&d, lane)
			out[lane] = kcBytes(&at)
		}
		first += uint32(n)
		out = out[n:]
	}
}

// kcPairChunk is the number of pairs of chains that are walked at one time for eight leaves: their inputs, 8 KB, stay in the
// first-level cache.
const kcPairChunk = 4

// tips puts the chain tips of the eight leaves from first on into their lanes of the leaf inputs. The lanes of all hashes are
// leaves, so that nothing moves from lane to lane; when fewer leaves are wanted the others are computed in vain.
func (t kcTree) tips(first uint32, in *kcLeafInput) {
	var seeds [kcPairChunk]lanes.KeccakWide64
	var starts [kcPairChunk]lanes.KeccakWideDigest
	var chains [2 * kcPairChunk]lanes.KeccakWide64
	for k := range seeds {
		kcFill(&seeds[k], t.tagged(&t.param, 0))
	}
	for k := range chains {
		kcFill(&chains[k], [8]uint64{t.param[0], t.param[1]})
	}
	for j := 0; j < kcChains/2; j += kcPairChunk {
		pairs := min(kcPairChunk, kcChains/2-j)
		for k := range pairs {
			for lane := range lanes.KeccakLanes {
				seeds[k][2][lane] = t.startAddress(first+uint32(lane), j+k)
			}
		}
		lanes.Keccak64Wide(starts[:], seeds[:], pairs*lanes.KeccakLanes)
		for k := range 2 * pairs {
			c, start := &chains[k], &starts[k/2]
			c[4], c[5] = start[2*(k%2)], start[2*(k%2)+1]
			for lane := range lanes.KeccakLanes {
				c[2][lane] = t.layer.chainStep(first+uint32(lane), 0)
				c[6][lane] = uint64(2*j + k)
			}
		}
		for range kcChainTop {
			lanes.KeccakStepWide(chains[:], kcStep, 2*pairs*lanes.KeccakLanes)
		}
		for k := range 2 * pairs {
			w := 4 + 2*(2*j+k)
			in[w], in[w+1] = chains[k][4], chains[k][5]
		}
	}
}

// kcFill puts words into every lane.
func kcFill(rows *lanes.KeccakWide64, words [8]uint64) {
	for w, v := range words {
		for lane := range rows[w] {
			rows[w][lane] = v
		}
	}
}

func (t kcTree) parents(level int, first uint32, children, out []node) {
	var in [4]lanes.KeccakWide64
	var d [4]lanes.KeccakWideDigest
	for k := range in {
		kcFill(&in[k], [8]uint64{t.param[0], t.param[1]})
	}
	for len(out) > 0 {
		n := min(len(out), len(in)*lanes.KeccakLanes)
		for i := range n {
			b, lane := &in[i/lanes.KeccakLanes], i%lanes.KeccakLanes
			left, right := kcWords(children[2*i][:]), kcWords(children[2*i+1][:])
			b[2][lane] = t.layer.node(level, first+uint32(i))
			b[4][lane], b[5][lane], b[6][lane], b[7][lane] = left[0], left[1], right[0], right[1]
		}
		lanes.Keccak64Wide(d[:], in[:], n)
		for i := range n {
			at := kcLane(&d[i/lanes.KeccakLanes], i%lanes.KeccakLanes)
			out[i] = kcBytes(&at)
		}
		first += uint32(n)
		children, out = children[2*n:], out[n:]
	}
}

// filler is never asked for: the trees of this scheme are full.
func (t kcTree) filler(int, uint32) node { panic("xmss: filler node in a full tree") }

// kcWideChains is the number of wide messages that hold the chains of one one-time key.
const kcWideChains = (kcChains + lanes.KeccakLanes - 1) / lanes.KeccakLanes

// appendValues appends the chain values of an index, each at its digit. All chains walk to their tips, which costs a
// quarter more than to stop each at its digit and is little beside the search.
func (t kcTree) appendValues(b []byte, index uint32, digits *[kcChains]uint8) []byte {
	var blocks [kcWideChains]lanes.KeccakWide64
	var starts [kcWideChains]lanes.KeccakWideDigest
	for j := range kcChains / 2 {
		words := t.tagged(&t.param, t.startAddress(index, j))
		kcSetLane(blocks[j/lanes.KeccakLanes][:], j%lanes.KeccakLanes, words[:])
	}
	lanes.Keccak64Wide(starts[:], blocks[:], kcChains/2)
	for i := range kcChains {
		j := i / 2
		start, lane := &starts[j/lanes.KeccakLanes], j%lanes.KeccakLanes
		words := [8]uint64{
			t.param[0], t.param[1], t.layer.chainStep(index, 0), 0,
			start[2*(i%2)][lane], start[2*(i%2)+1][lane], uint64(i), 0,
		}
		kcSetLane(blocks[i/lanes.KeccakLanes][:], i%lanes.KeccakLanes, words[:])
	}
	var values [kcChains]node
	for position := range kcChainTop + 1 {
		for i, d := range digits {
			if int(d) == position {
				block, lane := &blocks[i/lanes.KeccakLanes], i%lanes.KeccakLanes
				v := lanes.KeccakDigest{block[4][lane], block[5][lane]}
				values[i] = kcBytes(&v)
			}
		}
		if position < kcChainTop {
			lanes.KeccakStepWide(blocks[:], kcStep, kcChains)
		}
	}
	for i := range values {
		b = append(b, values[i][:]...)
	}
	return b
}

// appendPart appends the one-time part of a layer's signature without its path: randomizer and chain values.
func (t kcTree) appendPart(ctx context.Context, b []byte, index uint32, signed []byte) ([]byte, error) {
	found, err := t.search(ctx, index, signed)
	if err != nil {
		return nil, err
	}
	return t.appendFound(b, index, found), nil
}

// appendFound appends what appendPart does, after the search.
func (t kcTree) appendFound(b []byte, index uint32, found *kcFound) []byte {
	d := lanes.KeccakDigest(found.randomizer)
	r := kcBytes(&d)
	b = append(b, r[:]...)
	return t.appendValues(b, index, &found.digits)
}
