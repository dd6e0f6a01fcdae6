package chain

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// logTo returns a logger that writes without times.
func logTo(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}

		return a
	}}))
}

func histogram(t *testing.T, h prometheus.Histogram) *dto.Histogram {
	t.Helper()
	var m dto.Metric
	require.NoError(t, h.Write(&m))

	return m.GetHistogram()
}

func TestMonitorCountsDownAndMeasuresIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		reg := prometheus.NewRegistry()
		clock := NewClock(time.Now().Add(90*time.Second), testSlot, nil)
		m, err := NewMonitor(MonitorConfig{Logger: logTo(&log), Registerer: reg}, clock)
		require.NoError(t, err)
		ctx, cancel := context.WithDeadline(t.Context(), clock.SlotStart(3).Add(time.Millisecond))
		defer cancel()
		require.NoError(t, m.Run(ctx))

		for _, line := range []string{"left=1m30s", "left=1m0s", "left=30s", "left=10s", "left=5s", "msg=genesis"} {
			require.Contains(t, log.String(), line)
		}
		require.Len(t, strings.Split(strings.TrimSpace(log.String()), "\n"), 6)
		intervals, lateness := histogram(t, m.metrics.intervals), histogram(t, m.metrics.lateness)
		require.EqualValues(t, 15, intervals.GetSampleCount())
		require.InDelta(t, 12.0, intervals.GetSampleSum(), 1e-6)
		require.EqualValues(t, 16, lateness.GetSampleCount())
		require.Zero(t, lateness.GetSampleSum())
		require.Zero(t, testutil.ToFloat64(m.metrics.skipped))

		families, err := reg.Gather()
		require.NoError(t, err)
		require.Len(t, families, 5)
		_, err = NewMonitor(MonitorConfig{Registerer: reg}, clock)
		require.Error(t, err, "one monitor a registry")
	})
}

func TestMonitorCountsSkippedIntervals(t *testing.T) {
	t.Parallel()
	m, err := NewMonitor(MonitorConfig{}, NewClock(testGenesis, testSlot, testNow))
	require.NoError(t, err)
	m.observe(0, 1)
	m.observe(0, 2)
	m.observe(2, 0)
	require.InDelta(t, 7, testutil.ToFloat64(m.metrics.skipped), 0)
}

func TestMonitorStopsDuringTheCountdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := NewMonitor(MonitorConfig{}, NewClock(time.Now().Add(time.Hour), testSlot, nil))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, m.Run(ctx))
	})
}

func TestMonitorWarnsOnceAMinuteOfASetHostClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		clock := NewClock(time.Now(), testSlot, nil)
		clock.wall = func() time.Time { return time.Now().Add(3 * time.Second) }
		m, err := NewMonitor(MonitorConfig{Logger: logTo(&log)}, clock)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		require.NoError(t, m.Run(ctx))
		require.Equal(t, 2, strings.Count(log.String(), "the host clock was set"))
		require.Contains(t, log.String(), "step=3s")
	})
}

