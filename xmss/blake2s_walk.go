package xmss

import "aggnode/internal/lanes"

// b2Walk are the chains of a group by their positions, on the way to their tips.
//
// Chains go in sixteens, those with most steps left first, and as far together as the shortest of them has to go. A chain's
// value is in its record before and after, so it can be left and taken up again at any position. Thus the lanes are full until
// fewer than 16 chains are left, for any number of signatures; whose chain is in which lane does not matter.
type b2Walk [b2ChainTop + 1]b2List

// b2List is a list of chains, each of which is in one list at most.
type b2List struct {
	chains [groupSize * b2Chains]lanes.Blake2sChain
	n      int
}

// toTips leads the chains of live to their tips, in the records.
func (g *b2Group) toTips(live lanes.LaneSet) {
	w := &g.walk
	for s := live; s != 0; s = s.Without() {
		owner := s.First()
		w.list(owner, &g.digits[owner])
	}
	w[b2ChainTop].n = 0 // these are tips; a branch for each chain would cost more than to list them
	b2Fill(&g.owners.Words[0], b2ChainStep)
	copy(g.owners.Words[3:], g.message[3:8]) // epoch and parameter
	values := g.records[b2ValuesAt:]
	var taken [lanes.Blake2sWidth]lanes.Blake2sChain
	for {
		chains := w.take(&taken)
		if len(chains) == 0 {
			return
		}
		last := chains[len(chains)-1].Position()
		steps := b2ChainTop - last
		g.run.Advance(&g.owners, values, b2RecordSize, chains, steps)
		for _, c := range chains {
			if c.Position() == last {
				break
			}
			w.push(c + lanes.Blake2sChain(steps))
		}
	}
}

// list puts the chains of a signature into the lists.
func (w *b2Walk) list(owner int, digits *b2Digits) {
	c := lanes.NewBlake2sChain(owner, 0)
	for _, half := range digits {
		for range b2HalfChains {
			w.push(c + lanes.Blake2sChain(half&b2ChainTop))
			half >>= b2DigitBits
			c += lanes.NewBlake2sChain(0, 1)
		}
	}
}

func (w *b2Walk) push(c lanes.Blake2sChain) {
	l := &w[c.Position()]
	l.chains[l.n] = c
	l.n++
}

// take removes from the lists the 16 chains with most steps left, most first, or as many as there are. They may be in place:
// valid until the next push to the list of the first.
func (w *b2Walk) take(taken *[lanes.Blake2sWidth]lanes.Blake2sChain) []lanes.Blake2sChain {
	n := 0
	for i := range b2ChainTop {
		l := &w[i]
		more := min(l.n, len(taken)-n)
		l.n -= more
		chains := l.chains[l.n:][:more]
		if more == len(taken) {
			return chains
		}
		n += copy(taken[n:], chains)
		if n == len(taken) {
			break
		}
	}
	return taken[:n]
}
