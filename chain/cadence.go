package chain

import (
	"slices"
	"time"

	"aggnode/wire"
)

// Numbers of the comparison of clocks: with 8 blocks of 3 proposers a single
// late proposer does not move the median, and with one arrival each half slot
// nobody can fill the 8 places in a moment.
const (
	cadenceBlocks    = 8
	cadenceProposers = 3
)

// cadence compares the arrival of the network's blocks with the starts of their
// slots. Blocks count before their signature is checked, and also when they are
// refused as early: a clock that is behind sees nothing else. The result is a
// warning and a metric and decides nothing. Guarded by Tree.mu.
type cadence struct {
	local     map[wire.ValidatorIndex]bool // immutable
	proposers int                          // immutable: distinct proposers that it takes
	seen      []arrival                    // the last cadenceBlocks, oldest first
	last      time.Time                    // when the newest of them came
	median    time.Duration                // arrival after slot start; 0 until known
	warn      limiter
}

// arrival is the first block of a slot, of somebody else.
type arrival struct {
	slot     wire.Slot
	proposer wire.ValidatorIndex
	offset   time.Duration // after the start of its slot; negative for early
}

func newCadence(validators int, local []wire.ValidatorIndex) cadence {
	c := cadence{local: make(map[wire.ValidatorIndex]bool, len(local)), warn: limiter{every: warnEvery}}
	for _, v := range local {
		c.local[v] = true
	}
	c.proposers = max(1, min(cadenceProposers, validators-len(c.local)))

	return c
}

// add notes an arrival and reports whether the median is known and new.
func (c *cadence) add(a arrival, now time.Time, apart time.Duration) bool {
	repeated := slices.ContainsFunc(c.seen, func(o arrival) bool { return o.slot == a.slot })
	if c.local[a.proposer] || repeated || len(c.seen) > 0 && now.Sub(c.last) < apart {
		return false
	}
	if len(c.seen) == cadenceBlocks {
		c.seen = append(c.seen[:0], c.seen[1:]...)
	}
	c.seen = append(c.seen, a)
	c.last = now
	proposers := make(map[wire.ValidatorIndex]bool, cadenceBlocks)
	offsets := make([]time.Duration, len(c.seen))
	for i, s := range c.seen {
		proposers[s.proposer] = true
		offsets[i] = s.offset
	}
	if len(c.seen) < cadenceBlocks || len(proposers) < c.proposers {
		return false
	}
	slices.Sort(offsets)
	c.median = offsets[len(offsets)/2]

	return true
}

// ObserveArrival compares the arrival, now, of a block of the slot with the
// clock, and warns when the last blocks agree that the clock is off by more than
// an interval. AdmitBlock calls it; whoever refuses a block as early before that
// should call it too. Any slot may be given.
func (t *Tree) ObserveArrival(slot wire.Slot) {
	now := t.clock.Now()
	a := arrival{slot: slot, proposer: t.proposer(slot), offset: now.Sub(t.clock.SlotStart(slot))}
	t.mu.Lock()
	known := t.cadence.add(a, now, t.clock.slot/2)
	median := t.cadence.median
	warn := known && median.Abs() > t.clock.interval && t.cadence.warn.allow(now)
	t.mu.Unlock()
	switch {
	case !warn:
	case median < 0:
		t.log.Warn("the host clock is behind the network: blocks arrive before their slots start", "median_ms", median.Milliseconds())
	default:
		t.log.Warn("the host clock is ahead of the network, or blocks take more than an interval to get here", "median_ms", median.Milliseconds())
	}
}

// proposer returns whose turn a slot is (leanSpec containers/identifiers.py).
func (t *Tree) proposer(slot wire.Slot) wire.ValidatorIndex {
	return wire.ValidatorIndex(uint64(slot) % uint64(t.cfg.Validators))
}
