package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// isVerifying asks a node whether it can check proofs natively.
func isVerifying(metricsPort string) bool {
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%s/readyz?verbose", metricsPort)) //nolint:noctx // a test against our own process
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var ready struct {
		Checks []struct {
			Name, Detail string
			OK           bool
		}
	}
	if json.NewDecoder(resp.Body).Decode(&ready) != nil {
		return false
	}
	for _, c := range ready.Checks {
		if c.Name == "verifier" {
			return c.OK && c.Detail == "native"
		}
	}
	return false
}

// childrenOf lists the processes that a process has started and that are there.
func childrenOf(t *testing.T, pid int) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the process lives, and this kernel lists children")
	var all strings.Builder
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread that has ended has none
		all.Write(b)
	}
	return all.String()
}

// A node of a lean-pq network that makes no proofs is one process, and needs nothing but its program.
func TestAnObserverStartsNoPython(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "genesis")
	_, err := runCommand(t, "genesis", "--out", dir, "--nodes", "1", "--profile", "lean-pq", "--insecure-devnet-keys", "--validators", "2")
	require.NoError(t, err)
	data, metricsPort := t.TempDir(), freePort(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "run", "--custom-network-config-dir", dir, "--node-id", "observer", "--data-dir", data,
		"--listen-address", "127.0.0.1", "--gossipsub-port", freePort(t), "--api-port", freePort(t), "--metrics-port", metricsPort)
	cmd.Env = []string{asProgram + "=1", "PATH=", "XDG_DATA_HOME=" + data}
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return isVerifying(metricsPort) }, time.Minute, 20*time.Millisecond)
	require.Empty(t, childrenOf(t, cmd.Process.Pid))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), log.String())
	require.NotContains(t, log.String(), "prover child")
}
