package scheduler

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var own = strconv.Itoa(os.Getpid())

func TestTwoLeavesAreMadeAndRemoved(t *testing.T) {
	t.Parallel()
	k := newFakeKernel(t, "/system/svc", "cpuset", "cpu", "memory")
	before := k.snapshot()
	cfg := k.config()
	cfg.MemoryMax, cfg.Budget.CoresMax = 3<<30, 1.5
	s := k.scheduler(cfg, 4)

	require.Equal(t, Tier2, s.Tier())
	p := s.Placement()
	require.Equal(t, filepath.Join(k.root, "system/svc"), p.CgroupPath)
	require.Contains(t, p.Reason, "leaves in "+p.CgroupPath)
	require.Nil(t, p.ProverCPUs)
	require.Nil(t, p.NodeCPUs)
	for name, want := range map[string]string{
		"cgroup.procs": "", "cgroup.subtree_control": "cpu memory", "node/cgroup.procs": own, "node/cpu.weight": "1000",
		"prover/cgroup.procs": "", "prover/cpu.weight": "100", "prover/cpu.max": "30000 20000", "prover/memory.max": "3221225472",
		"prover/memory.oom.group": "1",
	} {
		require.Equal(t, want, k.get("system/svc/"+name), name)
	}

	for class, want := range map[Class]bool{ClassProver: true, ClassVerifier: false} {
		cmd := exec.Command("/bin/true")
		require.NoError(t, s.Place(class)(cmd))
		require.Equal(t, want, cmd.SysProcAttr.UseCgroupFD)
		require.NotContains(t, cmd.Args, "--cpus")
		if want {
			dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(cmd.SysProcAttr.CgroupFD))
			require.NoError(t, err)
			require.Equal(t, filepath.Join(p.CgroupPath, "prover"), dir)
		}
	}

	k.set("system/svc/prover/cgroup.procs", "4711\n") // one that was not reaped
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Equal(t, before, k.snapshot())
	cmd := exec.Command("/bin/true")
	require.NoError(t, s.Place(ClassProver)(cmd))
	require.Error(t, cmd.Start(), "no prover starts outside of its leaf")
}

func TestALeafOfTheServiceManagerIsKept(t *testing.T) {
	t.Parallel()
	k := newFakeKernel(t, "/svc/node", "cpu")
	before := k.snapshot()
	s := k.scheduler(k.config(), 2)
	require.Equal(t, Tier2, s.Tier())
	require.Contains(t, s.Placement().Reason, "without controller memory")
	require.Equal(t, own, k.get("svc/node/cgroup.procs"))
	require.Equal(t, "1000", k.get("svc/node/cpu.weight"))
	require.Equal(t, "max 20000", k.get("svc/prover/cpu.max"))
	require.NoError(t, s.Close())
	require.Equal(t, before, k.snapshot())
}

func TestTwoNodesInOneGroupDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"/svc", "/svc/node"} {
		k := newFakeKernel(t, own, "cpu")
		first := k.scheduler(k.config(), 2)
		require.Equal(t, Tier2, first.Tier())
		k.set("svc/prover/cgroup.procs", "98")
		k.setAt(k.proc, "self/cgroup", "0::/svc/node\n") // where the first has moved the process to
		before := k.snapshot()
		second := k.scheduler(k.config(), 2)
		require.Equal(t, Tier0, second.Tier())
		require.Contains(t, second.Placement().Reason, "another node uses it")
		require.NoError(t, second.Close())
		require.Equal(t, before, k.snapshot())
		require.NoError(t, first.Close())
		k.setAt(k.proc, "self/cgroup", "0::"+own+"\n")
		third := k.scheduler(k.config(), 2)
		require.Equal(t, Tier2, third.Tier(), third.Placement().Reason)
		require.NoError(t, third.Close())
	}
}

func TestControllersThatWereOnStayOn(t *testing.T) {
	t.Parallel()
	k := newFakeKernel(t, "/svc/node", "cpu", "memory")
	require.NoError(t, k.write(filepath.Join(k.root, "svc/cgroup.subtree_control"), "+cpu"))
	s := k.scheduler(k.config(), 2)
	require.Equal(t, "cpu memory", k.get("svc/cgroup.subtree_control"))
	require.NoError(t, s.Close())
	require.Equal(t, "cpu", k.get("svc/cgroup.subtree_control"))
}

