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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The two leaves under the parent. A service manager that starts the node in a group called nodeLeaf has made the
// first of them (DelegateSubgroup=node of systemd).
const (
	nodeLeaf   = "node"
	proverLeaf = "prover"
)

const (
	// quotaPeriod is the period of cpu.max in microseconds. With the kernel's 100 ms a prover of many threads burns
	// its quota on all cores first, and votes feel that (ARCHITECTURE.md section 7); 1 ms is the least there is.
	quotaPeriod = 20_000
	// minQuota is the least quota that the kernel takes, in microseconds.
	minQuota = 1000
	// emptyWithin bounds the wait for killed processes to leave a leaf; freeing some GiB takes a good part of a second.
	emptyWithin = 2 * time.Second
	emptyPoll   = 10 * time.Millisecond
)

// kernel is what is done to control groups besides reading. The real one is osKernel; tests have one that keeps the
// kernel's rules over a plain directory.
type kernel interface {
	mkdir(path string) error
	rmdir(path string) error
	write(path, text string) error
	// canStartInGroup tells whether processes can be started in a group at once (clone3, Linux 5.7).
	canStartInGroup() error
}

// cgroups are the two leaves of tier T2. Its methods are not safe for concurrent use, but for proverFD.
type cgroups struct {
	kernel kernel
	parent string // directory of the group that holds the leaves

	// What close has to undo.
	lock    *os.File // the parent, locked: two nodes started in one group, or in one process, would kill each other's provers
	entered bool     // this process moved from the parent to the node's leaf
	made    []string // directories, in the order of making
	enabled []string // controllers that were not on before
	prover  *os.File // open directory of the prover's leaf; nil before it is there

	hasMemory bool
}

// openCgroups finds the group of this process below root, makes the two leaves in it and moves this process and its
// children into the node's. After an error everything is as before.
func openCgroups(k kernel, root, proc string, memoryMax int64) (*cgroups, error) {
	if err := k.canStartInGroup(); err != nil {
		return nil, err
	}
	own, err := ownGroup(filepath.Join(proc, "self", "cgroup"))
	if err != nil {
		return nil, err
	}
	c := &cgroups{kernel: k, parent: filepath.Join(root, own)}
	inLeaf := filepath.Base(own) == nodeLeaf
	if inLeaf {
		c.parent = filepath.Dir(c.parent)
	}
	if err := c.open(inLeaf, proc, memoryMax); err != nil {
		if undo := c.close(); undo != nil {
			return nil, fmt.Errorf("%w (and undoing it: %w)", err, undo)
		}
		return nil, err
	}
	return c, nil
}

func (c *cgroups) open(inLeaf bool, proc string, memoryMax int64) error {
	controllers, err := c.check(proc)
	if err != nil {
		return err
	}
	if err := c.lockParent(); err != nil {
		return err
	}
	if err := c.clear(inLeaf); err != nil {
		return err
	}
	if !inLeaf {
		if err := c.make(nodeLeaf); err != nil {
			return err
		}
		// Before the controllers are turned on: the kernel allows that only in a group without processes.
		c.entered = true
		if err := c.enter(nodeLeaf, proc, os.Getpid()); err != nil {
			return err
		}
	}
	if err := c.make(proverLeaf); err != nil {
		return err
	}
	for _, controller := range []string{"cpu", "memory"} {
		if !slices.Contains(controllers, controller) {
			continue
		}
		if err := c.enable(controller); err != nil {
			return fmt.Errorf("turn on controller %s: %w", controller, err)
		}
		c.hasMemory = c.hasMemory || controller == "memory"
	}
	if err := c.write(filepath.Join(nodeLeaf, "cpu.weight"), strconv.Itoa(weightNode)); err != nil {
		return fmt.Errorf("set the node's weight: %w", err)
	}
	if err := c.setWeight(weightNormal); err != nil {
		return err
	}
	if memoryMax > 0 && c.hasMemory {
		if err := c.setMemory(memoryMax); err != nil {
			return err
		}
	}
	if c.prover, err = os.Open(filepath.Join(c.parent, proverLeaf)); err != nil {
		return fmt.Errorf("open the prover's leaf: %w", err)
	}
	return nil
}

// check says what forbids the use of the parent. It changes nothing.
func (c *cgroups) check(proc string) (controllers []string, err error) {
	kind, err := os.ReadFile(filepath.Join(c.parent, "cgroup.type"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("the process is in the root group of the host, which can not be divided")
	case err != nil:
		return nil, fmt.Errorf("read the kind of the group: %w", err)
	case strings.TrimSpace(string(kind)) != "domain":
		return nil, fmt.Errorf("the group is %s, must be domain", strings.TrimSpace(string(kind)))
	}
	text, err := os.ReadFile(filepath.Join(c.parent, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("read the controllers of the group: %w", err)
	}
	controllers = strings.Fields(string(text))
	if !slices.Contains(controllers, "cpu") {
		return nil, fmt.Errorf("controller cpu is not delegated to %s", c.parent)
	}
	pids, err := c.processes("")
	if err != nil {
		return nil, err
	}
	own := processTree(proc, os.Getpid())
	if others := slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(own, pid) }); len(others) > 0 {
		return nil, fmt.Errorf("%d other processes are in %s, where only the node may be", len(others), c.parent)
	}
	return controllers, nil
}

