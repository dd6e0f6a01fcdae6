package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

const (
	// defaultPage and maxPage bound the aggregates of one answer, maxPageIndices their participants together: writing the
	// largest page takes less than 1 ms.
	defaultPage    = 32
	maxPage        = 256
	maxPageIndices = 16384
)

func (s *Server) apiHandler() http.Handler {
	mux := http.NewServeMux()
	s.healthPaths(mux)
	mux.HandleFunc("GET /aggnode/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		status := s.sources.Status.Status()
		status.fill()
		writeJSON(w, http.StatusOK, status)
	})
	mux.HandleFunc("GET /aggnode/v1/aggregates", s.aggregates)
	mux.HandleFunc("GET /aggnode/v1/aggregates/{seq}/proof", s.proof)
	mux.Handle("GET /aggnode/v1/budget", s.withTokenOrHere(s.budget))
	mux.Handle("PATCH /aggnode/v1/budget", s.withToken(s.changeBudget))
	mux.HandleFunc("GET /lean/v0/admin/aggregator", s.aggregator)
	mux.Handle("POST /lean/v0/admin/aggregator", sameMachine(s.setAggregator))
	mux.HandleFunc("GET /aggnode/v1/admin/log_level", s.logLevel)
	mux.Handle("POST /aggnode/v1/admin/log_level", sameMachine(s.setLogLevel))
	return mux
}

// aggregates answers ?since=N&limit=M: the aggregates numbered N and up, oldest first. Without since, the latest ones.
// A reader goes on with since = next; lost counts those that fell out of the log before it came.
func (s *Server) aggregates(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, ok := number(w, q, "limit", defaultPage)
	if !ok {
		return
	}
	if limit < 1 || limit > maxPage {
		writeError(w, http.StatusBadRequest, "limit: want 1 to "+strconv.Itoa(maxPage))
		return
	}
	since, ok := number(w, q, "since", s.sources.Aggregates.latest(int(limit)))
	if !ok {
		return
	}
	p := s.sources.Aggregates.since(since, int(limit), maxPageIndices)
	writeBody(w, http.StatusOK, p.appendJSON(nil))
}

// proof answers with the raw bytes of a proof, as `aggnode verify --proof` reads them.
func (s *Server) proof(w http.ResponseWriter, r *http.Request) {
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil {
		writeError(w, http.StatusBadRequest, "seq: want a number")
		return
	}
	proof := s.sources.Aggregates.proof(seq)
	if proof == nil {
		writeError(w, http.StatusNotFound, "no such aggregate, or its proof was let go")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(proof)))
	_, _ = w.Write(proof) // a client that went away is no fault of ours
}

// number reads an unsigned query parameter; after false the answer is written.
func number(w http.ResponseWriter, q url.Values, name string, missing uint64) (uint64, bool) {
	if !q.Has(name) {
		return missing, true
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 64)
	if err != nil {
		writeError(w, http.StatusBadRequest, name+": want a number")
		return 0, false
	}
	return n, true
}

// aggregatorRole is the body that the lean clients share; previous is there after a change only.
type aggregatorRole struct {
	IsAggregator bool  `json:"is_aggregator"`
	Previous     *bool `json:"previous,omitempty"`
}

func (s *Server) aggregator(w http.ResponseWriter, _ *http.Request) {
	if s.sources.Role == nil {
		writeError(w, http.StatusServiceUnavailable, "this node has no aggregator role")
		return
	}
	writeJSON(w, http.StatusOK, aggregatorRole{IsAggregator: s.sources.Role.IsAggregator()})
}

func (s *Server) setAggregator(w http.ResponseWriter, r *http.Request) {
	if s.sources.Role == nil {
		writeError(w, http.StatusServiceUnavailable, "this node has no aggregator role")
		return
	}
	var body struct {
		Enabled *bool `json:"enabled"`
	}
	if !readJSON(r, &body) || body.Enabled == nil {
		writeError(w, http.StatusBadRequest, `want {"enabled": true} or {"enabled": false}`)
		return
	}
	previous, err := s.sources.Role.SetAggregator(*body.Enabled)
	if err != nil {
		writeError(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	s.logger.Info("aggregator role set by request", "enabled", *body.Enabled, "previous", previous)
	writeJSON(w, http.StatusOK, aggregatorRole{IsAggregator: *body.Enabled, Previous: &previous})
}

// levels is the body of the log level paths. The base level stands under the empty component.
type levels struct {
	Levels map[string]string `json:"levels"`
}

func (s *Server) logLevel(w http.ResponseWriter, _ *http.Request) {
	if s.sources.LogLevels == nil {
		writeError(w, http.StatusServiceUnavailable, "log levels are fixed")
		return
	}
	writeJSON(w, http.StatusOK, levels{s.sources.LogLevels.Levels()})
}

func (s *Server) setLogLevel(w http.ResponseWriter, r *http.Request) {
	if s.sources.LogLevels == nil {
		writeError(w, http.StatusServiceUnavailable, "log levels are fixed")
		return
	}
	var body struct {
		Component string  `json:"component"`
		Level     *string `json:"level"`
	}
	if !readJSON(r, &body) || body.Level == nil {
		writeError(w, http.StatusBadRequest, `want {"level": "debug"}, with "component" for one component only`)
		return
	}
	if err := s.sources.LogLevels.SetLevel(body.Component, *body.Level); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, levels{s.sources.LogLevels.Levels()})
}

// readJSON reads one object with known fields and nothing after it.
func readJSON(r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into) == nil && !d.More()
}
