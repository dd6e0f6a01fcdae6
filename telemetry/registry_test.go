package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestTheRegistryIdentifiesTheNode(t *testing.T) {
	t.Parallel()
	reg, err := NewRegistry(Info{Name: "aggnode_0", Version: "v1", Started: time.UnixMilli(1234500)})
	require.NoError(t, err)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP lean_node_info Constant 1 with the name of the node and the version of its build.
# TYPE lean_node_info gauge
lean_node_info{name="aggnode_0",version="v1"} 1
# HELP lean_node_start_time_seconds Unix time at which the process started.
# TYPE lean_node_start_time_seconds gauge
lean_node_start_time_seconds 1234.5
`), "lean_node_info", "lean_node_start_time_seconds"))
	n, err := testutil.GatherAndCount(reg, "go_goroutines", "process_cpu_seconds_total")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestTheMetricTableIsCompleteAndDeterministic(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aggnode_drops_total", Help: "Drops, \"all\" of them | by reason."}, []string{"reason", "class"})
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "aggnode_wait_seconds", Help: "Wait."})
	empty := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "lean_peers", Help: "Peers."}, []string{"client"})
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other", Help: "Not ours."})
	reg.MustRegister(c, h, empty, other)
	for _, reason := range []string{"stale", "early", "stale"} {
		c.WithLabelValues(reason, "vote").Inc()
	}
	const want = "| metric | type | labels | meaning |\n|---|---|---|---|\n" +
		"| `aggnode_drops_total` | counter | class: vote; reason: early, stale | Drops, \"all\" of them \\| by reason. |\n" +
		"| `aggnode_wait_seconds` | histogram |  | Wait. |\n" +
		"| `lean_peers` | - | client | Peers. |\n"
	for range 3 {
		var b strings.Builder
		require.NoError(t, WriteMetricsDoc(&b, reg))
		require.Equal(t, want, b.String())
	}
}
