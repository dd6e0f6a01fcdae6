package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// fakeNode is all sources at once.
type fakeNode struct {
	mu         sync.Mutex
	checks     []Check
	status     Status
	aggregator bool
	refuse     error
	levels     map[string]string
	onStatus   func()
}

func (n *fakeNode) Checks() []Check {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.checks
}

func (n *fakeNode) Status() Status {
	if n.onStatus != nil {
		n.onStatus()
	}
	return n.status
}

func (n *fakeNode) IsAggregator() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.aggregator
}

func (n *fakeNode) SetAggregator(enabled bool) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	previous := n.aggregator
	if n.refuse != nil {
		return previous, n.refuse
	}
	n.aggregator = enabled
	return previous, nil
}

func (n *fakeNode) Levels() map[string]string { return n.levels }

func (n *fakeNode) SetLevel(component, level string) error {
	if level == "loud" {
		return fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	n.levels[component] = level
	return nil
}

// running is a server that serves until the test ends.
type running struct {
	*Server
	node     *fakeNode
	log      *AggregateLog
	registry *prometheus.Registry
	stop     func() error
}

func serve(t *testing.T, change ...func(*Config, *Sources)) *running {
	t.Helper()
	r := &running{
		node:     &fakeNode{levels: map[string]string{"": "info"}},
		log:      NewAggregateLog(),
		registry: prometheus.NewRegistry(),
	}
	cfg := Config{MetricsAddr: "127.0.0.1:0", APIAddr: "127.0.0.1:0", Registerer: r.registry}
	sources := Sources{Metrics: r.registry, Health: r.node, Status: r.node, Aggregates: r.log, Role: r.node, LogLevels: r.node}
	for _, c := range change {
		c(&cfg, &sources)
	}
	var err error
	r.Server, err = New(cfg, sources)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1) // Run's answer, taken once
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	return r
}

// do sends a request with a connection of its own and returns code and body.
func do(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

func (r *running) metricsURL(path string) string { return "http://" + r.MetricsAddr().String() + path }
func (r *running) apiURL(path string) string     { return "http://" + r.APIAddr().String() + path }

func TestReadinessNamesTheFailingChecks(t *testing.T) {
	t.Parallel()
	r := serve(t)
	r.node.checks = []Check{{Name: "clock", OK: true}, {Name: "prover", OK: true}}
	code, body := do(t, "GET", r.metricsURL("/readyz"), "")
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"ready":true,"failing":[]}`, body)
	for _, url := range []string{r.metricsURL("/lean/v0/health"), r.metricsURL("/v0/health"), r.apiURL("/lean/v0/health"), r.apiURL("/v0/health")} {
		code, body = do(t, "GET", url, "")
		require.Equal(t, 200, code)
		require.JSONEq(t, `{"status":"healthy","service":"lean-rpc-api"}`, body)
	}

	r.node.mu.Lock()
	r.node.checks = []Check{{Name: "clock", OK: true}, {Name: "prover", Detail: "two sessions made no proof"}}
	r.node.mu.Unlock()
	code, body = do(t, "GET", r.metricsURL("/readyz"), "")
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"ready":false,"failing":[{"name":"prover","ok":false,"detail":"two sessions made no proof"}]}`, body)
	code, body = do(t, "GET", r.metricsURL("/readyz?verbose"), "")
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"ready":false,"failing":[{"name":"prover","ok":false,"detail":"two sessions made no proof"}],
		"checks":[{"name":"clock","ok":true},{"name":"prover","ok":false,"detail":"two sessions made no proof"}]}`, body)
	code, body = do(t, "GET", r.apiURL("/lean/v0/health"), "")
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"status":"unhealthy","service":"lean-rpc-api","failing":["prover: two sessions made no proof"]}`, body)
	code, body = do(t, "GET", r.metricsURL("/livez"), "")
	require.Equal(t, 200, code, "the process is alive all the same")
	require.JSONEq(t, `{"alive":true}`, body)
}

func TestEachPortServesItsOwnPaths(t *testing.T) {
	t.Parallel()
	r := serve(t)
	for path, want := range map[string][2]int{ // metrics port, API port
		"/metrics":                    {200, 404},
		"/livez":                      {200, 404},
		"/readyz":                     {200, 404},
		"/lean/v0/health":             {200, 200},
		"/v0/health":                  {200, 200},
		"/aggnode/v1/status":          {404, 200},
		"/aggnode/v1/aggregates":      {404, 200},
		"/lean/v0/admin/aggregator":   {404, 200},
		"/aggnode/v1/admin/log_level": {404, 200},
		"/":                           {404, 404},
		"/debug/pprof/":               {404, 404},
	} {
		code, _ := do(t, "GET", r.metricsURL(path), "")
		require.Equal(t, want[0], code, "metrics %s", path)
		code, _ = do(t, "GET", r.apiURL(path), "")
		require.Equal(t, want[1], code, "api %s", path)
	}
	code, _ := do(t, "POST", r.metricsURL("/livez"), "")
	require.Equal(t, 405, code)
	code, _ = do(t, "DELETE", r.apiURL("/lean/v0/admin/aggregator"), "")
	require.Equal(t, 405, code)
}

