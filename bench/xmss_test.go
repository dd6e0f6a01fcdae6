package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/internal/lanes"
	"aggnode/xmss"
)

// TestXMSSReportsEveryPath is not parallel: it changes the path of the process.
func TestXMSSReportsEveryPath(t *testing.T) {
	before := lanes.Current()
	var progress, table bytes.Buffer
	r, err := XMSS(t.Context(), XMSSConfig{
		Scheme: xmss.Blake2s, Rounds: 1, Search: 20 * time.Millisecond, Progress: &progress, epochs: 2048,
	})
	require.NoError(t, err)
	require.Equal(t, before, lanes.Current())

	paths := lanes.Paths()
	require.Len(t, r.Paths, len(paths))
	for i, p := range r.Paths {
		require.Equal(t, paths[i].String(), p.Path)
		for name, v := range map[string]float64{
			"hash": p.HashNS, "sign": p.SignMS, "trial": p.TrialNS, "verify_1": p.VerifyUS1, "verify_16": p.VerifyUS16,
			"leaf": p.LeafUS, "subtree": p.SubtreeMS, "warm": p.Warm64MS, "all warm": p.AllWarm64U, "speedup": p.SpeedupSign,
		} {
			require.Positive(t, v, "%s of %s", name, p.Path)
		}
		o := p.Occupancy
		for _, share := range []float64{p.LaneOccupancy, o.Sign, o.Verify1, o.Verify16, o.Subtree} {
			require.Greater(t, share, 0.0)
			require.LessOrEqual(t, share, 1.0)
		}
	}
	require.InDelta(t, 1, r.Paths[0].SpeedupLeaf, 1e-9, "portable code against itself")
	require.Equal(t, r.Paths[len(r.Paths)-1], r.XMSSPath, "the top level is the fastest path")
	require.InDelta(t, 1000*r.VerifyUS16/144/r.HashNS, r.VerifyEff, 1e-3)
	require.InDelta(t, 1e6*r.SignMS/(3*29_489)/r.HashNS, r.SignEff, 1e-3)
	require.InDelta(t, 1e6*r.SubtreeMS/(512*347)/r.HashNS, r.SubtreeEff, 1e-3)
	require.InDelta(t, r.Warm64MS/(64*r.SubtreeMS/float64(r.Cores)), r.WarmEff, 1e-3)

	requireKeys(t, r, "cpu_model", "path", "scheme", "hash_ns", "sign_ms", "verify_us_1", "verify_us_16", "leaf_us",
		"subtree512_ms", "warm64_ms", "allwarm64_us", "keygen_s", "lane_occupancy", "speedup_sign", "speedup_verify", "speedup_leaf",
		"verify_eff", "sign_eff", "subtree_eff", "warm_eff", "paths")
	require.NoError(t, r.Print(&table))
	require.Contains(t, table.String(), "blake2s")
	require.Contains(t, progress.String(), "round 1 of 1")
}

// requireKeys holds a report to the names that others read.
func requireKeys(t *testing.T, report any, names ...string) {
	t.Helper()
	text, err := json.Marshal(report)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	for _, name := range names {
		require.Contains(t, fields, name)
	}
}

func TestXMSSRefusesWhatItCanNotMeasure(t *testing.T) {
	t.Parallel()
	_, err := XMSS(t.Context(), XMSSConfig{})
	require.ErrorIs(t, err, xmss.ErrScheme)
	_, err = XMSS(t.Context(), XMSSConfig{Scheme: xmss.Blake2s, Rounds: -1})
	require.ErrorContains(t, err, "round")
	_, err = XMSS(t.Context(), XMSSConfig{Scheme: xmss.Blake2s, Search: time.Microsecond})
	require.ErrorContains(t, err, "search")
}

func TestXMSSEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := XMSS(ctx, XMSSConfig{Scheme: xmss.Blake2s, epochs: 2048})
	require.ErrorIs(t, err, context.Canceled)
}

// TestTrialTimeIgnoresInterruptedSearches weighs searches by their trials, not by their time.
func TestTrialTimeIgnoresInterruptedSearches(t *testing.T) {
	t.Parallel()
	s := pathSamples{trials: 310, searches: []search{
		{trials: 10, took: 80 * time.Microsecond}, // short and slow
		{trials: 100, took: 200 * time.Microsecond},
		{trials: 200, took: 600 * time.Microsecond},
	}}
	require.InDelta(t, 3, s.trialUS(), 1e-9)
	require.Zero(t, new(pathSamples).trialUS())
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{3, 100, 1}, 3},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		require.InDelta(t, c.want, median(c.values), 1e-9)
	}
}
