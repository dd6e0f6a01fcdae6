package chain

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// warnEvery is the least time between two warnings of one kind: an operator sees
// it in any screenful of slot lines, and a condition that lasts does not flood.
const warnEvery = time.Minute

// countdownMarks are the times before genesis at which the countdown is logged.
var countdownMarks = []time.Duration{
	24 * time.Hour, 12 * time.Hour, 6 * time.Hour, time.Hour, 30 * time.Minute, 10 * time.Minute, 5 * time.Minute,
	2 * time.Minute, time.Minute, 30 * time.Second, 10 * time.Second, 5 * time.Second,
}

// MonitorConfig configures a [Monitor]. Nil fields mean: no log, no registry.
type MonitorConfig struct {
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Monitor watches a clock: it logs the countdown to genesis, measures how long
// intervals are and how late the process wakes up for them, and warns when the
// host's clock was set while the node ran. It does no other work, so what it
// measures is the delay that the machine and the Go scheduler add.
type Monitor struct {
	clock   *Clock // immutable
	log     *slog.Logger
	metrics *monitorMetrics

	last     time.Time // owned by run: when the interval before was seen, zero at first
	ordinal  uint64    // owned by run: its number since genesis
	stepWarn limiter   // owned by run
}

// NewMonitor returns a monitor of the clock.
func NewMonitor(cfg MonitorConfig, clock *Clock) (*Monitor, error) {
	m, err := newMonitorMetrics(cfg.Registerer, clock)
	if err != nil {
		return nil, err
	}

	return &Monitor{clock: clock, log: logger(cfg.Logger), metrics: m, stepWarn: limiter{every: warnEvery}}, nil
}

// Run blocks until ctx ends. It never fails.
func (m *Monitor) Run(ctx context.Context) error {
	m.countdown(ctx)
	m.clock.Ticks(ctx, m.observe)

	return nil
}

// countdown logs the time that is left before genesis, at each mark.
func (m *Monitor) countdown(ctx context.Context) {
	left := m.clock.Genesis().Sub(m.clock.Now())
	if left <= 0 {
		return
	}
	m.log.Info("wait for genesis", "genesis", m.clock.Genesis().UTC().Format(time.RFC3339), "left", left.Round(time.Second).String())
	for _, mark := range countdownMarks {
		if mark >= left {
			continue
		}
		if m.clock.WaitUntil(ctx, m.clock.Genesis().Add(-mark)) != nil {
			return
		}
		m.log.Info("wait for genesis", "left", mark.String())
	}
	if m.clock.WaitUntil(ctx, m.clock.Genesis()) == nil {
		m.log.Info("genesis")
	}
}

// observe measures one interval.
func (m *Monitor) observe(slot wire.Slot, interval wire.Interval) {
	now := m.clock.Now()
	ordinal := uint64(slot)*wire.IntervalsPerSlot + uint64(interval)
	m.metrics.lateness.Observe(now.Sub(m.clock.IntervalStart(slot, interval)).Seconds())
	if !m.last.IsZero() {
		m.metrics.intervals.Observe(now.Sub(m.last).Seconds())
		m.metrics.skipped.Add(float64(ordinal - m.ordinal - 1))
	}
	m.last, m.ordinal = now, ordinal

	if step := m.clock.hostStep(); step.Abs() > m.clock.interval && m.stepWarn.allow(now) {
		m.log.Warn("the host clock was set while the node ran; the node keeps its own time, restart it to follow",
			"step", step.Round(time.Millisecond).String())
	}
}

// limiter lets one event pass per duration.
type limiter struct {
	every time.Duration
	last  time.Time
}

// allow reports whether the event may pass now, and notes that it does.
func (l *limiter) allow(now time.Time) bool {
	if !l.last.IsZero() && now.Sub(l.last) < l.every {
		return false
	}
	l.last = now

	return true
}

// logger returns l, or one that drops everything.
func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}

	return l
}
