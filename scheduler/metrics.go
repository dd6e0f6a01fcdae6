package scheduler

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	tier     prometheus.Gauge
	cgroup   *prometheus.GaugeVec // version
	acquires *prometheus.CounterVec
	wait     prometheus.Histogram
	granted  prometheus.Gauge
	held     prometheus.Counter   // seconds
	resident *prometheus.GaugeVec // class
	kills    *prometheus.CounterVec

	cores, weight, slowdown prometheus.Gauge
	delay, pressure         prometheus.Gauge
	realTime                prometheus.Gauge
	realTimeLost            prometheus.Counter
	limits                  *prometheus.GaugeVec   // bound
	used, throttled, paced  prometheus.Counter     // seconds
	decisions               *prometheus.CounterVec // reason
	changes                 *prometheus.CounterVec // cause
	applyErrors             prometheus.Counter
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := &metrics{
		tier: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_budget_tier",
			Help: "Placement tier in force: 0 is an own process at the lowest priority, 1 has reserved cores, 2 is a cgroup v2 leaf.",
		}),
		cgroup: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggnode_budget_cgroup",
			Help: "1 for the version of control groups that the machine has.",
		}, []string{"version"}),
		acquires: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_budget_acquires_total",
			Help: "Requests for the grant to prove by outcome.",
		}, []string{"outcome"}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aggnode_budget_acquire_wait_seconds",
			Help: "Time that a job waited for the grant to prove.", Buckets: []float64{.001, .01, .05, .1, .25, .5, 1, 2, 4, 8},
		}),
		granted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_budget_granted",
			Help: "1 while a job holds the grant to prove.",
		}),
		held:         counter("aggnode_budget_granted_seconds_total", "Time in which a job held the grant to prove, counted at its end."),
		cores:        gauge("aggnode_budget_cores", "Cores that the prover may use, as enforced by the tier."),
		weight:       gauge("aggnode_budget_weight", "CPU weight of the prover's cgroup against 1000 of the node's; 0 below tier 2."),
		slowdown:     gauge("aggnode_budget_slowdown", "Wall time over CPU time of checks in the last window; 1 is none."),
		delay:        gauge("aggnode_budget_run_delay_ratio", "Time that verify workers stood in line for a CPU over the time that they ran, in the last step."),
		pressure:     gauge("aggnode_budget_pressure_percent", "CPU pressure of the node's cgroup: some, average of 10 s; 0 below tier 2."),
		realTime:     gauge("aggnode_budget_real_time", "1 while the node runs at real-time priority, before its prover and everything else; 0 where that is switched off or not allowed, or suspended."),
		realTimeLost: counter("aggnode_budget_real_time_suspended_total", "Times that the node went back to ordinary priority for a while because it took more than half of the CPU time."),
		limits: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggnode_budget_limit_cores",
			Help: "Limits of the operator in cores; 0 is none.",
		}, []string{"bound"}),
		used:      counter("aggnode_budget_used_seconds_total", "CPU time of the prover's cgroup; 0 below tier 2."),
		throttled: counter("aggnode_budget_throttled_seconds_total", "Time in which threads of the prover waited for a new quota; 0 below tier 2."),
		paced:     counter("aggnode_budget_paced_seconds_total", "Time in which background work of the node itself stood back for votes."),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_budget_decisions_total",
			Help: "Steps of the budget controller by what they came to.",
		}, []string{"reason"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_budget_changes_total",
			Help: "Changes of what the prover may have, by who made them: the operator (api, signal, file), the calendar or the controller.",
		}, []string{"cause"}),
		applyErrors: counter("aggnode_budget_apply_errors_total", "Decisions that could not be put in force; tried again at the next step."),
		resident: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggnode_child_resident_bytes",
			Help: "Resident memory of the process trees of backend children at the last look, spares included.",
		}, []string{"class"}),
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_child_memory_exceeded_total",
			Help: "Backend children found above their memory limit.",
		}, []string{"class"}),
	}
	for _, o := range []string{"granted", "cancelled"} {
		m.acquires.WithLabelValues(o)
	}
	for _, v := range []CgroupVersion{CgroupNone, CgroupV1, CgroupHybrid, CgroupV2} {
		m.cgroup.WithLabelValues(v.String())
	}
	for _, c := range causes() {
		m.changes.WithLabelValues(c.String())
	}
	for _, r := range Reasons() {
		m.decisions.WithLabelValues(r.String())
	}
	reg.MustRegister(m.tier, m.cgroup, m.acquires, m.wait, m.granted, m.resident, m.kills,
		m.held, m.cores, m.weight, m.slowdown, m.delay, m.pressure, m.limits, m.used, m.throttled, m.paced, m.decisions,
		m.changes, m.applyErrors, m.realTime, m.realTimeLost)
	return m
}

func releaseOnce(f func()) func() {
	var once sync.Once
	return func() { once.Do(f) }
}

func (m *metrics) showLimits(b Budget) {
	m.limits.WithLabelValues("min").Set(b.CoresMin)
	m.limits.WithLabelValues("max").Set(b.CoresMax)
}
