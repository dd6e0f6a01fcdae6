package api

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"
)

// guard counts requests, bounds their bodies and keeps a handler's panic from more than its own request.
func (s *Server) guard(server string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if cause := recover(); cause != nil {
				if cause == http.ErrAbortHandler { //nolint:errorlint // the value itself is thrown
					panic(cause)
				}
				s.logger.Error("http handler panicked", "server", server, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
				if rec.code == 0 {
					writeError(rec, http.StatusInternalServerError, "internal error")
				}
			}
			if rec.code == 0 {
				rec.code = http.StatusOK
			}
			s.metrics.answered(server, rec.code, time.Since(start))
		}()
		r.Body = http.MaxBytesReader(rec, r.Body, maxBodyBytes)
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(rec, r)
	})
}

// recorder remembers the status code.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// sameMachine admits requests that come from this machine and are not made by a web page: the peer is a loopback
// address, the Host header names one (a foreign name may have been pointed at it), and a browser does not say that the
// request crosses origins.
func sameMachine(next http.HandlerFunc) http.Handler {
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !peer.Addr().Unmap().IsLoopback() || !isLoopbackHost(r.Host) {
			writeError(w, http.StatusForbidden, "only answered to requests from the same machine")
			return
		}
		next(w, r)
	})
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusForbidden, "not answered to web pages")
	}))
	return origin.Handler(local)
}

func isLoopbackHost(hostPort string) bool {
	host := hostPort
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// writeJSON answers with v. The types of this package always encode.
func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	writeBody(w, code, append(b, '\n'))
}

func writeError(w http.ResponseWriter, code int, text string) {
	writeJSON(w, code, map[string]string{"error": text})
}

func writeBody(w http.ResponseWriter, code int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(b) // a client that is gone does not matter
}
