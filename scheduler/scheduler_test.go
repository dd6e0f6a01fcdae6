package scheduler

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The test binary serves as the program that has the shim, and as what the shim runs.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == ChildExecCommand:
		fmt.Fprintln(os.Stderr, ChildExec(os.Args[2:]))
		os.Exit(127)
	case len(os.Args) > 1 && os.Args[1] == "report":
		report()
	case len(os.Args) > 1 && os.Args[1] == "parent":
		parent()
	case len(os.Args) > 1 && os.Args[1] == "groups":
		groups()
	case len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-"):
		os.Exit(2) // a helper nobody wrote: running the tests instead would start it again, and again
	}
	os.Exit(m.Run())
}

// report prints what the shim was to set, then waits to be killed where told so.
func report() {
	priority, _ := unix.Getpriority(unix.PRIO_PROCESS, 0) // the raw call: 20 minus nice
	policy, _ := unix.SchedGetAttr(0, 0)
	oom, _ := os.ReadFile("/proc/self/oom_score_adj")
	var data, core unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_DATA, &data)
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &core)
	cpus, _ := allowedCPUs()
	fmt.Printf("nice=%d policy=%d oom=%s data=%d core=%d cpus=%s group=%v arg=%s env=%s\n", 20-priority, policy.Policy,
		strings.TrimSpace(string(oom)), data.Cur, core.Cur, formatCPUs(cpus), unix.Getpgrp() == os.Getpid(), os.Args[len(os.Args)-1], os.Getenv("HANDED_ON"))
	if os.Args[len(os.Args)-1] == "wait" {
		select {}
	}
	os.Exit(0)
}

// parent starts a waiting child from a locked thread and prints its process id.
func parent() {
	s, err := New(Config{})
	if err != nil {
		os.Exit(1)
	}
	cmd := exec.Command("/proc/self/exe", "report", "wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = s.Place(ClassProver)(cmd)
	}
	if err == nil {
		err = cmd.Start() // from the main thread, which lives as long as the process
	}
	if err != nil {
		os.Exit(1)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Println(cmd.Process.Pid, line)
	select {}
}

// groups makes real control groups where the host allows it, and says what came of it.
func groups() {
	s, err := New(Config{Budget: Budget{Tier: Tier2, CoresMax: 0.5}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p := s.Placement()
	if p.Tier != Tier2 {
		fmt.Print("not run: ", p.Reason)
		os.Exit(0)
	}
	cmd := exec.Command("/bin/cat", "/proc/self/cgroup")
	err = s.Place(ClassProver)(cmd)
	var out []byte
	if err == nil {
		out, err = cmd.CombinedOutput()
	}
	fmt.Println("in prover leaf:", strings.Contains(string(out), "/prover\n"), err)
	text, err := os.ReadFile(filepath.Join(p.CgroupPath, "prover", "cpu.max"))
	fmt.Println("quota:", strings.TrimSpace(string(text)), err)
	err = s.Close()
	_, gone := os.Stat(filepath.Join(p.CgroupPath, "prover"))
	fmt.Println("left:", err == nil && os.IsNotExist(gone), err)
	os.Exit(0)
}

func place(t *testing.T, cfg Config, class Class, args ...string) *exec.Cmd {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	cmd := exec.Command("/proc/self/exe", append([]string{"report"}, args...)...)
	cmd.Env = []string{"HANDED_ON=yes"}
	require.NoError(t, s.Place(class)(cmd))
	return cmd
}

func TestPlace(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	require.NoError(t, err)
	base := strings.TrimSpace(string(own))
	cpus, err := allowedCPUs()
	require.NoError(t, err)
	all, last := "cpus="+formatCPUs(cpus)+" ", fmt.Sprintf("cpus=%d ", coreOrder("/proc", cpus)[len(cpus)-1])
	for _, c := range []struct {
		name  string
		cfg   Config
		class Class
		want  []string
	}{
		{"a prover", Config{}, ClassProver, []string{"nice=19 ", "policy=0 ", "oom=500 ", "core=0 ", all, "group=true", "arg=last", "env=yes"}},
		{"a prover with a maximum below a core", Config{Budget: Budget{CoresMax: 0.5}}, ClassProver, []string{"nice=19 ", last}},
		{"a verifier beside it", Config{Budget: Budget{CoresMax: 0.5}}, ClassVerifier, []string{"nice=0 ", all}},
		{"a prover under SCHED_IDLE", Config{SchedIdle: true}, ClassProver, []string{"policy=5 ", "oom=500 "}},
		{"a prover with a data limit", Config{DataMax: 1 << 40}, ClassProver, []string{"nice=19 ", "data=1099511627776 "}},
		{"a verifier", Config{}, ClassVerifier, []string{"nice=0 ", "oom=" + base + " ", "group=true"}},
	} {
		out, err := place(t, c.cfg, c.class, "last").CombinedOutput()
		require.NoError(t, err, "%s: %s", c.name, out)
		for _, w := range c.want {
			require.Contains(t, string(out), w, c.name)
		}
	}
	s, err := New(Config{})
	require.NoError(t, err)
	require.Error(t, s.Place(ClassUnknown)(exec.Command("/bin/true")))
	require.ErrorIs(t, s.Place(ClassProver)(exec.Command("no-such-program-here")), exec.ErrNotFound)
	require.Equal(t, "T0", s.Tier().String())
	_, err = New(Config{Executable: filepath.Join(t.TempDir(), "gone")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestChildExecRefuses(t *testing.T) {
	t.Parallel()
	run := func(args ...string) (string, int) {
		out, err := exec.Command("/proc/self/exe", append([]string{ChildExecCommand}, args...)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		return string(out), exit.ExitCode()
	}
	for want, args := range map[string][]string{
		"no command":                {},
		"nice 20":                   {"--nice", "20", "--", "/bin/true"},
		"nice -1":                   {"--nice", "-1", "--", "/bin/true"},
		"oom 1001":                  {"--oom", "1001", "--", "/bin/true"},
		"not defined":               {"--frobnicate", "--", "/bin/true"},
		"stay below 1024":           {"--cpus", "1024", "--", "/bin/true"},
		"set CPUs 1023":             {"--cpus", "1023", "--", "/bin/true"},
		"the parent has ended":      {"--parent", "1", "--", "/bin/true"},
		"no such file or directory": {"--", "/no/such/program"},
	} {
		out, code := run(args...)
		require.Contains(t, out, want)
		require.Equal(t, 127, code)
	}
}

func TestKillOfTheParentKillsTheChild(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	first, rest, _ := strings.Cut(line, " ")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.Contains(t, rest, "nice=19")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, time.Second, 5*time.Millisecond)
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	s, err := New(Config{})
	require.NoError(t, err)
	release, err := s.Acquire(t.Context())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx)
		waiting <- err
	}()
	cancel()
	require.ErrorIs(t, <-waiting, context.Canceled)
	_, err = s.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled, "an ended context gets no grant, free or not")

	release()
	release() // a second time does nothing
	second, err := s.Acquire(t.Context())
	require.NoError(t, err)
	release()
	select {
	case s.grant <- struct{}{}:
		t.Fatal("the grant of another was given back")
	default:
	}
	second()

	// Never two at once.
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			release, err := s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if !mu.TryLock() {
				t.Error("two grants at once")
				return
			}
			mu.Unlock()
			release()
		})
	}
	wg.Wait()
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for want, paths := range map[CgroupVersion][]string{
		CgroupV2:     {"cgroup.controllers"},
		CgroupV1:     {"cpu,cpuacct/cpu.shares"},
		CgroupHybrid: {"cpu/cpu.shares", "unified/cgroup.controllers"},
		CgroupNone:   {"other/file"},
	} {
		root := t.TempDir()
		for _, path := range paths {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, path), nil, 0o644))
		}
		require.Equal(t, want, detect(root), want.String())
	}
	s, err := New(Config{})
	require.NoError(t, err)
	require.Positive(t, s.Machine().CPUs)
}