func TestWhatFailsAtT2LeavesTheTierBelowAndNoTrace(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused here")
	call := func(call string) func(*fakeKernel) {
		return func(k *fakeKernel) { k.fail[call] = refused }
	}
	for name, c := range map[string]struct {
		spoil func(*fakeKernel)
		want  string
	}{
		"no write access":                {call("mkdir svc/node"), "make leaf node: refused here"},
		"the second leaf":                {call("mkdir svc/prover"), "make leaf prover: refused here"},
		"moving the node":                {call("write svc/node/cgroup.procs"), "to leaf node: refused here"},
		"turning controllers on":         {call("write svc/cgroup.subtree_control"), "turn on controller cpu: refused here"},
		"the node's weight":              {call("write svc/node/cpu.weight"), "set the node's weight: refused here"},
		"the prover's weight":            {call("write svc/prover/cpu.weight"), "set the prover's weight: refused here"},
		"the prover's memory":            {call("write svc/prover/memory.max"), "set the prover's memory: refused here"},
		"the prover's end":               {call("write svc/prover/memory.oom.group"), "when memory is out: refused here"},
		"no clone3":                      {func(k *fakeKernel) { k.noStart = refused }, "T2: refused here"},
		"controller cpu elsewhere":       {func(k *fakeKernel) { k.set("svc/cgroup.controllers", "memory pids") }, "controller cpu is not delegated"},
		"a shell in the group":           {func(k *fakeKernel) { k.set("svc/cgroup.procs", own+"\n77\n78\n") }, "2 other processes"},
		"a process from outside":         {func(k *fakeKernel) { k.set("svc/cgroup.procs", own+"\n0\n") }, "1 other processes"},
		"unreadable processes":           {func(k *fakeKernel) { k.set("svc/cgroup.procs", "many") }, "list the processes"},
		"a threaded group":               {func(k *fakeKernel) { k.set("svc/cgroup.type", "threaded\n") }, "the group is threaded"},
		"the root of the host":           {func(k *fakeKernel) { _ = os.Remove(filepath.Join(k.root, "svc/cgroup.type")) }, "root group"},
		"no list of controllers":         {func(k *fakeKernel) { _ = os.Remove(filepath.Join(k.root, "svc/cgroup.controllers")) }, "read the controllers"},
		"no state of controllers":        {func(k *fakeKernel) { _ = os.Remove(filepath.Join(k.root, "svc/cgroup.subtree_control")) }, "turn on controller cpu"},
		"a group outside the mount":      {func(k *fakeKernel) { k.setAt(k.proc, "self/cgroup", "0::/../other\n") }, "outside of what is mounted"},
		"a group that is gone":           {func(k *fakeKernel) { k.setAt(k.proc, "self/cgroup", "0::/svc (deleted)\n") }, "outside of what is mounted"},
		"a process without a v2 group":   {func(k *fakeKernel) { k.setAt(k.proc, "self/cgroup", "4:cpu:/x\n") }, "names no v2 group"},
		"no list of groups":              {func(k *fakeKernel) { _ = os.Remove(filepath.Join(k.proc, "self/cgroup")) }, "find the own control group"},
		"another node in the same group": {func(k *fakeKernel) { k.leave("node", "99") }, "another node runs in"},
		"an old leaf that stays":         {func(k *fakeKernel) { k.leave("node", ""); k.fail["rmdir svc/node"] = refused }, "leaf of an earlier node: refused here"},
		"an old prover that stays":       {func(k *fakeKernel) { k.leave("prover", "98"); k.fail["write svc/prover/cgroup.kill"] = refused }, "leaf of an earlier prover: refused here"},
		"version 1":                      {func(k *fakeKernel) { k.version("cpu/cpu.shares") }, "T2: the host has cgroup v1, this needs v2"},
		"both versions":                  {func(k *fakeKernel) { k.version("cpu/cpu.shares", "unified/cgroup.controllers") }, "T2: the host has cgroup hybrid, this needs v2"},
		"neither version":                {func(k *fakeKernel) { k.version() }, "T2: the host has cgroup none, this needs v2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cpus, tier := range map[int]Tier{2: Tier0, 8: Tier1} {
				k := newFakeKernel(t, "/svc", "cpu", "memory")
				c.spoil(k)
				before := k.snapshot()
				cfg := k.config()
				cfg.MemoryMax = 1 << 30
				s := k.scheduler(cfg, cpus)
				require.Equal(t, tier, s.Tier())
				require.Contains(t, s.Placement().Reason, c.want)
				require.Empty(t, s.Placement().CgroupPath)
				require.Equal(t, before, k.snapshot())
				cmd := exec.Command("/bin/true")
				require.NoError(t, s.Place(ClassProver)(cmd))
				require.False(t, cmd.SysProcAttr.UseCgroupFD)
				require.NoError(t, s.Close())
			}
		})
	}
}