func TestClockWarning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		offset time.Duration // arrival after slot start
		blocks int
		change func(*Config)
		every  int // slots between blocks
		want   string
	}{
		{name: "blocks in time", offset: 300 * time.Millisecond, blocks: 40, want: ""},
		{name: "blocks an interval early or late are normal", offset: 800 * time.Millisecond, blocks: 40, want: ""},
		{name: "blocks later than an interval", offset: 801 * time.Millisecond, blocks: 8, want: "ahead of the network"},
		{name: "blocks earlier than an interval", offset: -801 * time.Millisecond, blocks: 8, want: "behind the network"},
		{name: "a clock that is an hour behind", offset: -time.Hour, blocks: 8, want: "behind the network"},
		{name: "a clock that is an hour ahead", offset: time.Hour, blocks: 8, want: "ahead of the network"},
		{name: "too few blocks", offset: time.Hour, blocks: 7, want: ""},
		{name: "one proposer is not enough", offset: time.Hour, blocks: 20, every: 4, want: ""},
		{
			name: "unless there is only one other", offset: time.Hour, blocks: 40, want: "ahead of the network",
			change: func(cfg *Config) { cfg.Local = []wire.ValidatorIndex{0, 1, 2} },
		},
		{
			name: "our own blocks do not count", offset: time.Hour, blocks: 30, want: "",
			change: func(cfg *Config) { cfg.Local = []wire.ValidatorIndex{0, 1, 2, 3} },
		},
	} {
		var log bytes.Buffer
		w := newWorld(t, func(cfg *Config) {
			cfg.Logger = logTo(&log)
			if c.change != nil {
				c.change(cfg)
			}
		})
		for i := range c.blocks {
			slot := wire.Slot(1000 + i*max(1, c.every))
			w.time.set(w.clock.SlotStart(slot).Add(c.offset))
			b, root := w.block(slot, w.genesis, 1)
			w.tree.AdmitBlock(b, root)
			w.tree.AdmitBlock(b, root) // a second peer
		}
		if c.want == "" {
			require.Empty(t, log.String(), c.name)

			continue
		}
		require.Contains(t, log.String(), c.want, c.name)
		require.InDelta(t, c.offset.Seconds(), w.tree.blockOffset(), 1e-9, c.name)
	}
}

func TestClockWarningIsRareAndNeedsTime(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(cfg *Config) { cfg.Logger = logTo(&log) })
	w.time.slot(100)
	for i := range wire.Slot(1000) {
		w.tree.ObserveArrival(1<<64 - 1 - i) // any number at one moment
	}
	require.Empty(t, log.String())
	for i := range wire.Slot(100) { // 400 seconds
		w.time.slot(200 + i)
		w.tree.ObserveArrival(i)
	}
	require.LessOrEqual(t, strings.Count(log.String(), "\n"), 8)
	require.NotEmpty(t, log.String())
}

func TestTreeMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(cfg *Config) { cfg.Registerer = reg })
	b1 := w.insert(1, w.genesis, 1, wire.ReasonNone)
	w.insert(2, b1, 1, wire.ReasonNone)
	w.insert(3, fakeRoot(1), 1, wire.ReasonUnknownParent)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP lean_head_slot Slot of the head of this node's block tree.
# TYPE lean_head_slot gauge
lean_head_slot 2
# HELP lean_node_sync_status State of following the chain, one-hot.
# TYPE lean_node_sync_status gauge
lean_node_sync_status{status="idle"} 0
lean_node_sync_status{status="synced"} 1
lean_node_sync_status{status="syncing"} 0
# HELP aggnode_chain_blocks Blocks in the block tree.
# TYPE aggnode_chain_blocks gauge
aggnode_chain_blocks 3
# HELP aggnode_chain_parked_blocks Blocks that wait for their parent.
# TYPE aggnode_chain_parked_blocks gauge
aggnode_chain_parked_blocks 1
# HELP aggnode_chain_blocks_imported_total Blocks that became part of the block tree.
# TYPE aggnode_chain_blocks_imported_total counter
aggnode_chain_blocks_imported_total 2
`), "lean_head_slot", "lean_node_sync_status", "aggnode_chain_blocks", "aggnode_chain_parked_blocks", "aggnode_chain_blocks_imported_total"))
	_, err := NewTree(w.tree.cfg, w.clock)
	require.Error(t, err, "one tree a registry")
}

func TestEnumsHaveNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"unknown", "idle", "syncing", "synced", "invalid"},
		[]string{SyncUnknown.String(), SyncIdle.String(), SyncSyncing.String(), SyncSynced.String(), SyncStatus(99).String()})
	require.Equal(t, []string{"unknown", "full", "expired", "invalid", "unknown"},
		[]string{parkUnknown.String(), parkFull.String(), parkExpired.String(), parkInvalid.String(), parkDrop(99).String()})
}
