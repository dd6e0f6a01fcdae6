package aggregate

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCostModelStartsFromHello(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(570 * time.Millisecond)
	// The figures of lean-pq 0.7.0 on two quiet cores, which the shape was taken from.
	for _, c := range []struct {
		raw, children int
		measured      time.Duration
		within        float64
	}{
		{2, 0, 570 * time.Millisecond, 0.01},
		{8, 0, 590 * time.Millisecond, 0.15},
		{64, 0, 1430 * time.Millisecond, 0.05},
		{0, 1, 1660 * time.Millisecond, 0.15},
		{0, 2, 2930 * time.Millisecond, 0.15},
	} {
		got := m.predict(c.raw, c.children)
		require.InEpsilon(t, c.measured.Seconds(), got.Seconds(), c.within, "%d raw, %d children", c.raw, c.children)
	}
}

func TestCostModelFollowsWhatItSees(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(600 * time.Millisecond)
	// A prover of another shape: 1 s fixed and 50 ms for each raw signature.
	cost := func(raw int) time.Duration { return time.Second + time.Duration(raw)*50*time.Millisecond }
	for i := range 60 {
		raw := 2 + 7*i%60
		m.observe(raw, 0, cost(raw), false)
	}
	for _, raw := range []int{2, 20, 60} {
		require.InEpsilon(t, cost(raw).Seconds(), m.predict(raw, 0).Seconds(), 0.03, "%d raw", raw)
	}
	leafOnly := m.predict(8, 0)
	for range 8 {
		m.observe(8, 1, leafOnly+4*time.Second, false)
	}
	require.InDelta(t, 4, (m.predict(8, 1) - m.predict(8, 0)).Seconds(), 0.05, "a child has a figure of its own")
	require.Equal(t, leafOnly, m.predict(8, 0), "which says nothing about leaf jobs")
}

func TestCostModelGoesBackToHello(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(600 * time.Millisecond)
	want := m.predict(8, 0)
	for range 4 {
		m.observe(8, 0, 8*want, false)
	}
	spoilt := m.predict(8, 0)
	m.decay()
	require.InEpsilon(t, float64(spoilt-want)*0.9, float64(m.predict(8, 0)-want), 0.001, "a tenth of the way in a slot")
	for range 100 {
		m.decay()
	}
	require.InEpsilon(t, want.Seconds(), m.predict(8, 0).Seconds(), 0.001)
}

func TestKilledJobsOnlyRaiseTheEstimate(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(600 * time.Millisecond)
	want := m.predict(8, 0)
	m.observe(8, 0, want/2, true)
	require.Equal(t, want, m.predict(8, 0), "killed early says nothing")
	m.observe(8, 0, time.Hour, true)
	require.InEpsilon(t, 1.5*want.Seconds(), m.predict(8, 0).Seconds(), 0.001, "a wedged prover says little")
}

func TestANewProverKeepsWhatWasLearnt(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(600 * time.Millisecond)
	m.seed(300 * time.Millisecond)
	require.Equal(t, 300*time.Millisecond, m.predict(2, 0), "nothing was learnt yet")
	for range 20 {
		m.observe(2, 0, 2*time.Second, true)
	}
	m.seed(400 * time.Millisecond)
	require.InEpsilon(t, 2, m.predict(2, 0).Seconds(), 0.01, "restarted after being killed: it is still slow")
	m.seed(0)
	require.InEpsilon(t, 0.8, m.predict(2, 0).Seconds(), 0.05, "as far as the bounds of the factors reach")
}

func TestCostModelIsBounded(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(600 * time.Millisecond)
	for _, wall := range []time.Duration{math.MaxInt64, math.MaxInt64, 0, -time.Hour, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1} {
		m.observe(2, 0, wall, false)
		m.observe(2, 2, wall, false)
		for _, n := range []int{0, 1, 4096} {
			require.GreaterOrEqual(t, m.predict(n, 16), time.Millisecond)
			require.Less(t, m.predict(n, 16), time.Hour)
		}
	}
}

func TestRawWithin(t *testing.T) {
	t.Parallel()
	m := newCostModel()
	m.seed(600 * time.Millisecond)
	require.Equal(t, -1, m.rawWithin(500*time.Millisecond, 0, 100), "not even an empty job")
	require.Equal(t, 100, m.rawWithin(time.Minute, 0, 100))
	require.Equal(t, 2, m.rawWithin(600*time.Millisecond, 0, 100))
	for d := 550 * time.Millisecond; d < 4*time.Second; d += 37 * time.Millisecond {
		for children := range 2 {
			n := m.rawWithin(d, children, 100)
			require.True(t, n < 0 || m.predict(n, children) <= d)
			require.True(t, n == 100 || m.predict(n+1, children) > d)
		}
	}
}
