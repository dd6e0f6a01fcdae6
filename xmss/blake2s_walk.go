package xmss

import "aggnode/internal/lanes"

// b2Steps is the number of chain steps of every admissible signature.
const b2Steps = b2Chains*b2ChainTop - b2TargetSum

// b2Walk leads all chains of a group from their digits to their tips. A chain has 0 to 7 steps to go. A lane takes the next
// chain as soon as it is done with one: of the signature it is at, or else of the one with most steps left. Of a signature
// the longest chains come first. So all lanes stay busy until the end, which they reach within a few steps of each other, for
// any number of signatures: with 16 of them after exactly 99 steps, as each has its own lane and 99 steps to make.
type b2Walk struct {
	b2Group
	inputs lanes.Blake2sWide
	queues [groupSize]b2Queue
	places [lanes.Blake2sWidth]uint8 // the signature that a lane is at
	chains [lanes.Blake2sWidth]uint8 // the chain that it walks
	busy   lanes.LaneSet
	// ends[t%8] are the lanes whose chain ends at time t, in steps from the start.
	ends [b2ChainTop + 1]lanes.LaneSet
}

// b2Queue are the chains of a signature that no lane has taken yet.
type b2Queue struct {
	pending b2ChainSet // those with the digit; the ones with a lower digit are taken
	digit   uint8
	steps   uint8 // left to make in all chains of the queue
}

func (w *b2Walk) toTips(live lanes.LaneSet) {
	b2Fill(&w.inputs[0], b2ChainStep)
	for s := live; s != 0; s = s.Without() {
		i := s.First()
		w.queues[i] = b2Queue{pending: w.digits[i].chains(0), steps: b2Steps}
		for set := w.digits[i].chains(b2ChainTop); set != 0; set &= set - 1 { // at their tips already
			chain := set.first()
			b2PutColumn(w.tip(chain), uint(i), w.value(uint8(i), chain))
		}
	}
	for k := range uint(lanes.Blake2sWidth) {
		w.next(k, 0)
	}
	for now := uint(0); w.busy != 0; {
		steps := uint(1)
		for w.ends[(now+steps)%uint(len(w.ends))] == 0 {
			steps++
		}
		w.run.Walk(&w.inputs, int(steps), w.busy)
		now += steps
		ended := w.ends[now%uint(len(w.ends))]
		w.ends[now%uint(len(w.ends))] = 0
		for ; ended != 0; ended = ended.Without() {
			k := uint(ended.First())
			place := w.places[k] % groupSize
			tip := w.tip(w.chains[k])
			tip[0][place] = w.inputs[8][k]
			tip[1][place] = w.inputs[9][k]
			tip[2][place] = w.inputs[10][k]
			tip[3][place] = w.inputs[11][k]
			if w.queues[place].steps != 0 {
				w.take(k, now)
			} else {
				w.next(k, now)
			}
		}
	}
}

// tip is where the leaf's input has the tip of a chain, in the lane of its signature.
func (g *b2Group) tip(chain uint8) *b2Rows { return (*b2Rows)(g.leaf[8+4*uint(chain):]) }

// next lets lane k work for the signature with most steps to take, if there is any.
func (w *b2Walk) next(k, now uint) {
	place, most := 0, uint8(0)
	for i := range w.queues {
		if n := w.queues[i].steps; n > most {
			place, most = i, n
		}
	}
	if most == 0 {
		w.busy &^= 1 << k
		return
	}
	w.busy |= 1 << k
	w.places[k] = uint8(place)
	w.inputs[3][k] = w.message[3][place]
	for i := range len(b2Param{}) {
		w.inputs[4+i][k] = w.message[4+i][place]
	}
	w.take(k, now)
}

// take gives lane k the next chain of the signature that it is at, which has one.
func (w *b2Walk) take(k, now uint) {
	k %= lanes.Blake2sWidth
	place := w.places[k] % groupSize
	q := &w.queues[place]
	for q.pending == 0 {
		q.digit++
		q.pending = w.digits[place].chains(q.digit)
	}
	chain := q.pending.first()
	q.pending &= q.pending - 1
	digit := q.digit
	steps := b2ChainTop - digit
	q.steps -= steps
	w.chains[k] = chain
	w.inputs[1][k] = uint32(chain)<<b2DigitBits | uint32(digit)
	b2PutColumn((*b2Rows)(w.inputs[8:]), k, w.value(place, chain))
	w.ends[(now+uint(steps))%uint(len(w.ends))] |= 1 << k
}
