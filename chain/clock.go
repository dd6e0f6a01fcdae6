package chain

import (
	"context"
	"fmt"
	"math"
	"time"

	"aggnode/wire"
)

// Clock turns time into slots and intervals. It never goes backward and does not
// follow steps of the host's clock: it reads the wall clock once, when it is
// made, and counts monotonic time from there. Package wire's numbers of slots
// are unbounded, so every method takes any slot. Safe for concurrent use.
type Clock struct {
	// immutable
	genesis  time.Time
	slot     time.Duration
	interval time.Duration
	now      func() time.Time
	base     time.Time        // wall and monotonic reading when the clock was made; zero when now is injected
	wall     func() time.Time // the host's clock; nil when now is injected
	lastSlot wire.Slot        // last slot whose start is a time.Time; later ones start at that time too
}

// NewClock returns the clock of a network. slotDuration is a positive multiple
// of five nanoseconds (the network configuration is checked for whole
// milliseconds); anything else is a fault of the caller and panics. now is nil
// outside tests and tools.
func NewClock(genesis time.Time, slotDuration time.Duration, now func() time.Time) *Clock {
	if slotDuration <= 0 || slotDuration%wire.IntervalsPerSlot != 0 {
		panic(fmt.Sprintf("chain: slot of %v can not be divided into %d intervals", slotDuration, wire.IntervalsPerSlot))
	}
	c := &Clock{
		genesis:  genesis.Round(0),
		slot:     slotDuration,
		interval: slotDuration / wire.IntervalsPerSlot,
		now:      now,
		lastSlot: wire.Slot(math.MaxInt64/int64(slotDuration)) - 1,
	}
	if now == nil {
		c.base = time.Now()
		c.now, c.wall = c.monotonic, time.Now
	}

	return c
}

// monotonic is the wall time of the start plus the monotonic time since.
func (c *Clock) monotonic() time.Time { return c.base.Add(time.Since(c.base)) }

// Now returns the time by this clock.
func (c *Clock) Now() time.Time { return c.now() }

// Genesis returns the start of slot 0.
func (c *Clock) Genesis() time.Time { return c.genesis }

// SlotDuration returns the length of a slot.
func (c *Clock) SlotDuration() time.Duration { return c.slot }

// IntervalDuration returns the length of an interval, a fifth of a slot.
func (c *Clock) IntervalDuration() time.Duration { return c.interval }

// BeforeGenesis reports whether slot 0 has not started.
func (c *Clock) BeforeGenesis() bool { return c.Now().Before(c.genesis) }

// Slot returns the current slot, 0 before genesis.
func (c *Clock) Slot() wire.Slot {
	slot, _ := c.At()

	return slot
}

// At returns the current slot and interval, both 0 before genesis.
func (c *Clock) At() (wire.Slot, wire.Interval) { return split(c.intervals(c.Now())) }

// SlotStart returns when a slot starts. Slots more than 292 years after genesis
// all start at the end of that time.
func (c *Clock) SlotStart(s wire.Slot) time.Time {
	return c.genesis.Add(time.Duration(min(s, c.lastSlot)) * c.slot)
}

// IntervalStart returns when an interval of a slot starts. The interval may be 5
// or more, which is in a later slot.
func (c *Clock) IntervalStart(s wire.Slot, i wire.Interval) time.Time {
	return c.SlotStart(s).Add(time.Duration(i) * c.interval)
}

// WaitUntil returns nil at time t, or earlier with the error of ctx. A time that
// has passed returns at once.
func (c *Clock) WaitUntil(ctx context.Context, t time.Time) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := t.Sub(c.Now())
		if d <= 0 {
			return nil
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C: // look at the clock again: an injected one may run slower
		case <-ctx.Done():
			timer.Stop()

			return ctx.Err()
		}
	}
}

// Ticks calls f at the start of each interval from the next one on, on the
// caller's goroutine, until ctx ends. Each interval is given at most once and in
// order. When f or the machine is slow, the intervals that passed meanwhile are
// left out, and only the one that time is in is given, late.
func (c *Clock) Ticks(ctx context.Context, f func(wire.Slot, wire.Interval)) {
	next := uint64(0)
	if now := c.Now(); now.After(c.genesis) {
		next = c.intervals(now.Add(-1)) + 1 // a boundary that is right now is still ahead
	}
	for {
		slot, interval := split(next)
		if c.WaitUntil(ctx, c.IntervalStart(slot, interval)) != nil {
			return
		}
		next = max(next, c.intervals(c.Now()))
		f(split(next))
		next++
	}
}

// hostStep is how far the host's clock is ahead of this one: what it was set
// forward since this one was made. It is 0 for an injected clock.
func (c *Clock) hostStep() time.Duration {
	if c.wall == nil {
		return 0
	}

	return c.wall().Round(0).Sub(c.Now().Round(0))
}

// intervals returns the number of whole intervals from genesis to t, 0 before
// genesis (leanSpec slot_clock.py, total_intervals).
func (c *Clock) intervals(t time.Time) uint64 {
	d := t.Sub(c.genesis)
	if d < 0 {
		return 0
	}

	return uint64(d / c.interval)
}

// split takes a number of intervals since genesis apart.
func split(intervals uint64) (wire.Slot, wire.Interval) {
	return wire.Slot(intervals / wire.IntervalsPerSlot), wire.Interval(intervals % wire.IntervalsPerSlot)
}