func TestTreeMemory(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	write := func(path, text string) {
		full := filepath.Join(proc, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
	}
	page := int64(os.Getpagesize())
	write("10/statm", "100 40 3 0 0 0 0\n")
	write("10/task/10/children", "11 ")
	write("10/task/14/children", "12 99 ") // 99 has ended
	write("11/statm", "100 2 3 0 0 0 0\n")
	write("11/task/11/children", "13 ")
	write("12/statm", "garbage\n")
	write("13/statm", "1 1 1\n")
	write("13/task/13/children", "10 rubbish ") // a loop can not be, and must not hang
	require.GreaterOrEqual(t, treeMemory(proc, 10), 43*page)
	require.Zero(t, treeMemory(proc, 77))
	require.Positive(t, treeMemory("/proc", os.Getpid()))
}

func TestWatch(t *testing.T) {
	t.Parallel()
	s, err := New(Config{})
	require.NoError(t, err)
	cmd := place(t, Config{}, ClassProver, "wait")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	err = s.Watch(ClassProver)(t.Context(), cmd.Process.Pid, 1<<10)
	require.ErrorContains(t, err, "its limit is 0 MiB")
	require.ErrorContains(t, err, "prover "+strconv.Itoa(cmd.Process.Pid))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Watch(ClassProver)(ctx, cmd.Process.Pid, 1<<40) }()
	cancel()
	require.NoError(t, <-done)
}

func FuzzParseChildExec(f *testing.F) {
	f.Add("--nice 19 --oom 500 -- /bin/true")
	f.Add("--rlimit-data 5 --sched-idle -- a b")
	f.Add("--cpus 0-3,7 -- a")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parseChildExec(strings.Fields(line))
		if err == nil {
			require.NotEmpty(t, o.command)
			require.LessOrEqual(t, o.nice, 19)
		}
	})
}
