package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the servers, in labels, logs and errors.
const (
	serverMetrics = "metrics"
	serverAPI     = "api"
)

// codeClasses are the label values of answers.
var codeClasses = []string{"2xx", "3xx", "4xx", "5xx"}

type metrics struct {
	requests map[string]map[string]prometheus.Counter // by server and class of the status code; never written after newMetrics
	seconds  map[string]prometheus.Observer           // by server
	refused  map[string]prometheus.Counter            // by server
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_http_requests_total",
		Help: "HTTP requests answered, by server and class of the status code.",
	}, []string{"server", "code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "aggnode_http_request_seconds",
		Help:    "Time to answer an HTTP request.",
		Buckets: []float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5},
	}, []string{"server"})
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_http_connections_refused_total",
		Help: "HTTP connections closed at once because too many were open.",
	}, []string{"server"})
	reg.MustRegister(requests, seconds, refused)
	m := &metrics{
		requests: make(map[string]map[string]prometheus.Counter),
		seconds:  make(map[string]prometheus.Observer),
		refused:  make(map[string]prometheus.Counter),
	}
	for _, server := range []string{serverMetrics, serverAPI} {
		m.requests[server] = make(map[string]prometheus.Counter)
		for _, class := range codeClasses {
			m.requests[server][class] = requests.WithLabelValues(server, class)
		}
		m.seconds[server] = seconds.WithLabelValues(server)
		m.refused[server] = refused.WithLabelValues(server)
	}
	return m
}

func (m *metrics) answered(server string, code int, took time.Duration) {
	m.requests[server][codeClasses[min(max(code/100, 2), 5)-2]].Inc()
	m.seconds[server].Observe(took.Seconds())
}
