package devnet

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantilesOfAHistogram(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		h    histogram
		q    float64
		want float64
	}{
		{"nothing counted", histogram{1: 0, inf: 0}, 0.5, 0},
		{"no buckets", histogram{}, 0.5, 0},
		{"all in the first bucket", histogram{0.01: 4, 0.02: 4, inf: 4}, 0.5, 0.005},
		{"half way into the second", histogram{0.01: 2, 0.02: 4, inf: 4}, 0.75, 0.015},
		{"on a border", histogram{0.01: 2, 0.02: 4, inf: 4}, 0.5, 0.01},
		{"above all bounds", histogram{0.01: 0, 0.02: 1, inf: 4}, 0.9, 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.InDelta(t, c.want, c.h.quantile(c.q), 1e-9)
		})
	}
}

func TestSupplyCountsFromTheFirstMeasuredSlot(t *testing.T) {
	t.Parallel()
	read := func(busy, useful float64, counts ...float64) supply {
		s := supply{busy: busy, useful: useful, toProver: histogram{}, toWire: histogram{}}
		for i, le := range []string{"0.01", "0.02", "+Inf"} {
			s.toProver.add(`{le="`+le+`"}`, counts[i])
			s.toWire.add(`{le="`+le+`"}`, counts[i])
		}
		return s
	}
	var sum Summary
	read(19, 30, 5, 9, 9).addTo(&sum, read(10, 20, 5, 5, 5))
	require.InDelta(t, 0.9, sum.ProverBusyRatio, 1e-9)
	require.InDelta(t, 15, sum.QuorumToProverMSp50, 1e-9)
	require.InDelta(t, 15, sum.ProofToWireMSp50, 1e-9)

	sum = Summary{}
	read(10, 20, 5, 5, 5).addTo(&sum, read(10, 20, 5, 5, 5))
	require.Zero(t, sum, "nothing was proved")
}