func TestMetricsAreServedAndWellFormed(t *testing.T) {
	t.Parallel()
	r := serve(t)
	_, _ = do(t, "GET", r.apiURL("/nothing"), "")
	code, body := do(t, "GET", r.metricsURL("/metrics"), "")
	require.Equal(t, 200, code)
	require.Contains(t, body, `aggnode_http_requests_total{code="4xx",server="api"} 1`)
	problems, err := testutil.GatherAndLint(r.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestStatusHasListsAndNoNull(t *testing.T) {
	t.Parallel()
	r := serve(t)
	r.node.status = Status{Version: "v1", Node: "aggnode_0", Queues: []Queue{{Class: "attestation", Waiting: 3}}}
	code, body := do(t, "GET", r.apiURL("/aggnode/v1/status"), "")
	require.Equal(t, 200, code)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, "aggnode_0", got["node"])
	for name, v := range got {
		if name == "prover" || name == "verifier" {
			require.Nil(t, v)
			continue
		}
		require.NotNil(t, v, name)
	}
}

func TestTheAggregatorRoleIsSwitchedFromTheSameMachine(t *testing.T) {
	t.Parallel()
	r := serve(t)
	url := r.apiURL("/lean/v0/admin/aggregator")
	code, body := do(t, "GET", url, "")
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"is_aggregator":false}`, body)
	code, body = do(t, "POST", url, `{"enabled": true}`)
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"is_aggregator":true,"previous":false}`, body)
	code, body = do(t, "POST", url, `{"enabled": true}`)
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"is_aggregator":true,"previous":true}`, body)

	for _, bad := range []string{
		``, `{}`, `{"enabled": 1}`, `{"enabled": "true"}`, `{"enabled": null}`, `[true]`, `true`, `{"enabled": false} x`,
		`{"enabled": false, "other": 1}`, `{"enabled": ` + strings.Repeat(" ", maxBodyBytes) + `false}`,
	} {
		code, body = do(t, "POST", url, bad)
		require.Equal(t, 400, code, bad)
		require.Contains(t, body, "error")
		require.True(t, r.node.IsAggregator())
	}
	for name, header := range map[string][]string{
		"a web page":             {"Origin", "http://evil.example"},
		"a browser, other site":  {"Sec-Fetch-Site", "cross-site"},
		"a name pointed at here": {"Host", "evil.example:5052"},
	} {
		code, _ = do(t, "POST", url, `{"enabled": false}`, header...)
		require.Equal(t, 403, code, name)
		require.True(t, r.node.IsAggregator())
	}
	r.node.refuse = errors.New("no_backend")
	code, body = do(t, "POST", url, `{"enabled": false}`)
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"error":"no_backend"}`, body)
}

func TestAdministrationIsForTheSameMachineOnly(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]int{
		"127.0.0.1:1234": 200, "127.8.9.10:1": 200, "[::1]:1234": 200, "[::ffff:127.0.0.1]:1": 200,
		"10.0.0.1:1234": 403, "[fe80::1]:80": 403, "": 403, "localhost:80": 403,
	} {
		req := httptest.NewRequest("POST", "http://localhost:5052/x", nil)
		req.RemoteAddr = remote
		rec := httptest.NewRecorder()
		sameMachine(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }).ServeHTTP(rec, req)
		require.Equal(t, want, rec.Code, remote)
	}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:80": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]": true, "[::1]:80": true,
		"example.com": false, "localhost.example.com": false, "10.0.0.1:80": false, "": false, ":80": false,
	} {
		require.Equal(t, want, isLoopbackHost(host), host)
	}
}

func TestLogLevelsAreSwitchedAtRunTime(t *testing.T) {
	t.Parallel()
	r := serve(t)
	url := r.apiURL("/aggnode/v1/admin/log_level")
	code, body := do(t, "POST", url, `{"component":"p2p","level":"debug"}`)
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"levels":{"":"info","p2p":"debug"}}`, body)
	code, body = do(t, "GET", url, "")
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"levels":{"":"info","p2p":"debug"}}`, body)
	code, body = do(t, "POST", url, `{"level":"loud"}`)
	require.Equal(t, 400, code)
	require.Contains(t, body, "loud")
	code, _ = do(t, "POST", url, `{"component":"p2p"}`)
	require.Equal(t, 400, code)
}

