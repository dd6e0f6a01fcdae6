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
	resident *prometheus.GaugeVec // class
	kills    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := &metrics{
		tier: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_budget_tier",
			Help: "Placement tier in force: 0 is an own process at the lowest priority.",
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
		resident: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggnode_child_resident_bytes",
			Help: "Resident memory of the process tree of a backend child at the last look.",
		}, []string{"class"}),
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_child_memory_exceeded_total",
			Help: "Backend children found above their memory limit.",
		}, []string{"class"}),
	}
	for _, o := range []string{"granted", "cancelled"} {
		m.acquires.WithLabelValues(o)
	}
	reg.MustRegister(m.tier, m.cgroup, m.acquires, m.wait, m.granted, m.resident, m.kills)
	return m
}

func releaseOnce(f func()) func() {
	var once sync.Once
	return func() { once.Do(f) }
}
