package node

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// registerMetrics exports what is fixed at assembly (leanMetrics names).
func registerMetrics(reg prometheus.Registerer, committees uint64, subnets []wire.SubnetID) error {
	count := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "lean_attestation_committee_count", Help: "Number of attestation subnets of the network.",
	})
	subnet := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "lean_attestation_committee_subnet", Help: "Subnet that this node is assigned to: the lowest one joined, -1 for none.",
	})
	for _, c := range []prometheus.Collector{count, subnet} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	count.Set(float64(committees))
	subnet.Set(-1)
	if len(subnets) > 0 {
		subnet.Set(float64(subnets[0]))
	}
	return nil
}
