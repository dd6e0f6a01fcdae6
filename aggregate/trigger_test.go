package aggregate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// watchTimes are those of slot 1 in slots of 4 s with genesis at the Unix epoch.
func watchTimes() times {
	return timesOf(&testClock{genesis: time.Unix(0, 0), slot: 4 * time.Second}, wire.Slot(1))
}

func TestWatch(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(4, 0).Add(time.Duration(ms) * time.Millisecond) }
	ms := time.Millisecond
	for _, c := range []struct {
		name    string
		votes   int // of 9 expected
		reached int
		lastAt  int // ms into the slot
		cost    time.Duration
		planned bool // on everything but the newest vote
		merges  uint64
		nowMS   int
		want    trigger
		wake    int // ms into the slot, when want is triggerNone
	}{
		{name: "nothing yet", nowMS: 900, wake: 1600},
		{name: "less than two thirds", votes: 5, lastAt: 900, nowMS: 1500, wake: 1600},
		{name: "two thirds, but just now", votes: 6, lastAt: 900, nowMS: 920, wake: 950},
		{name: "two thirds and quiet", votes: 6, lastAt: 900, nowMS: 950, want: triggerQuiet},
		{name: "all votes", votes: 9, lastAt: 900, nowMS: 900, want: triggerComplete},
		{name: "all votes, some in an aggregate", votes: 3, reached: 9, lastAt: 900, nowMS: 900, want: triggerComplete},
		{name: "two thirds in aggregates do not hurry", votes: 3, reached: 8, lastAt: 900, nowMS: 1000, wake: 1600},
		{name: "interval 2", nowMS: 1600, want: triggerBoundary},
		{name: "interval 2, late", votes: 2, lastAt: 900, nowMS: 1777, want: triggerBoundary},
		{name: "waiting would miss the end of interval 3", votes: 6, lastAt: 900, cost: 2240 * ms, nowMS: 910, want: triggerLatest},
		{name: "waiting would miss it soon", votes: 6, lastAt: 900, cost: 2220 * ms, nowMS: 910, wake: 930},
		{name: "it is missed already", votes: 6, lastAt: 900, cost: 3000 * ms, nowMS: 910, wake: 950},
		{name: "one more vote after the plan", votes: 7, lastAt: 2000, planned: true, nowMS: 2010, wake: 2050},
		{name: "and quiet", votes: 7, lastAt: 2000, planned: true, nowMS: 2050, want: triggerQuiet},
		{name: "an aggregate after the plan", votes: 7, lastAt: 2000, planned: true, merges: 1, nowMS: 2010, want: triggerChild},
		{name: "interval 4", planned: true, nowMS: 3200, want: triggerPause},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := watch{times: watchTimes(), expected: 9}
			w.consume(at(0), view{})
			if c.planned {
				w.consume(at(1700), view{slot: Progress{Votes: c.votes}})
			}
			cost := max(c.cost, 600*ms)
			v := view{
				slot: Progress{Votes: c.votes, Reached: max(c.votes, c.reached), Version: uint64(c.votes + c.reached), Merges: c.merges},
				pool: uint64(c.votes + c.reached), lastAdded: at(c.lastAt), cost: cost, leastCost: min(cost, 2230*ms),
			}
			if c.cost > 2900*ms {
				v.leastCost = c.cost
			}
			got, wake := w.next(at(c.nowMS), v)
			require.Equal(t, c.want.String(), got.String())
			if got == triggerNone {
				require.Equal(t, at(c.wake), wake)
			}
			w.consume(at(c.nowMS), v)
			if got, _ = w.next(at(c.nowMS), v); c.want != triggerNone {
				require.Equal(t, triggerNone.String(), got.String(), "a trigger is given once")
			}
		})
	}
}

func TestWatchInThePause(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(4, 0).Add(time.Duration(ms) * time.Millisecond) }
	w := watch{times: watchTimes(), expected: 9}
	v := view{pool: 5, lastAdded: at(-100)}
	got, _ := w.next(at(0), v)
	require.Equal(t, triggerPause, got, "the slot begins: a look at what is left over")
	w.consume(at(0), v)
	require.False(t, w.planned, "which was no plan of the slot's own")
	got, wake := w.next(at(10), v)
	require.Equal(t, triggerNone, got)
	require.Equal(t, at(1600), wake)
	v.pool, v.lastAdded = 6, at(20)
	got, wake = w.next(at(30), v)
	require.Equal(t, triggerNone, got)
	require.Equal(t, at(70), wake)
	got, _ = w.next(at(70), v)
	require.Equal(t, triggerQuiet, got, "a vote of the slot before")
	w.consume(at(70), v)
	v.pool = 7
	got, _ = w.next(at(1000), v)
	require.Equal(t, triggerNone, got, "old votes do not matter while the slot's own are waited for")
}

func TestTriggersDuringAJobAreRememberedOnce(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(4, 0).Add(time.Duration(ms) * time.Millisecond) }
	w := watch{times: watchTimes(), expected: 4}
	w.consume(at(0), view{})
	v := view{slot: Progress{Votes: 4, Reached: 4, Version: 4}, pool: 4, lastAdded: at(900)}
	v.slot.LastAdded = at(899)
	held, due, wake := w.hold(at(900), v)
	require.Equal(t, triggerComplete, held)
	require.Equal(t, at(899), due, "when the last vote was verified")
	require.Equal(t, at(1600), wake)
	held, _, _ = w.hold(at(901), v)
	require.Equal(t, triggerNone, held, "nothing new")
	v.slot.Version, v.slot.Merges = 5, 1
	held, _, _ = w.hold(at(1000), v)
	require.Equal(t, triggerChild, held)
	held, due, _ = w.hold(at(1610), v)
	require.Equal(t, triggerBoundary, held)
	require.Equal(t, at(1600), due)
	got, due := w.next(at(1700), v)
	require.Equal(t, triggerFollowUp, got)
	require.Equal(t, at(899), due, "since the first of them")
	w.consume(at(1700), v)
	got, _ = w.next(at(1701), v)
	require.Equal(t, triggerNone, got, "one follow-up for three")
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	for expected, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 5: 4, 6: 4, 128: 86, 4096: 2731} {
		w := watch{expected: expected}
		require.Equal(t, want, w.quorum(), expected)
	}
	w := watch{times: watchTimes()}
	require.False(t, w.mayPlanOwn(time.Unix(5, 0), Progress{}), "no subnet of ours: only interval 2 starts anything")
}
