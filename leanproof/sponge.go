package leanproof

import (
	"aggnode/internal/lanes"
	"aggnode/leanproof/internal/gf"
)

const (
	spongeScalars = 4 // scalars of four lanes in the rate of 16 lanes; lanes 16 to 24 are the capacity
	tagWord       = 1 // fourth lane of a proof word
	tagNonce      = 4 // fourth lane of a grinding nonce
)

// sponge is the transcript: Keccak-f in overwrite mode. What the prover sent goes in, challenges come out, and each of them
// depends on everything before it.
type sponge struct {
	state   lanes.KeccakState
	waiting int // scalars that stand in the rate since the last permutation

	trace func(*lanes.KeccakState) // nil but in tests: sees the input of every permutation after the first
}

// start binds the transcript to a version of the prover and to what the proof is about.
func (s *sponge) start(seed, statement digest) {
	s.state = lanes.KeccakState{}
	copy(s.state[0:], seed[:])
	copy(s.state[4:], statement[:])
	s.waiting = 0
	lanes.Permute(&s.state)
}

// observe takes in a scalar. Four wait in the rate; a fifth permutes.
func (s *sponge) observe(e gf.E, tag uint64) {
	if s.waiting == spongeScalars {
		s.permute()
	}
	lane := s.state[4*s.waiting:][:4]
	lane[0], lane[1], lane[2], lane[3] = e.C0, e.C1, e.C2, tag
	s.waiting++
}

// permute takes in what waits; the rest of the rate is overwritten with zeros.
func (s *sponge) permute() {
	clear(s.state[4*s.waiting : 4*spongeScalars])
	if s.trace != nil {
		s.trace(&s.state)
	}
	lanes.Permute(&s.state)
	s.waiting = 0
}

// challenge draws a random element, after a permutation of its own.
func (s *sponge) challenge() gf.E {
	s.permute()
	return gf.E{C0: s.state[0], C1: s.state[1], C2: s.state[2]}
}

// challenges draws len(out) of them.
func (s *sponge) challenges(out []gf.E) {
	for i := range out {
		out[i] = s.challenge()
	}
}

// grind takes in a nonce and reports whether the low zeros bits of the first lane are zero after it.
func (s *sponge) grind(nonce gf.E, zeros uint8) bool {
	s.observe(nonce, tagNonce)
	s.permute()
	return s.state[0]&(1<<zeros-1) == 0
}
