package prover

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runNode is the parent of the kill -9 test: it starts a prover in mode TARGET and a job that never ends, and prints
// the child's process id.
func runNode() {
	cfg := fakeConfig(RoleProve, os.Getenv("TARGET"))
	c, err := New(cfg)
	if err != nil {
		os.Exit(1)
	}
	go c.Run(context.Background())
	if c.WaitReady(context.Background()) != nil {
		os.Exit(1)
	}
	go c.Prove(context.Background(), fakeJob(faultBusy, 1))
	for c.Stats().Running == 0 {
		time.Sleep(time.Millisecond) // in the helper process, not in a test
	}
	fmt.Println(c.Stats().PID)
	select {}
}

// kill -9 of a node in mid-job leaves no child: one that reads sees the end of its input, one that does not gets the
// death signal.
func TestKillOfTheParentLeavesNoChild(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{modeGood, modeIgnoreEnd} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{fakeMode + "=" + modeNode, "TARGET=" + mode}
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(pid, 0))
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool { return hasEnded(pid) }, time.Second, 5*time.Millisecond)
		})
	}
}

// hasEnded is true for a process that is gone or a zombie of whoever adopted it.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// Many children killed in mid-job leave neither zombies nor open files.
func TestNoZombiesAndNoFilesAreLeft(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	cfg := fakeConfig(RoleProve, modeGood)
	f := newForker()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); f.run(quit) }()
	defer func() { close(quit); <-done }()
	cfg = cfg.withDefaults()
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	before := 0
	for i := range rounds {
		p, err := startProcess(t.Context(), f, &cfg)
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = p.greet(t.Context())
			require.NoError(t, err)
		}
		if i%3 == 0 {
			p.shutdown()
		} else {
			p.kill(errStopped)
		}
		<-p.done
		require.True(t, isGone(p.pid))
		require.ErrorIs(t, p.cause(), errStopped)
		if i == 0 {
			before = files()
		}
	}
	require.LessOrEqual(t, files(), before)
}
