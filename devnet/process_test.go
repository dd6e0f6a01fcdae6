package devnet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func startShell(t *testing.T, f *forker, script string, log *errorLog) *process {
	t.Helper()
	p, err := startProcess(f, "/bin/sh", "node", filepath.Join(t.TempDir(), "data"), []string{"-c", script}, nil, log)
	require.NoError(t, err)
	return p
}

func TestErrorLinesAndUnexpectedExitsAreCounted(t *testing.T) {
	t.Parallel()
	f := newForker()
	defer f.stop()
	log := &errorLog{}
	p := startShell(t, f, `echo '{"level":"INFO","msg":"fine"}'; echo '{"level":"ERROR","msg":"bad"}' >&2; echo 'panic: worse'; exit 3`, log)
	<-p.exited
	require.EqualValues(t, 3, log.count.Load(), log.texts())
	text := strings.Join(log.texts(), "\n")
	require.Contains(t, text, `"msg":"bad"`)
	require.Contains(t, text, "panic: worse")
	require.Contains(t, text, "exit status 3")
	b, err := os.ReadFile(filepath.Join(p.dataDir, "stdout.log"))
	require.NoError(t, err)
	require.Contains(t, string(b), "fine")
}

func TestStoppedProcessesAreNoErrors(t *testing.T) {
	t.Parallel()
	f := newForker()
	defer f.stop()
	log := &errorLog{}
	p := startShell(t, f, `trap 'exit 0' TERM; echo ready; while :; do read -r x < /dev/null; sleep 0.05; done`, log)
	stopAll(t.Context(), []*process{p})
	require.Zero(t, log.count.Load(), log.texts())
	require.ErrorIs(t, syscall.Kill(p.cmd.Process.Pid, 0), syscall.ESRCH)
}

func TestAProcessThatIgnoresTheSignalIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	f := newForker()
	defer f.stop()
	p := startShell(t, f, `trap '' TERM; sleep 1000 & wait`, &errorLog{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no patience
	p.stop(ctx)
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH) },
		10*time.Second, time.Millisecond, "the kernel takes a moment to reap the orphan")
}

func TestALongLineIsNotHeldInMemory(t *testing.T) {
	t.Parallel()
	f := newForker()
	defer f.stop()
	log := &errorLog{}
	p := startShell(t, f, `head -c 1000000 /dev/zero | tr '\0' x; echo; exit 0`, log)
	<-p.exited
	require.EqualValues(t, 1, log.count.Load(), "the exit alone")
}
