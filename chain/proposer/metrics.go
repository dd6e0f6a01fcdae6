package proposer

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a Proposer.
type metrics struct {
	outcomes *prometheus.CounterVec
	delay    prometheus.Histogram
}

// newMetrics registers the metrics; a nil registerer keeps them private.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_block_duties_total", Help: "Block duties of local validators, by how they ended.",
		}, []string{"outcome"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aggnode_block_publish_delay_seconds", Help: "Publication of own blocks after the start of their slots.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.4},
		}),
	}
	for _, o := range Outcomes() {
		m.outcomes.WithLabelValues(o.String())
	}
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	for _, c := range []prometheus.Collector{m.outcomes, m.delay} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of the proposer: %w", err)
		}
	}

	return m, nil
}
