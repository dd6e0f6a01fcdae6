package telemetry

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Info identifies a node in the metrics.
type Info struct {
	Name    string    // name of the node in the network folder, label of lean_node_info
	Version string    // build version
	Started time.Time // zero means now
}

// NewRegistry makes the metric registry of a node: the collectors of the Go runtime and of the process, and the two
// metrics by which the shared dashboards find a node (leanMetrics: lean_node_info, lean_node_start_time_seconds).
func NewRegistry(info Info) (*prometheus.Registry, error) {
	started := info.Started
	if started.IsZero() {
		started = time.Now()
	}
	node := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "lean_node_info",
		Help: "Constant 1 with the name of the node and the version of its build.",
	}, []string{"name", "version"})
	node.WithLabelValues(info.Name, info.Version).Set(1)
	start := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "lean_node_start_time_seconds",
		Help: "Unix time at which the process started.",
	})
	start.Set(float64(started.UnixMilli()) / 1e3)
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		node, start,
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register process metrics: %w", err)
		}
	}
	return reg, nil
}
