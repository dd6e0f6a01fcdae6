package bench

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []time.Duration
		q      float64
		want   time.Duration
	}{
		{"of nothing", nil, 0.5, 0},
		{"of one", []time.Duration{ms}, 0.99, ms},
		{"the least", []time.Duration{ms, 2 * ms, 4 * ms}, 0, ms},
		{"the middle one", []time.Duration{ms, 2 * ms, 4 * ms}, 0.5, 2 * ms},
		{"between two", []time.Duration{ms, 2 * ms}, 0.5, 1500 * time.Microsecond},
		{"a quarter of the way", []time.Duration{0, 4 * ms}, 0.25, ms},
		{"the most", []time.Duration{ms, 2 * ms, 4 * ms}, 1, 4 * ms},
	} {
		require.Equal(t, c.want, quantile(c.values, c.q), c.name)
	}
	hundred := make([]time.Duration, 101)
	for i := range hundred {
		hundred[i] = time.Duration(i) * ms
	}
	require.Equal(t, 99*ms, quantile(hundred, 0.99))
	require.Equal(t, 90*ms, quantile(hundred, 0.9))
}

func TestPool(t *testing.T) {
	t.Parallel()
	require.Equal(t, []time.Duration{1, 2, 3, 9}, pool([]time.Duration{9, 2}, nil, []time.Duration{3, 1}))
	require.Empty(t, pool())
}

func TestRatio(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 1.818, ratio(20, 11), 0)
	require.Zero(t, ratio(1, 0), "no figure rather than one that JSON can not hold")
	require.Zero(t, ratio(0, 0))
}

func TestShareOfProofs(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return time.Unix(100, 0).Add(d) }
	spans := []span{{at(0), at(4 * ms)}, {at(4 * ms), at(8 * ms)}, {at(8 * ms), at(12 * ms)}}
	for _, c := range []struct {
		name     string
		from, to time.Duration
		want     float64
	}{
		{"all of them", 0, 12 * ms, 3},
		{"more time than proofs", -5 * ms, 50 * ms, 3},
		{"a half at each end", 2 * ms, 10 * ms, 2},
		{"inside one", 5 * ms, 6 * ms, 0.25},
		{"after the last", 20 * ms, 30 * ms, 0},
		{"no time", 3 * ms, 3 * ms, 0},
	} {
		require.InDelta(t, c.want, share(spans, at(c.from), at(c.to)), 1e-9, c.name)
	}
	require.Zero(t, share([]span{{at(0), at(0)}}, at(0), at(ms)), "a proof that took no time")
}

func TestWhenAMeasurementIsConclusive(t *testing.T) {
	t.Parallel()
	quiet := []time.Duration{15 * ms, 16 * ms, 15 * ms}
	for _, c := range []struct {
		name  string
		idle  []time.Duration
		plain float64
		want  int // doubts
	}{
		{"a quiet machine", quiet, 1.8, 0},
		{"exactly at both limits", []time.Duration{15 * ms, 18 * ms}, 1.3, 0},
		{"rounds that differ", []time.Duration{15 * ms, 19 * ms}, 1.8, 1},
		{"nothing to protect from", quiet, 1.29, 1},
		{"both", []time.Duration{10 * ms, 40 * ms}, 1, 2},
		{"one round", []time.Duration{15 * ms}, 1.8, 0},
		{"no round", nil, 1.8, 1},
		{"a round without checks", []time.Duration{0, 15 * ms}, 1.8, 1},
	} {
		require.Len(t, doubts(c.idle, c.plain, minPlainRatio), c.want, c.name)
	}
}

func TestTheOrderOfKindsIsBalanced(t *testing.T) {
	t.Parallel()
	places, neighbours := map[int]map[Kind]bool{}, map[[2]Kind]bool{}
	const compared = 4 // kinds that are held against each other
	for round := range compared {
		kinds := order(round)
		require.ElementsMatch(t, Kinds(), kinds)
		require.Equal(t, KindOtherWay, kinds[compared])
		kinds = kinds[:compared]
		for i, k := range kinds {
			if places[i] == nil {
				places[i] = map[Kind]bool{}
			}
			places[i][k] = true
			if i > 0 {
				neighbours[[2]Kind{kinds[i-1], k}] = true
			}
		}
	}
	for i, seen := range places {
		require.Len(t, seen, compared, "place %d", i)
	}
	require.Len(t, neighbours, compared*(compared-1))
	require.Equal(t, order(0), order(compared))
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var back Kind
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, k, back)
		require.NotEqual(t, KindUnknown.Long(), k.Long())
	}
	_, err := KindUnknown.MarshalText()
	require.Error(t, err)
	require.Error(t, new(Kind).UnmarshalText([]byte("unknown")))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	stat := "77 (a) b (c)) S 1 77 77 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 5 0 0\n"
	require.Equal(t, 3*time.Second, parseStatCPU([]byte(stat)))
	for _, bad := range []string{"", "77 (a) S 1 2", "77 (a) S 1 77 77 0 -1 4194304 100 0 0 0 x 50 0", "77 (a"} {
		require.Zero(t, parseStatCPU([]byte(bad)), bad)
	}
	require.EqualValues(t, 5<<10, kibibytes([]byte("VmPeak:\t 9 kB\nVmHWM:\t       5 kB\n"), "VmHWM"))
	for _, bad := range []string{"", "VmHWM: many kB\n", "VmHWMX: 5 kB\n"} {
		require.Zero(t, kibibytes([]byte(bad), "VmHWM"), bad)
	}
	require.Positive(t, ownCPU())
	runtime.GC()
	require.Positive(t, collectorCPU())
	require.Zero(t, processCPU(-1))
	require.NotEmpty(t, cpuModel())
}

func TestTicksOfALogarithmicAxis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high float64
		want      []float64
	}{
		{1, 10, []float64{1, 2, 5, 10}},
		{0.13, 4.1, []float64{0.1, 0.2, 0.5, 1, 2, 5}},
		{22, 48, []float64{20, 50}},
		{6, 7, []float64{5, 10}},
		{5, 5, []float64{5, 10}},
		{0.001, 0.1, []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1}},
		{900, 2700, []float64{500, 1000, 2000, 5000}},
	} {
		require.InDeltaSlice(t, c.want, logTicks(c.low, c.high), 1e-9, "%g to %g", c.low, c.high)
	}
}
