package prover

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one client. Every series has the label role.
type metrics struct {
	starts  *prometheus.CounterVec   // reason: why the child is started
	calls   *prometheus.CounterVec   // call, outcome
	wall    *prometheus.HistogramVec // call
	cpu     *prometheus.HistogramVec // call
	ready   prometheus.Gauge
	running prometheus.Gauge
	proof   prometheus.Histogram
	hello   prometheus.Gauge
	setup   prometheus.Gauge
	backoff prometheus.Gauge
	retries prometheus.Counter

	resident prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, role Role) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	reg = prometheus.WrapRegistererWith(prometheus.Labels{"role": role.String()}, reg)
	seconds := []float64{.001, .0025, .005, .01, .015, .02, .03, .05, .08, .12, .2, .35, .5, .75, 1, 1.5, 2, 3, 5, 8, 12, 20, 40}
	m := &metrics{
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_prover_starts_total",
			Help: "Prover children started, by the end of the one before.",
		}, []string{"reason"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggnode_prover_calls_total",
			Help: "Calls to a prover child by outcome.",
		}, []string{"call", "outcome"}),
		wall: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aggnode_prover_call_seconds",
			Help: "Wall time of a call to a prover child, waiting and transfer included.", Buckets: seconds,
		}, []string{"call"}),
		cpu: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aggnode_prover_call_cpu_seconds",
			Help: "CPU time of a call inside the prover child, as it reports.", Buckets: seconds,
		}, []string{"call"}),
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_prover_ready_children",
			Help: "Prover children that have passed hello and serve, the warm spare included.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_prover_calls_running",
			Help: "Calls in progress.",
		}),
		proof: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aggnode_prover_proof_bytes",
			Help: "Length of the proofs made.", Buckets: prometheus.ExponentialBuckets(16<<10, 2, 7),
		}),
		hello: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_prover_hello_prove_seconds",
			Help: "Wall time of the two-signature job proved at the last hello.",
		}),
		setup: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_prover_setup_seconds",
			Help: "Time from start to ready of the last child.",
		}),
		backoff: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_prover_restart_backoff_seconds",
			Help: "Pause before the next start after a child ended; it doubles up to 30 s while no call is answered. 0 once a child is ready.",
		}),
		resident: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_prover_rest_bytes",
			Help: "Resident memory of the prover child right after its last proof.",
		}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_prover_retries_total",
			Help: "Checks asked again of another child because the first died through no fault of theirs.",
		}),
	}
	reg.MustRegister(m.starts, m.calls, m.wall, m.cpu, m.ready, m.running, m.proof, m.hello, m.setup, m.backoff, m.resident, m.retries)
	for _, r := range startReasons {
		m.starts.WithLabelValues(r)
	}
	for _, call := range callNames(role) {
		m.wall.WithLabelValues(call)
		m.cpu.WithLabelValues(call)
		for _, o := range Outcomes() {
			m.calls.WithLabelValues(call, o.String())
		}
	}
	return m
}

// callNames is the closed set of the label "call".
func callNames(role Role) []string {
	if role == RoleProve {
		return []string{"prove"}
	}
	return []string{"verify", "inspect"}
}

// observe records the end of a call.
func (m *metrics) observe(call string, wall, cpu time.Duration, err error) {
	m.calls.WithLabelValues(call, OutcomeOf(err).String()).Inc()
	m.wall.WithLabelValues(call).Observe(wall.Seconds())
	if err == nil {
		m.cpu.WithLabelValues(call).Observe(cpu.Seconds())
	}
}
