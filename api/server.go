package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	maxConnections    = 128              // per port: monitoring needs a handful
	maxHeaderBytes    = 16 << 10         // bytes of a request's header
	maxBodyBytes      = 4 << 10          // bytes of a request's body
	readHeaderTimeout = 5 * time.Second  // slow clients hold a connection no longer
	readTimeout       = 10 * time.Second // header and body
	writeTimeout      = 30 * time.Second // a large scrape over a slow link
	idleTimeout       = 60 * time.Second // keep-alive
	stopTimeout       = 2 * time.Second  // for requests in progress when the node stops
)

// Config says where to listen. An empty address means that the server is not wanted.
type Config struct {
	MetricsAddr string // host:port of the metrics port
	APIAddr     string // host:port of the API port
	Token       string // that changes of the budget must carry; LoadToken makes it
	MetricsFlag string // flag that an error about MetricsAddr names; default --metrics-port
	APIFlag     string // flag that an error about APIAddr names; default --api-port

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
}

// Sources are what the servers read. Each must be safe for concurrent use and answer within a millisecond.
type Sources struct {
	Metrics    prometheus.Gatherer // required
	Health     health              // required
	Status     statusSource        // required
	Aggregates *AggregateLog       // required
	Role       role                // nil: the aggregator endpoint answers 503
	LogLevels  logLevels           // nil: the log level endpoint answers 503
	Budget     budget              // nil: the budget endpoint answers 503
}

// health tells how the node is.
type health interface {
	// Checks returns the readiness checks in a fixed order.
	Checks() []Check
}

// statusSource describes the node.
type statusSource interface {
	Status() Status
}

// role is the aggregator duty, switchable at run time.
type role interface {
	IsAggregator() bool
	// SetAggregator switches the duty and returns whether it was on. An error says why it can not be on.
	SetAggregator(enabled bool) (previous bool, err error)
}

// logLevels are the levels of the log by component; the empty component is the base level.
type logLevels interface {
	Levels() map[string]string
	SetLevel(component, level string) error
}

// Server serves both ports.
type Server struct {
	logger  *slog.Logger
	token   string
	sources Sources
	metrics *metrics
	servers []*listening // immutable
}

// listening is one bound server.
type listening struct {
	name     string // "metrics" or "api"
	listener net.Listener
	http     *http.Server
}

// New binds the ports. Nothing is served before Run; a server that is never run must be closed with Close.
func New(cfg Config, sources Sources) (*Server, error) {
	if sources.Metrics == nil || sources.Health == nil || sources.Status == nil || sources.Aggregates == nil {
		return nil, errors.New("api: a required source is missing")
	}
	s := &Server{logger: cfg.Logger, token: cfg.Token, sources: sources, metrics: newMetrics(cfg.Registerer)}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	for _, b := range []struct {
		name, addr, flag, defaultFlag string
		handler                       http.Handler
	}{
		{serverMetrics, cfg.MetricsAddr, cfg.MetricsFlag, "--metrics-port", s.metricsHandler()},
		{serverAPI, cfg.APIAddr, cfg.APIFlag, "--api-port", s.apiHandler()},
	} {
		if b.addr == "" {
			continue
		}
		if b.flag == "" {
			b.flag = b.defaultFlag
		}
		l, err := net.Listen("tcp", b.addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serve %s (%s): %w", b.name, b.flag, err), s.Close())
		}
		s.servers = append(s.servers, &listening{
			name:     b.name,
			listener: limitConnections(l, maxConnections, s.metrics.refused[b.name]),
			http: &http.Server{
				Handler:           s.guard(b.name, b.handler),
				ReadHeaderTimeout: readHeaderTimeout,
				ReadTimeout:       readTimeout,
				WriteTimeout:      writeTimeout,
				IdleTimeout:       idleTimeout,
				MaxHeaderBytes:    maxHeaderBytes,
				ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug), // clients' faults
			},
		})
	}
	return s, nil
}

// MetricsAddr returns the address of the metrics port, nil if there is none.
func (s *Server) MetricsAddr() net.Addr { return s.addr(serverMetrics) }

// APIAddr returns the address of the API port, nil if there is none.
func (s *Server) APIAddr() net.Addr { return s.addr(serverAPI) }

func (s *Server) addr(name string) net.Addr {
	for _, l := range s.servers {
		if l.name == name {
			return l.listener.Addr()
		}
	}
	return nil
}

// Run serves until ctx ends, then lets requests in progress finish for at most two seconds. It returns nil after an
// ordinary stop. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, len(s.servers)) // each server sends exactly one value, so none of them blocks
	for _, l := range s.servers {
		s.logger.Info("http server started", "server", l.name, "address", l.listener.Addr().String())
		go func() { failed <- fmt.Errorf("serve %s: %w", l.name, l.http.Serve(l.listener)) }()
	}
	var err error
	running := len(s.servers)
	select {
	case <-ctx.Done():
	case err = <-failed:
		running--
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, l := range s.servers {
		if l.http.Shutdown(grace) != nil {
			_ = l.http.Close() // requests that take longer are cut off
		}
	}
	for range running {
		if stopped := <-failed; err == nil && !errors.Is(stopped, http.ErrServerClosed) {
			err = stopped
		}
	}
	return err
}

// Close releases the ports of a server that was not run.
func (s *Server) Close() error {
	var err error
	for _, l := range s.servers {
		err = errors.Join(err, l.listener.Close())
	}
	return err
}
