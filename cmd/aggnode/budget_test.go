package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/api"
	"aggnode/scheduler"
)

// budgetNode answers like a node with one token and remembers the last change.
func budgetNode(t *testing.T, token string) (url string, last func() string) {
	t.Helper()
	var mu sync.Mutex
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = w.Write([]byte(`{"error":"wrong token"}`))
				return
			}
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			mu.Lock()
			body = b.String()
			mu.Unlock()
		}
		most := 1.5
		_ = json.NewEncoder(w).Encode(api.BudgetView{BudgetSettings: api.BudgetSettings{CoresMax: &most}, Tier: "T2", TierAsked: "auto", TierReason: "leaves", Moved: "one", Cores: 1.5, Weight: 100, Reason: "steady"})
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string { mu.Lock(); defer mu.Unlock(); return body }
}

func TestTheBudgetOfANodeIsShownAndChanged(t *testing.T) {
	t.Parallel()
	url, last := budgetNode(t, "secret")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, api.TokenFile), []byte("secret\n"), 0o600))

	out, err := runCommand(t, "budget", "show", "--api", url)
	require.NoError(t, err)
	require.Contains(t, out, "maximum   1.50 cores")
	require.Contains(t, out, "T2")

	_, err = runCommand(t, "budget", "set", "--api", url, "--data-dir", dir, "--cores-max", "1.5", "--target", "80ms")
	require.NoError(t, err)
	require.JSONEq(t, `{"cores_max":1.5,"target_ms":80}`, last(), "what was not given is not sent")
	out, err = runCommand(t, "budget", "set", "--api", url, "--data-dir", dir, "--tier", "auto")
	require.NoError(t, err)
	require.JSONEq(t, `{"tier":"auto"}`, last())
	require.Contains(t, out, "moved     one")
	require.Contains(t, out, "tier      T2 of auto asked (leaves)")

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--data-dir", dir}, "nothing to change"},
		{[]string{"--cores-max", "1"}, "--data-dir"},
		{[]string{"--cores-max", "1", "--token-file", "/nonexistent"}, "/nonexistent"},
	} {
		_, err = runCommand(t, append([]string{"budget", "set", "--api", url}, c.args...)...)
		require.ErrorContains(t, err, c.want)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, api.TokenFile), []byte("other\n"), 0o600))
	_, err = runCommand(t, "budget", "set", "--api", url, "--data-dir", dir, "--cores-max", "1")
	require.ErrorContains(t, err, "wrong token")
	_, err = runCommand(t, "budget", "show", "--api", "http://127.0.0.1:1")
	require.ErrorContains(t, err, "--api http://127.0.0.1:1")
}

// setter remembers the last budget that it was given.
type setter struct {
	mu     sync.Mutex
	last   scheduler.Budget
	n      int
	causes []scheduler.Cause
}

func (s *setter) SetBudget(_ context.Context, b scheduler.Budget, cause scheduler.Cause) (scheduler.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change := scheduler.Change{Old: s.last, New: b}
	s.last, s.n, s.causes = b, s.n+1, append(s.causes, cause)
	return change, nil
}

func (s *setter) get() (scheduler.Budget, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.n
}

func TestTheBudgetFollowsTheFileAndSIGHUP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("budget-cores-max: 1\n")
	f := flagsOf(t, "--config", file, "--budget-cores-min", "0.5")
	var s setter
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	hup := make(chan os.Signal, 1)
	go func() {
		defer close(done)
		followBudget(ctx, f, file, hup, &s, slog.New(slog.DiscardHandler))
	}()
	hup <- syscall.SIGHUP
	require.Eventually(t, func() bool { b, _ := s.get(); return b.CoresMax == 1 && b.CoresMin == 0.5 }, 10*time.Second, 5*time.Millisecond)

	write("budget-cores-max: 1.5\n") // the watch is up: it comes before the first signal is served
	require.Eventually(t, func() bool { b, _ := s.get(); return b.CoresMax == 1.5 && b.CoresMin == 0.5 },
		10*time.Second, 5*time.Millisecond, "a flag still wins over the file")

	write("budget-cores-max: [\n")
	hup <- syscall.SIGHUP
	hup <- syscall.SIGHUP // the first one was taken when this one is
	cancel()
	<-done
	b, n := s.get()
	require.InDelta(t, 1.5, b.CoresMax, 0, "a broken file changes nothing")
	require.Equal(t, 2, n, "the file is read once it is whole")
	require.Equal(t, []scheduler.Cause{scheduler.CauseSignal, scheduler.CauseFile}, s.causes)
	require.Equal(t, scheduler.TierAuto, b.Tier)
}
