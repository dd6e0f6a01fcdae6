package pipeline

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadlinesComeInTheirOrderWhateverIsChanged(t *testing.T) {
	t.Parallel()
	genesis := time.Unix(1_700_000_000, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	d := deadlines{genesis: genesis}
	want := make(map[*Item]time.Time)
	items := make([]*Item, 200)
	for i := range items {
		items[i] = &Item{}
	}
	check := func() {
		require.Equal(t, len(want), d.len())
		d.each(func(it *Item) {
			if _, ok := want[it]; !ok || d.heap[it.heapAt-1].item != it {
				t.Fatal("not in its place")
			}
		})
		var first time.Time
		for _, due := range want {
			if first.IsZero() || due.Before(first) {
				first = due
			}
		}
		if len(want) == 0 {
			require.Nil(t, d.due(genesis.Add(time.Hour)))

			return
		}
		require.True(t, first.Equal(d.next()))
		require.Nil(t, d.due(first.Add(-1)))
		require.True(t, want[d.due(first)].Equal(first))
	}
	for range 5000 {
		it := items[rng.IntN(len(items))]
		if rng.IntN(3) == 0 {
			d.drop(it)
			delete(want, it)
		} else {
			want[it] = genesis.Add(time.Duration(rng.IntN(1000)-100) * time.Millisecond)
			d.set(it, want[it])
		}
		check()
	}
	for last := genesis.Add(-time.Hour); d.len() > 0; {
		it := d.due(genesis.Add(time.Hour))
		require.False(t, want[it].Before(last))
		last = want[it]
		d.drop(it)
		delete(want, it)
		require.Zero(t, it.heapAt)
	}
}

func TestADeadlineBeyondAllTimeIsTheLast(t *testing.T) {
	t.Parallel()
	d := deadlines{genesis: time.Unix(0, 0)}
	var never, soon Item
	d.set(&never, time.Unix(1<<55, 0))
	d.set(&soon, time.Unix(1, 0))
	require.Same(t, &soon, d.due(time.Unix(1, 0)))
	d.drop(&soon)
	require.Nil(t, d.due(time.Unix(1<<31, 0)))
}
