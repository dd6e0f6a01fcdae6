package scheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// provers are the process ids of the running provers, as far as Watch has been asked to look after them.
type provers struct {
	mu   sync.Mutex
	pids []int // guarded by mu
}

func (p *provers) add(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids = append(p.pids, pid)
}

func (p *provers) remove(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.pids, pid); i >= 0 {
		p.pids = slices.Delete(p.pids, i, i+1)
	}
}

func (p *provers) list() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.pids)
}

// affinityPasses is how often the threads of a tree are listed: one that an unvisited thread starts during the first
// pass has the old mask and is met by the second.
const affinityPasses = 2

// setTreeAffinity moves every thread of a process and its descendants to cpus. Threads that end meanwhile are left out.
func setTreeAffinity(proc string, pid int, cpus []int) error {
	set := cpuSet(cpus)
	for range affinityPasses {
		for _, p := range processTree(proc, pid) {
			threads, err := os.ReadDir(filepath.Join(proc, strconv.Itoa(p), "task"))
			if err != nil {
				continue // ended meanwhile
			}
			for _, t := range threads {
				tid, err := strconv.Atoi(t.Name())
				if err != nil {
					continue
				}
				if err := unix.SchedSetaffinity(tid, set); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("set CPUs %s of thread %d: %w", formatCPUs(cpus), tid, err)
				}
			}
		}
	}
	return nil
}
