package pubkeycache

import (
	"sync"
	"sync/atomic"

	"aggnode/wire"
	"aggnode/xmss"
)

// uppersPerValidator: two keys, each in its current tree and the one after it.
const uppersPerValidator = 4

// uppers are the verified upper parts of keys' trees. Every validator has places of its own: nobody pushes out what
// another one needs, and a lookup, of which each vote takes one, neither hashes nor locks. Safe for concurrent use.
type uppers struct {
	validators []places // by index; the slice is immutable
	n          atomic.Int64
	mu         sync.Mutex // held by who writes to places
}

// places hold the upper parts of one validator, the one that came last first, and nil behind the last. They only ever
// move to higher places, so that who looks from the first on meanwhile meets all of them.
type places [uppersPerValidator]atomic.Pointer[xmss.Upper]

func newUppers(validators int) uppers { return uppers{validators: make([]places, validators)} }

// find returns the upper part of a validator's tree, nil if there is none.
func (s *uppers) find(v wire.ValidatorIndex, key xmss.UpperKey) *xmss.Upper {
	if v >= wire.ValidatorIndex(len(s.validators)) {
		return nil
	}
	p := &s.validators[v]
	for i := range p {
		u := p[i].Load()
		if u == nil || u.Key() == key {
			return u
		}
	}
	return nil
}

// add stores an upper part: in the place of another one of the same tree, else as the first, for which the one that came
// first of all goes where there is no place left.
func (s *uppers) add(v wire.ValidatorIndex, u *xmss.Upper) {
	if v >= wire.ValidatorIndex(len(s.validators)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.validators[v]
	last := len(p) - 1
	for i := range p {
		other := p[i].Load()
		if other == nil {
			last = i
			s.n.Add(1)
			break
		}
		if other.Key() == u.Key() {
			p[i].Store(u)
			return
		}
	}
	for i := last; i > 0; i-- {
		p[i].Store(p[i-1].Load())
	}
	p[0].Store(u)
}

// size returns the number of upper parts now and at most.
func (s *uppers) size() (now, most int) {
	return int(s.n.Load()), uppersPerValidator * len(s.validators)
}
