package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is one readiness check: a name in snake_case from a closed set, whether it holds, and where it does not, why.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// readiness is the body of /readyz.
type readiness struct {
	Ready   bool    `json:"ready"`
	Failing []Check `json:"failing"`
	Checks  []Check `json:"checks,omitempty"` // all of them, with ?verbose
}

// leanHealth is the body of the health paths that the lean clients share. The first two fields are what they all serve.
type leanHealth struct {
	Status  string   `json:"status"` // "healthy" or "unhealthy"
	Service string   `json:"service"`
	Failing []string `json:"failing,omitempty"` // "name: detail"
}

// scrapes bounds concurrent scrapes: each gathers some hundred series.
const scrapes = 2

func (s *Server) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.sources.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapes,
		Timeout:             readTimeout,
		EnableOpenMetrics:   true,
	}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", s.readyz)
	s.healthPaths(mux)
	return mux
}

// healthPaths adds the path that the clients serve and the one that the devnet tools probe.
func (s *Server) healthPaths(mux *http.ServeMux) {
	mux.HandleFunc("GET /lean/v0/health", s.leanHealth)
	mux.HandleFunc("GET /v0/health", s.leanHealth)
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	checks := s.sources.Health.Checks()
	body := readiness{Ready: true, Failing: []Check{}}
	for _, c := range checks {
		if !c.OK {
			body.Ready = false
			body.Failing = append(body.Failing, c)
		}
	}
	if r.URL.Query().Has("verbose") {
		body.Checks = checks
	}
	writeJSON(w, healthCode(body.Ready), body)
}

func (s *Server) leanHealth(w http.ResponseWriter, _ *http.Request) {
	body := leanHealth{Status: "healthy", Service: "lean-rpc-api"}
	for _, c := range s.sources.Health.Checks() {
		if !c.OK {
			body.Status = "unhealthy"
			text := c.Name
			if c.Detail != "" {
				text += ": " + c.Detail
			}
			body.Failing = append(body.Failing, text)
		}
	}
	writeJSON(w, healthCode(body.Status == "healthy"), body)
}

func healthCode(ok bool) int {
	if ok {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}
