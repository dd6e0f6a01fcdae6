package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// A child above its memory limit dies alone: the job fails with both numbers, checks go on, the next job is served.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	log, text := testLog()
	exceeded := make(chan struct{}, 1) // a token: the next look finds too much
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Logger, cfg.MemoryMax = log, 1<<20
	cfg.Watch = func(ctx context.Context, pid int, max int64) error {
		select {
		case <-exceeded:
			return fmt.Errorf("process tree of %d holds 3 MiB, its limit is %d MiB", pid, max>>20)
		case <-ctx.Done():
			return nil
		}
	}
	p := start(t, cfg)
	waitReady(t, p)
	require.Contains(t, text(), "needs more memory than the limit allows")
	require.Contains(t, text(), "memory_mib=4 limit_mib=1")
	pid := p.Stats().PID
	done := make(chan error, 1)
	go func() {
		_, err := p.Prove(t.Context(), fakeJob(faultBusy, 1))
		done <- err
	}()
	require.Eventually(t, func() bool { return p.Stats().Running == 1 }, time.Minute, time.Millisecond)
	exceeded <- struct{}{}
	err := <-done
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "holds 3 MiB, its limit is 1 MiB")
	require.Eventually(t, func() bool { return isGone(pid) }, time.Minute, 5*time.Millisecond)
	waitReady(t, p)
	_, err = p.Prove(t.Context(), fakeJob(faultNone, 1))
	require.NoError(t, err)
}

// A flood on stderr costs a bounded number of log lines and a bounded tail.
func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	log, text := testLog()
	s := &stderrLog{log: log}
	var in bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&in, "line %d %s\n", i, strings.Repeat("x", 3*stderrLineBytes))
	}
	in.WriteString("\n\n\xff\xfe last words without end")
	s.drain(&in)
	require.Equal(t, stderrLines, strings.Count(text(), "prover child says"))
	require.LessOrEqual(t, len(s.lastWords()), stderrTailBytes+stderrLineBytes)
	require.True(t, strings.HasSuffix(s.lastWords(), "last words without end"))
	require.NotContains(t, s.lastWords(), "\xff")

	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Logger, text = testLog()
	p := start(t, cfg)
	waitReady(t, p)
	_, err := p.Prove(t.Context(), fakeJob(faultFlood, 2))
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(text(), "flood"), stderrLines*stderrLineBytes)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"no command":        func(c *Config) { c.Command = nil },
		"role 0":            func(c *Config) { c.Role = RoleUnknown },
		"-1 threads":        func(c *Config) { c.Threads = -1 },
		"65 calls":          func(c *Config) { c.Role, c.Calls = RoleVerify, 65 },
		"a prover has one":  func(c *Config) { c.Calls = 2 },
		"bytes at rest":     func(c *Config) { c.RestMemory = -1 },
		"needs Watch":       func(c *Config) { c.MemoryMax = 1 },
		"negative duration": func(c *Config) { c.CallTimeout = -1 },
	} {
		cfg := fakeConfig(RoleProve, modeGood)
		change(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, want)
	}
	c, err := New(Config{Command: []string{"x"}, Role: RoleProve})
	require.NoError(t, err)
	require.Equal(t, defaultHelloTimeout, c.cfg.HelloTimeout)
	require.Equal(t, 1, c.cfg.Calls)
	_, err = c.Prove(t.Context(), fakeJob(0, 1))
	require.ErrorIs(t, err, ErrUnavailable, "a client that does not run has no child")
	_, ok := c.Capabilities()
	require.False(t, ok)
}

func TestRunIsForOnce(t *testing.T) {
	t.Parallel()
	c := start(t, fakeConfig(RoleProve, modeGood))
	waitReady(t, c)
	require.Error(t, c.Run(t.Context()))
}

// Two clients of different roles share a registry, and every outcome has a name from the closed sets.
func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Registerer = reg
	p := start(t, cfg)
	v := fakeConfig(RoleVerify, modeGood)
	v.Registerer = reg
	start(t, v)
	waitReady(t, p)
	_, err := p.Prove(t.Context(), fakeJob(faultNone, 1))
	require.NoError(t, err)
	families, err := reg.Gather()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, f := range families {
		seen[f.GetName()] = true
		require.True(t, strings.HasPrefix(f.GetName(), "aggnode_prover_"), f.GetName())
	}
	require.True(t, seen["aggnode_prover_calls_total"] && seen["aggnode_prover_starts_total"])

	for _, err := range []error{
		nil, ErrStuck, ErrTimeout, ErrMemory, ErrProtocol, &CrashError{}, ErrSchemeMismatch, &RefusedError{Code: CodeVersion}, io.EOF,
	} {
		require.Contains(t, startReasons, startReason(err))
		require.Contains(t, Outcomes(), OutcomeOf(err))
	}
}

func TestOutcomesAreATable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range Outcomes() {
		require.False(t, seen[o.String()], o)
		seen[o.String()] = true
		require.NotEmpty(t, o.Short())
		require.True(t, strings.HasSuffix(o.Long(), "."), o)
	}
	require.Equal(t, "invalid", outcomeEnd.String())
	require.Equal(t, "unknown", OutcomeUnknown.String())
}

func TestErrors(t *testing.T) {
	t.Parallel()
	crash := &CrashError{Signal: 11, Reason: "why", Stderr: "words"}
	require.ErrorIs(t, crash, ErrCrashed)
	require.ErrorIs(t, crash, ErrUnavailable)
	for _, want := range []string{"signal 11", "why", "words"} {
		require.ErrorContains(t, crash, want)
	}
	require.ErrorIs(t, &RefusedError{Code: CodeInvalidProof}, ErrBadProof)
	require.NotErrorIs(t, &RefusedError{Code: CodeBadSignature}, ErrBadProof)
	cause := errors.New("cause")
	require.ErrorIs(t, unavailable(cause), cause)
	require.ErrorIs(t, unavailable(cause), ErrUnavailable)
	require.Equal(t, error(crash), unavailable(crash))
	require.Equal(t, ErrUnavailable, unavailable(nil))
}

// BenchmarkVerifyRoundTrip is what a check costs beside the check itself: a proof of the longest length there and back.
func BenchmarkVerifyRoundTrip(b *testing.B) {
	cfg := fakeConfig(RoleVerify, modeGood)
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := New(cfg)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { cancel(); <-done }()
	require.NoError(b, c.WaitReady(ctx))
	claim := fakeJob(0, 2).claim()
	proof := make([]byte, 512<<10)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Verify(ctx, claim, proof); !errors.Is(err, ErrBadProof) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/call")
}
