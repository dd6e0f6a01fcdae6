package chain

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// treeMetrics are the metrics of a Tree. Gauges are read at scrape.
type treeMetrics struct {
	imported prometheus.Counter
	pruned   prometheus.Counter
	gaps     prometheus.Counter
	parked   *prometheus.CounterVec
}

// parkDrop is why a parked block was given up.
type parkDrop uint8

const (
	parkUnknown parkDrop = iota
	parkFull             // a newer block needed the place
	parkExpired          // its parent did not come in time
	parkInvalid          // its parent came and showed that it is refused
)

// String returns the label.
func (d parkDrop) String() string {
	switch d {
	case parkUnknown:
		return "unknown"
	case parkFull:
		return "full"
	case parkExpired:
		return "expired"
	case parkInvalid:
		return "invalid"
	}

	return "unknown"
}

// newTreeMetrics registers the metrics; a nil registerer keeps them private.
func newTreeMetrics(reg prometheus.Registerer, t *Tree) (*treeMetrics, error) {
	m := &treeMetrics{
		imported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_chain_blocks_imported_total", Help: "Blocks that became part of the block tree.",
		}),
		pruned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_chain_blocks_pruned_total", Help: "Blocks that the windows of the block tree left behind.",
		}),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_chain_gaps_total", Help: "Times the chain was followed over blocks that were not seen.",
		}),
		parked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_chain_parked_dropped_total", Help: "Parked blocks that were given up, by reason.",
		}, []string{"reason"}),
	}
	for _, d := range []parkDrop{parkFull, parkExpired, parkInvalid} {
		m.parked.WithLabelValues(d.String())
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}

	return m, register(reg, m.imported, m.pruned, m.gaps, m.parked, &syncCollector{tree: t},
		gauge("lean_head_slot", "Slot of the head of this node's block tree.", func() float64 { return float64(t.Head().Slot) }),
		gauge("aggnode_chain_blocks", "Blocks in the block tree.", t.countBlocks),
		gauge("aggnode_chain_parked_blocks", "Blocks that wait for their parent.", t.countParked),
		gauge("aggnode_chain_block_offset_seconds", "Median arrival of the last blocks after the start of their slots; 0 until known.", t.blockOffset))
}

// dropParked counts parked blocks that were given up.
func (m *treeMetrics) dropParked(d parkDrop, n int) {
	m.parked.WithLabelValues(d.String()).Add(float64(n))
}

func (t *Tree) countBlocks() float64 {
	t.mu.RLock()
	defer t.mu.RUnlock()

	return float64(len(t.blocks))
}

func (t *Tree) countParked() float64 {
	t.mu.RLock()
	defer t.mu.RUnlock()

	return float64(len(t.parked.blocks))
}

func (t *Tree) blockOffset() float64 {
	t.mu.RLock()
	defer t.mu.RUnlock()

	return t.cadence.median.Seconds()
}

// syncCollector exports lean_node_sync_status: one series for each state, one of
// them 1.
type syncCollector struct{ tree *Tree }

var syncDesc = prometheus.NewDesc("lean_node_sync_status", "State of following the chain, one-hot.", []string{"status"}, nil)

// Describe implements prometheus.Collector.
func (*syncCollector) Describe(ch chan<- *prometheus.Desc) { ch <- syncDesc }

// Collect implements prometheus.Collector.
func (c *syncCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.tree.SyncStatus()
	for _, s := range []SyncStatus{SyncIdle, SyncSyncing, SyncSynced} {
		v := 0.0
		if s == now {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(syncDesc, prometheus.GaugeValue, v, s.String())
	}
}

// monitorMetrics are the metrics of a Monitor.
type monitorMetrics struct {
	intervals prometheus.Histogram
	lateness  prometheus.Histogram
	skipped   prometheus.Counter
}

// newMonitorMetrics registers the metrics; a nil registerer keeps them private.
func newMonitorMetrics(reg prometheus.Registerer, c *Clock) (*monitorMetrics, error) {
	m := &monitorMetrics{
		intervals: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lean_tick_interval_duration_seconds", Help: "Measured length of an interval.",
			Buckets: []float64{0.4, 0.6, 0.75, 0.8, 0.805, 0.81, 0.815, 0.82, 0.825, 0.85, 0.9, 1.0, 1.2, 1.6},
		}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aggnode_clock_lateness_seconds", Help: "How long after the start of an interval the process woke up for it.",
			Buckets: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5},
		}),
		skipped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_clock_intervals_skipped_total", Help: "Intervals that passed before the process woke up for them.",
		}),
	}

	return m, register(reg, m.intervals, m.lateness, m.skipped,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "lean_current_slot", Help: "Slot of the clock, at scrape."},
			func() float64 { return float64(c.Slot()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "aggnode_clock_host_step_seconds", Help: "How far the host's clock was set forward since the node started.",
		}, func() float64 { return c.hostStep().Seconds() }))
}

// register registers the collectors; a nil registerer is a private registry.
func register(reg prometheus.Registerer, collectors ...prometheus.Collector) error {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register metrics of the chain: %w", err)
		}
	}

	return nil
}
