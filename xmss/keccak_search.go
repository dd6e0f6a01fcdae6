package xmss

import (
	"context"

	"aggnode/internal/lanes"
)

// kcFound is the outcome of a search: the first admissible randomizer.
type kcFound struct {
	randomizer [2]uint64
	digits     [kcChains]uint8
}

// randomizerBase is the randomizer of trial 0.
func (t kcTree) randomizerBase(index uint32, signed []byte) [2]uint64 {
	var words [12]uint64
	seed := t.tagged(&t.param, uint64(index)|uint64(t.layer)|kcRandomizer)
	n := copy(words[:], seed[:])
	for ; len(signed) > 0; signed = signed[16:] {
		w := kcWords(signed)
		n += copy(words[n:], w[:])
	}
	var a lanes.KeccakState
	a.Finish(words[:n])
	return a.Digest()
}

const (
	kcTrialBlocks = 8
	// kcTrials is the number of randomizers that are tried side by side. The first admissible one in the order of trials
	// counts, so the number changes nothing but speed.
	kcTrials = kcTrialBlocks * lanes.KeccakLanes
)

// kcEncoder computes digests of one signed value under many randomizers.
type kcEncoder struct {
	isTop bool
	long  [kcTrialBlocks]lanes.KeccakWide80 // used in the bottom layer
	short [kcTrialBlocks]lanes.KeccakWide64 // used in the top layer
	out   [kcTrialBlocks]lanes.KeccakWideDigest
}

// init sets the inputs, all of them with the same randomizer.
func (e *kcEncoder) init(t kcTree, index uint32, signed []byte, base [2]uint64) {
	in := t.param.digestInput(t.layer, index, signed, base)
	e.isTop = t.layer == kcTop
	for k := range kcTrialBlocks {
		for lane := range lanes.KeccakLanes {
			kcSetLane(e.rows(k), lane, in.words())
		}
	}
}

// rows are the inputs of one block.
func (e *kcEncoder) rows(k int) []lanes.KeccakRow {
	if e.isTop {
		return e.short[k][:]
	}
	return e.long[k][:]
}

// digests computes the digests under the randomizers whose first words are first, first+1, … into out; the second word stays.
func (e *kcEncoder) digests(first uint64) {
	for k := range kcTrialBlocks {
		rows := e.rows(k)
		randomizer := &rows[len(rows)-2]
		for lane := range randomizer {
			randomizer[lane] = first + uint64(k*lanes.KeccakLanes+lane)
		}
	}
	if e.isTop {
		lanes.Keccak64Wide(e.out[:], e.short[:], kcTrials)
	} else {
		lanes.Keccak80Wide(e.out[:], e.long[:], kcTrials)
	}
}

// search tries randomizers until one makes the digest of the signed value (message or bottom root) a codeword: about 2^20
// trials of one permutation, 55 ms with AVX-512 and 0.45 s in portable code; one search in a hundred takes more than four
// times as long.
func (t kcTree) search(ctx context.Context, index uint32, signed []byte) (*kcFound, error) {
	var e kcEncoder
	base := t.randomizerBase(index, signed)
	e.init(t, index, signed, base)
	for a := uint64(0); a < 1<<40; a += kcTrials {
		if a%trialsPerCheck == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		first := base[0] + a
		e.digests(first)
		for k := range e.out {
			for lane := range lanes.KeccakLanes {
				if e.out[k][1][lane]>>kcSpareShift != 0 {
					continue // nearly always: 12 bits must be zero
				}
				d := kcLane(&e.out[k], lane)
				if digits, ok := kcDigits(&d); ok {
					r := first + uint64(k*lanes.KeccakLanes+lane)
					return &kcFound{randomizer: [2]uint64{r, base[1]}, digits: digits}, nil
				}
			}
		}
	}
	return nil, errNoRandomizer
}