func TestRolesThatANodeDoesNotHaveAreUnavailable(t *testing.T) {
	t.Parallel()
	r := serve(t, func(_ *Config, s *Sources) { s.Role, s.LogLevels = nil, nil })
	for _, path := range []string{"/lean/v0/admin/aggregator", "/aggnode/v1/admin/log_level"} {
		for _, method := range []string{"GET", "POST"} {
			code, _ := do(t, method, r.apiURL(path), `{"enabled":true}`)
			require.Equal(t, 503, code, "%s %s", method, path)
		}
	}
}

func TestAPortInUseNamesItsFlag(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	node := &fakeNode{}
	sources := Sources{Metrics: prometheus.NewRegistry(), Health: node, Status: node, Aggregates: NewAggregateLog()}
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{MetricsAddr: taken.Addr().String()}, "--metrics-port"},
		{Config{APIAddr: taken.Addr().String(), MetricsAddr: "127.0.0.1:0"}, "--api-port"},
		{Config{APIAddr: taken.Addr().String(), APIFlag: "--http"}, "--http"},
	} {
		_, err := New(tc.cfg, sources)
		require.ErrorContains(t, err, tc.want)
		require.ErrorContains(t, err, taken.Addr().String())
	}
	_, err = New(Config{}, Sources{})
	require.ErrorContains(t, err, "source is missing")
}

func TestAServerThatIsNotWantedIsNotThere(t *testing.T) {
	t.Parallel()
	r := serve(t, func(c *Config, _ *Sources) { c.APIAddr = "" })
	require.Nil(t, r.APIAddr())
	code, _ := do(t, "GET", r.metricsURL("/livez"), "")
	require.Equal(t, 200, code)
	none := serve(t, func(c *Config, _ *Sources) { c.APIAddr, c.MetricsAddr = "", "" })
	require.NoError(t, none.stop())
}

func TestCloseFreesThePorts(t *testing.T) {
	t.Parallel()
	node := &fakeNode{}
	s, err := New(Config{APIAddr: "127.0.0.1:0"}, Sources{Metrics: prometheus.NewRegistry(), Health: node, Status: node, Aggregates: NewAggregateLog()})
	require.NoError(t, err)
	addr := s.APIAddr().String()
	require.NoError(t, s.Close())
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestAPanicEndsOnlyItsRequest(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := serve(t, func(c *Config, _ *Sources) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.node.onStatus = func() { panic("boom") }
	code, body := do(t, "GET", r.apiURL("/aggnode/v1/status"), "")
	require.Equal(t, 500, code)
	require.JSONEq(t, `{"error":"internal error"}`, body)
	code, _ = do(t, "GET", r.apiURL("/v0/health"), "")
	require.Equal(t, 200, code)
	require.NoError(t, r.stop())
	require.Contains(t, log.String(), "boom")
}

func TestARequestInProgressIsFinishedAtStop(t *testing.T) {
	t.Parallel()
	r := serve(t)
	entered, release := make(chan struct{}), make(chan struct{})
	r.node.onStatus = func() {
		close(entered)
		<-release
	}
	answer := make(chan int, 1)
	go func() {
		res, err := http.Get(r.apiURL("/aggnode/v1/status"))
		if err != nil {
			answer <- 0
			return
		}
		_ = res.Body.Close()
		answer <- res.StatusCode
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	close(release)
	require.NoError(t, <-stopped)
	require.Equal(t, 200, <-answer)
}

func TestConnectionsAboveTheLimitAreClosedAtOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"})
	limited := limitConnections(l, 2, refused)
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := limited.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		return c
	}
	clients := []net.Conn{dial(), dial()}
	first, second := <-accepted, <-accepted
	third := dial()
	_, err = bufio.NewReader(third).ReadByte()
	require.ErrorIs(t, err, io.EOF, "closed without an answer")
	require.Equal(t, float64(1), testutil.ToFloat64(refused))

	require.NoError(t, first.Close())
	_ = first.Close() // a second close gives no second slot
	clients = append(clients, dial(), third)
	fourth := <-accepted
	fifth := dial()
	_, err = bufio.NewReader(fifth).ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, l.Close())
	for _, c := range append(clients, second, fourth, fifth) {
		_ = c.Close()
	}
	_, open := <-accepted
	require.False(t, open)
}
