package xmss

import (
	"context"
	"sync"

	"aggnode/internal/lanes"
)

// b2Beginner makes the first of the three compressions of trials: over tweak, parameter and seed, without the message.
type b2Beginner struct {
	block lanes.Blake2sWide // word 1 is the number of the trial
	run   lanes.Blake2s
}

func (b *b2Beginner) init(s *b2Secret, epoch uint32) {
	b.run = lanes.NewBlake2s()
	s.param.tweakAll(&b.block, b2Randomizer, epoch)
	for i, w := range s.seed {
		b2Fill(&b.block[8+i], w)
	}
}

// clear ends the work and leaves no seed in memory that is used again.
func (b *b2Beginner) clear() {
	b.run.Done()
	b.block = lanes.Blake2sWide{}
}

// begin sets the states of the 16 trials from number first on.
func (b *b2Beginner) begin(states *lanes.Blake2sStates, first uint32) {
	for k := range b.block[1] {
		b.block[1][k] = first + uint32(k)
	}
	states.Reset()
	b.run.Absorb(states, &b.block, 64, false, lanes.FirstLanes(lanes.Blake2sWidth))
}

// b2Ahead keeps the trials that were begun ahead for one epoch. The memory is used again for the next one.
type b2Ahead struct {
	mu     sync.RWMutex
	epoch  uint32                // guarded by mu
	states []lanes.Blake2sStates // guarded by mu
}

// prepare begins the first trials of epoch, as far as that was not done.
func (a *b2Ahead) prepare(ctx context.Context, s *b2Secret, epoch uint32, trials int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	groups := trials / lanes.Blake2sWidth
	switch {
	case groups == 0:
		a.states = nil
		return nil
	case cap(a.states) < groups || cap(a.states) > 2*groups:
		a.states = make([]lanes.Blake2sStates, 0, groups)
	case a.epoch != epoch:
		a.states = a.states[:0]
	}
	a.epoch = epoch
	beginner := new(b2Beginner) // not on the stack: see b2Search
	beginner.init(s, epoch)
	defer beginner.clear()
	for i := len(a.states); i < groups; i++ {
		number := i * lanes.Blake2sWidth
		if number%trialsPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		a.states = a.states[:i+1]
		beginner.begin(&a.states[i], uint32(number))
	}
	return nil
}

// use calls search with the trials begun for epoch: none where there are none, or where some are being begun just now, which
// would take longer than to do without. The states are valid during the call.
func (a *b2Ahead) use(epoch uint32, search func(begun []lanes.Blake2sStates)) {
	if !a.mu.TryRLock() {
		search(nil)
		return
	}
	defer a.mu.RUnlock()
	if a.epoch != epoch {
		search(nil)
		return
	}
	search(a.states)
}