// leave makes a leaf as an earlier node left it.
func (k *fakeKernel) leave(leaf, pid string) {
	require.NoError(k.t, k.mkdir(filepath.Join(k.root, "svc", leaf)))
	k.set("svc/"+leaf+"/cgroup.procs", pid)
}

// version turns the host into one that has these files.
func (k *fakeKernel) version(files ...string) {
	require.NoError(k.t, os.RemoveAll(k.root))
	require.NoError(k.t, os.MkdirAll(k.root, 0o755))
	for _, f := range files {
		require.NoError(k.t, os.MkdirAll(filepath.Dir(filepath.Join(k.root, f)), 0o755))
		k.set(f, "")
	}
}

func TestLeavesOfACrashedNodeAreReplaced(t *testing.T) {
	t.Parallel()
	k := newFakeKernel(t, "/svc", "cpu", "memory")
	k.leave("node", "")
	k.leave("prover", "98\n97\n")
	k.set("svc/prover/cpu.max", "2000 20000")
	k.calls()
	s := k.scheduler(k.config(), 2)
	require.Equal(t, Tier2, s.Tier(), s.Placement().Reason)
	require.Subset(t, k.calls(), []string{"rmdir svc/node", "write svc/prover/cgroup.kill 1", "rmdir svc/prover", "mkdir svc/prover"})
	require.Equal(t, "max 20000", k.get("svc/prover/cpu.max"))
	require.NoError(t, s.Close())
}

func TestAKernelWithoutGroupKillKillsByProcess(t *testing.T) {
	t.Parallel()
	k := newFakeKernel(t, "/svc", "cpu")
	k.leave("prover", "")
	require.NoError(t, os.Remove(filepath.Join(k.root, "svc/prover/cgroup.kill")))
	cmd := exec.Command("/proc/self/exe", "report", "wait")
	require.NoError(t, cmd.Start())
	k.set("svc/prover/cgroup.procs", strconv.Itoa(cmd.Process.Pid))
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		k.set("svc/prover/cgroup.procs", "")
		done <- err
	}()
	s := k.scheduler(k.config(), 2)
	require.Equal(t, Tier2, s.Tier(), s.Placement().Reason)
	var exit *exec.ExitError
	require.ErrorAs(t, <-done, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
	require.NoError(t, s.Close())
}

func TestCloseSaysWhatStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(t, "/svc", "cpu")
		s := k.scheduler(k.config(), 2)
		require.Equal(t, Tier2, s.Tier())
		k.immortal = true
		k.set("svc/prover/cgroup.procs", "98")
		err := s.Close()
		require.ErrorIs(t, err, syscall.EBUSY)
		require.ErrorContains(t, err, "remove the control groups: ")
		require.NoDirExists(t, filepath.Join(k.root, "svc/node"))
		require.Equal(t, own, k.get("svc/cgroup.procs"))
	})
}

func TestKernelFilesAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	s := parseCPUStat("usage_usec 1500000\nuser_usec 7\nnr_periods 90\nnr_throttled 12\nthrottled_usec 2000\nnew_key\n")
	require.Equal(t, "1.5s 2ms 12", strings.Join([]string{s.usage.String(), s.throttled.String(), strconv.FormatUint(s.throttles, 10)}, " "))
	require.Zero(t, parseCPUStat("usage_usec -1\nnr_throttled many\n"))
	require.Equal(t, 60.7, parsePressure("some avg10=60.70 avg60=36.95 avg300=25.54 total=2546642680\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=0\n"))
	for _, text := range []string{"", "some", "some avg10=x", "some avg10=-1", "some avg10=101", "some avg10=NaN", "full avg10=5"} {
		require.Zero(t, parsePressure(text), text)
	}
	require.Equal(t, "max 20000", quota(4, 4))
	require.Equal(t, "79980 20000", quota(3.999, 4))
	require.Equal(t, "2000 20000", quota(0.1, 4))
	require.Equal(t, "1000 20000", quota(0.01, 4))
	for release, ok := range map[string]bool{"6.18.1-generic": true, "5.7": true, "5.6.19": false, "4.19.0": false, "rolling": false, "": false} {
		require.Equal(t, ok, checkRelease(release) == nil, release)
	}
}

func FuzzKernelFiles(f *testing.F) {
	f.Add("usage_usec 1500000\nnr_throttled 12\nthrottled_usec 2000\n")
	f.Add("some avg10=60.70 avg60=36.95 avg300=25.54 total=2546642680\n")
	f.Add("123 456 7\n")
	f.Add("processor : 0\nphysical id : 0\ncore id : 1\n\nprocessor : 1\n")
	f.Add("0-3,7")
	f.Fuzz(func(t *testing.T, text string) {
		s := parseCPUStat(text)
		require.GreaterOrEqual(t, min(s.usage, s.throttled), s.usage*0)
		p := parsePressure(text)
		require.True(t, p >= 0 && p <= 100)
		if d, ok := parseSchedstat(text); ok {
			require.True(t, d.run >= 0 && d.wait >= 0)
		}
		parseTopology(text)
		if cpus, err := parseCPUs(text); err == nil {
			require.NotEmpty(t, cpus)
			again, err := parseCPUs(formatCPUs(cpus))
			require.NoError(t, err)
			require.Equal(t, cpus, again)
			require.Less(t, cpus[len(cpus)-1], maxCPU)
		}
	})
}

func TestTheRealKernelWritesOneFileThatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := osKernel{}
	require.ErrorIs(t, k.write(filepath.Join(dir, "cpu.max"), "max"), fs.ErrNotExist)
	require.NoError(t, k.mkdir(filepath.Join(dir, "leaf")))
	require.ErrorIs(t, k.mkdir(filepath.Join(dir, "leaf")), fs.ErrExist)
	require.ErrorIs(t, k.rmdir(dir), syscall.ENOTEMPTY)
	require.NoError(t, k.rmdir(filepath.Join(dir, "leaf")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cpu.max"), nil, 0o644))
	require.NoError(t, k.write(filepath.Join(dir, "cpu.max"), "max 20000"))
	text, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	require.NoError(t, err)
	require.Equal(t, "max 20000", string(text))
}

// Started in the group that it would be in anyway: what the kernel says to that is what the question foretold.
func TestStartingInAGroupWorksWhereItIsSaidTo(t *testing.T) {
	t.Parallel()
	group, err := ownGroup("/proc/self/cgroup")
	if err != nil {
		t.Skip("not run: " + err.Error())
	}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, group, "cgroup.procs")); err != nil {
			continue
		}
		dir, err := os.Open(filepath.Join(root, group))
		require.NoError(t, err)
		defer func() { require.NoError(t, dir.Close()) }()
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
		err = cmd.Run()
		if said := (osKernel{}).canStartInGroup(); said != nil {
			require.Error(t, err, said)
		} else if !errors.Is(err, fs.ErrPermission) { // the group may be another user's
			require.NoError(t, err)
		}
		return
	}
	t.Skip("not run: no v2 hierarchy")
}

// A host that delegates groups to this test shows that the kernel takes all of this.
func TestRealControlGroups(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("/proc/self/exe", "groups").CombinedOutput()
	require.NoError(t, err, string(out))
	if why, ok := strings.CutPrefix(string(out), "not run: "); ok {
		t.Skip("not run: " + why)
	}
	require.Contains(t, string(out), "in prover leaf: true")
	require.Contains(t, string(out), "quota: 10000 20000")
	require.Contains(t, string(out), "left: true")
}
