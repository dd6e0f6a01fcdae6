package prover

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv(fakeMode); mode {
	case "":
	case modeHold:
		hold()
	case modeNode:
		runNode()
	default:
		runFake(mode)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if left := ownChildren(); len(left) > 0 {
			fmt.Fprintln(os.Stderr, "processes left behind:", left)
			code = 1
		}
	}
	os.Exit(code)
}

// ownChildren lists the children of this process, zombies included, that are not already dead strangers.
func ownChildren() []string {
	var out []string
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		for _, pid := range strings.Fields(string(b)) {
			stat, _ := os.ReadFile("/proc/" + pid + "/stat")
			out = append(out, strings.TrimSpace(string(bytes.Join(bytes.Fields(stat)[:min(3, len(bytes.Fields(stat)))], []byte(" ")))))
		}
	}
	return out
}

// fakeConfig is a client configuration for a fake of a mode. Its timeouts are far beyond what a loaded machine needs;
// tests of timeouts set their own.
func fakeConfig(role Role, mode string) Config {
	return Config{
		Command: []string{"/proc/self/exe", "-test.run=^$"}, Env: []string{fakeMode + "=" + mode}, Role: role,
		HelloTimeout: time.Minute, CallTimeout: time.Minute, StuckAfter: time.Minute, StopGrace: 5 * time.Second,
	}
}

// start runs a client until the end of the test, whose Run must then return nil.
func start(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.False(t, c.Ready())
		require.ErrorIs(t, c.WaitReady(context.Background()), ErrUnavailable)
	})
	return c
}

func waitReady(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.WaitReady(ctx))
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// testLog collects log text.
func testLog() (*slog.Logger, func() string) {
	var b safeBuffer
	return slog.New(slog.NewTextHandler(&b, nil)), b.String
}

// isGone says whether no process of a group is left.
func isGone(pgid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pgid) + "/stat")
	return err != nil || len(stat) == 0
}
