package scheduler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeKernel keeps the rules of cgroup v2 over a plain directory: which files a group has, that a group with processes
// has no controllers for its children, that a group in use cannot be removed, and that a process is in one group.
type fakeKernel struct {
	t        *testing.T
	root     string
	proc     string
	noStart  error
	immortal bool // killed processes stay

	mu   sync.Mutex
	fail map[string]error // by "OP path below the root": that call fails
	log  []string         // calls that worked: "write svc/prover/cpu.max 5000 20000"
}

// files of a group by the controller that brings them, with the kernel's defaults.
var groupFiles = map[string]map[string]string{
	"": {
		"cgroup.type": "domain", "cgroup.procs": "", "cgroup.controllers": "", "cgroup.subtree_control": "", "cgroup.kill": "",
		"cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\n", "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	},
	"cpu":    {"cpu.weight": "100", "cpu.max": "max 100000"},
	"memory": {"memory.max": "max", "memory.oom.group": "0"},
}

// newFakeKernel makes a host whose group own, a path such as "/svc", is delegated with the controllers and holds this process.
func newFakeKernel(t *testing.T, own string, controllers ...string) *fakeKernel {
	t.Helper()
	k := &fakeKernel{t: t, root: t.TempDir(), proc: t.TempDir(), fail: make(map[string]error)}
	k.set("cgroup.controllers", strings.Join(controllers, " "))
	k.set("cgroup.subtree_control", strings.Join(controllers, " "))
	k.set("cgroup.procs", "1\n2\n")
	divided := filepath.Join(k.root, own)
	if filepath.Base(own) == nodeLeaf {
		divided = filepath.Dir(divided)
	}
	dir := k.root
	for _, part := range strings.Split(strings.Trim(own, "/"), "/") {
		dir = filepath.Join(dir, part)
		require.NoError(t, k.mkdir(dir))
		if strings.HasPrefix(divided, dir+"/") {
			k.setAt(dir, "cgroup.subtree_control", strings.Join(controllers, " "))
		}
		k.setAt(dir, "cgroup.controllers", strings.Join(controllers, " "))
	}
	k.setAt(dir, "cgroup.procs", strconv.Itoa(os.Getpid())+"\n")
	require.NoError(t, os.MkdirAll(filepath.Join(k.proc, "self"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(k.proc, "self", "cgroup"), []byte("0::"+own+"\n"), 0o644))
	k.log = nil
	return k
}

func (k *fakeKernel) config() Config {
	return Config{Budget: Budget{Tier: TierAuto}, CgroupRoot: k.root, ProcRoot: k.proc}
}

// scheduler makes one on this host with a number of CPUs.
func (k *fakeKernel) scheduler(cfg Config, cpus int) *Scheduler {
	k.t.Helper()
	s, err := newScheduler(cfg, seams{kernel: k, cpus: func() ([]int, error) { return upTo(cpus), nil }}, cpus)
	require.NoError(k.t, err)
	return s
}

func upTo(n int) []int {
	var out []int
	for i := range n {
		out = append(out, i)
	}
	return out
}

// snapshot is the whole tree as text.
func (k *fakeKernel) snapshot() string {
	var out []string
	require.NoError(k.t, filepath.WalkDir(k.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out = append(out, strings.TrimPrefix(path, k.root)+"="+strings.Join(strings.Fields(string(text)), " "))
		return err
	}))
	return strings.Join(out, "\n")
}

func (k *fakeKernel) get(name string) string {
	text, err := os.ReadFile(filepath.Join(k.root, name))
	require.NoError(k.t, err)
	return strings.TrimSpace(string(text))
}

func (k *fakeKernel) set(name, text string) { k.setAt(k.root, name, text) }

func (k *fakeKernel) setAt(dir, name, text string) {
	require.NoError(k.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// failing makes a call fail from now on; nil ends that.
func (k *fakeKernel) failing(call string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail[call] = err
}

// calls returns and forgets the calls since the last time.
func (k *fakeKernel) calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.log
	k.log = nil
	return out
}

func (k *fakeKernel) begin(op, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fail[op+" "+strings.TrimPrefix(path, k.root+"/")]
}

func (k *fakeKernel) end(op, path, text string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, strings.TrimSpace(op+" "+strings.TrimPrefix(path, k.root+"/")+" "+text))
	return nil
}

func (k *fakeKernel) canStartInGroup() error { return k.noStart }

func (k *fakeKernel) mkdir(path string) error {
	if err := k.begin("mkdir", path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	k.addFiles(path, "")
	for _, controller := range k.list(filepath.Dir(path), "cgroup.subtree_control") {
		k.addFiles(path, controller)
	}
	k.setAt(path, "cgroup.controllers", strings.Join(k.list(filepath.Dir(path), "cgroup.subtree_control"), " "))
	return k.end("mkdir", path, "")
}

func (k *fakeKernel) addFiles(dir, controller string) {
	for name, text := range groupFiles[controller] {
		k.setAt(dir, name, text)
	}
}

func (k *fakeKernel) rmdir(path string) error {
	if err := k.begin("rmdir", path); err != nil {
		return err
	}
	if len(k.list(path, "cgroup.procs")) > 0 || len(k.children(path)) > 0 {
		return &fs.PathError{Op: "rmdir", Path: path, Err: syscall.EBUSY}
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return k.end("rmdir", path, "")
}

func (k *fakeKernel) write(path, text string) error {
	if err := k.begin("write", path); err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	dir, name := filepath.Split(path)
	switch name {
	case "cgroup.procs":
		if len(k.list(dir, "cgroup.subtree_control")) > 0 {
			return fmt.Errorf("write %s: %w", path, syscall.EBUSY)
		}
		k.move(dir, text)
	case "cgroup.subtree_control":
		if err := k.control(filepath.Clean(dir), text); err != nil {
			return err
		}
	case "cgroup.kill":
		if !k.immortal {
			k.setAt(dir, "cgroup.procs", "")
		}
	default:
		k.setAt(dir, name, text)
	}
	return k.end("write", path, text)
}

func (k *fakeKernel) move(dir, pid string) {
	require.NoError(k.t, filepath.WalkDir(k.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" {
			left := slices.DeleteFunc(k.list(filepath.Dir(path), "cgroup.procs"), func(p string) bool { return p == pid })
			k.setAt(filepath.Dir(path), "cgroup.procs", strings.Join(left, "\n"))
		}
		return err
	}))
	k.setAt(dir, "cgroup.procs", strings.Join(append(k.list(dir, "cgroup.procs"), pid), "\n"))
}

func (k *fakeKernel) control(dir, text string) error {
	on := k.list(dir, "cgroup.subtree_control")
	controller := text[1:]
	switch {
	case !slices.Contains(k.list(dir, "cgroup.controllers"), controller):
		return syscall.ENOENT
	case text[0] == '+' && len(k.list(dir, "cgroup.procs")) > 0:
		return syscall.EBUSY
	case text[0] == '+':
		on = append(on, controller)
		for _, child := range k.children(dir) {
			k.addFiles(child, controller)
		}
	default:
		on = slices.DeleteFunc(on, func(c string) bool { return c == controller })
		for _, child := range k.children(dir) {
			for name := range groupFiles[controller] {
				require.NoError(k.t, os.Remove(filepath.Join(child, name)))
			}
		}
	}
	k.setAt(dir, "cgroup.subtree_control", strings.Join(on, " "))
	return nil
}

func (k *fakeKernel) list(dir, name string) []string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

func (k *fakeKernel) children(dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(k.t, err)
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}