// lockParent takes the group for this scheduler. The kernel gives the lock back when the process ends, however it ends.
func (c *cgroups) lockParent() error {
	dir, err := os.Open(c.parent)
	if err != nil {
		return fmt.Errorf("open the group: %w", err)
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		c.lock = dir
		return nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another node uses it")
	}
	return errors.Join(fmt.Errorf("lock %s: %w", c.parent, err), dir.Close())
}

// clear removes the leaves that an earlier node left behind. Its provers are killed; if it still lives, that is an error.
func (c *cgroups) clear(inLeaf bool) error {
	if !inLeaf && c.isThere(nodeLeaf) {
		pids, err := c.processes(nodeLeaf)
		if err != nil {
			return err
		}
		if len(pids) > 0 {
			return fmt.Errorf("another node runs in %s", filepath.Join(c.parent, nodeLeaf))
		}
		if err := c.kernel.rmdir(filepath.Join(c.parent, nodeLeaf)); err != nil {
			return fmt.Errorf("remove the leaf of an earlier node: %w", err)
		}
	}
	if !c.isThere(proverLeaf) {
		return nil
	}
	if err := c.empty(proverLeaf); err != nil {
		return fmt.Errorf("remove the leaf of an earlier prover: %w", err)
	}
	return nil
}

// close kills what is left in the prover's leaf and undoes everything that open did.
func (c *cgroups) close() error {
	var errs []error
	if c.prover != nil {
		errs = append(errs, c.prover.Close())
	}
	if slices.Contains(c.made, proverLeaf) {
		errs = append(errs, c.empty(proverLeaf))
	}
	// The node can go back to the parent only when no controller is on for its leaves.
	for _, controller := range slices.Backward(c.enabled) {
		errs = append(errs, c.write("cgroup.subtree_control", "-"+controller))
	}
	if c.entered {
		errs = append(errs, c.leave(nodeLeaf))
	}
	if slices.Contains(c.made, nodeLeaf) {
		errs = append(errs, c.kernel.rmdir(filepath.Join(c.parent, nodeLeaf)))
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the control groups: %w", err)
	}
	return nil
}

// describe says in words what is in use.
func (c *cgroups) describe() string {
	if !c.hasMemory {
		return "leaves in " + c.parent + ", without controller memory"
	}
	return "leaves in " + c.parent
}

func (c *cgroups) make(leaf string) error {
	if err := c.kernel.mkdir(filepath.Join(c.parent, leaf)); err != nil {
		return fmt.Errorf("make leaf %s: %w", leaf, err)
	}
	c.made = append(c.made, leaf)
	return nil
}

func (c *cgroups) enable(controller string) error {
	on, err := os.ReadFile(filepath.Join(c.parent, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	if slices.Contains(strings.Fields(string(on)), controller) {
		return nil
	}
	if err := c.write("cgroup.subtree_control", "+"+controller); err != nil {
		return err
	}
	c.enabled = append(c.enabled, controller)
	return nil
}

// empty kills the processes of a leaf and removes it when they are gone.
func (c *cgroups) empty(leaf string) error {
	pids, err := c.processes(leaf)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		if err := c.kill(leaf, pids); err != nil {
			return err
		}
	}
	poll := time.NewTicker(emptyPoll)
	defer poll.Stop()
	for began := time.Now(); ; <-poll.C {
		err := c.kernel.rmdir(filepath.Join(c.parent, leaf))
		if err == nil || !errors.Is(err, syscall.EBUSY) || time.Since(began) > emptyWithin {
			return err
		}
	}
}

// kill ends all processes of a leaf: at once where the kernel can (5.14), else one after the other.
func (c *cgroups) kill(leaf string, pids []int) error {
	file := filepath.Join(leaf, "cgroup.kill")
	if c.isThere(file) {
		return c.write(file, "1")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill process %d of leaf %s: %w", pid, leaf, err)
		}
	}
	return nil
}

func (c *cgroups) processes(leaf string) ([]int, error) {
	text, err := os.ReadFile(filepath.Join(c.parent, leaf, "cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("list the processes of the group: %w", err)
	}
	var pids []int
	for _, f := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("list the processes of the group: %w", err)
		}
		pids = append(pids, pid) // 0 is a process outside of our view, and somebody else's too
	}
	return pids, nil
}

func (c *cgroups) isThere(name string) bool {
	_, err := os.Stat(filepath.Join(c.parent, name))
	return err == nil
}

func (c *cgroups) write(name, text string) error {
	return c.kernel.write(filepath.Join(c.parent, name), text)
}
