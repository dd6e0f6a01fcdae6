package aggregate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func testParcel(id uint64, slot wire.Slot, name string, members ...wire.ValidatorIndex) *parcel {
	p := &plan{group: Group{Data: dataOf(slot, name), Root: rootOf(dataOf(slot, name))}, members: new(set), width: len(members)}
	for _, v := range members {
		p.members.add(v)
	}
	return &parcel{job: &job{id: id, plan: p}}
}

func TestOutboxGivesTheMostValuableFirst(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	for _, p := range []*parcel{
		testParcel(1, 4, "a", 1, 2, 3),
		testParcel(2, 5, "a", 1, 2),
		testParcel(3, 5, "b", 3, 4, 5),
		testParcel(4, 5, "c", 6, 7, 8),
	} {
		superseded, over := o.put(p)
		require.Empty(t, superseded)
		require.Empty(t, over)
	}
	held := testParcel(5, 6, "a", 1, 2)
	held.notBefore = planTime.Add(time.Second)
	o.put(held)
	var got []uint64
	for {
		p, next := o.take(planTime)
		if p == nil {
			require.Equal(t, held.notBefore, next)
			break
		}
		got = append(got, p.job.id)
	}
	require.Equal(t, []uint64{3, 4, 2, 1}, got)
	p, _ := o.take(held.notBefore)
	require.Equal(t, held, p)
	p, next := o.take(held.notBefore)
	require.Nil(t, p)
	require.True(t, next.IsZero())
}

func TestOutboxDropsWhatAWiderOneCovers(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	narrow, other := testParcel(1, 5, "a", 1, 2), testParcel(2, 5, "b", 1)
	o.put(narrow)
	o.put(other)
	superseded, _ := o.put(testParcel(3, 5, "a", 1, 2, 3))
	require.Equal(t, []*parcel{narrow}, superseded)
	require.Equal(t, 2, o.len())
	require.Len(t, o.empty(), 2)
	require.Zero(t, o.len())
}

func TestFullOutboxDropsTheLeastValuable(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	for i := range outboxSize {
		_, over := o.put(testParcel(uint64(i), wire.Slot(10+i), "a", 1, 2))
		require.Empty(t, over)
	}
	_, over := o.put(testParcel(100, 50, "a", 1, 2))
	require.Len(t, over, 1)
	require.Equal(t, wire.Slot(10), over[0].job.slot())
	late := testParcel(101, 1, "a", 1, 2)
	_, over = o.put(late)
	require.Equal(t, []*parcel{late}, over)
	require.Equal(t, outboxSize, o.len())
}
