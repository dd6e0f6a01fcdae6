package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// watchEvery is the distance of looks at a child's memory: a prover takes about 1 GiB in a second (lean-pq 0.7.0), so
// it can run about a quarter of that past its limit. A look costs some 50 us.
const watchEvery = 250 * time.Millisecond

// maxTree bounds the processes of one tree that are added up.
const maxTree = 256

// Watch returns the function that guards the memory of a child of a class: it blocks until the process tree of pid
// holds more than max bytes of resident memory and then says so, nil once ctx ends. A process that is gone holds none.
// A prover that is watched also follows changes of the budget while it runs, below T2.
func (s *Scheduler) Watch(class Class) func(ctx context.Context, pid int, max int64) error {
	resident, kills := s.metrics.resident.WithLabelValues(class.String()), s.metrics.kills.WithLabelValues(class.String())
	return func(ctx context.Context, pid int, max int64) error {
		if class == ClassProver {
			s.provers.add(pid)
			defer s.provers.remove(pid)
		}
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		held := int64(0) // at the last look
		defer func() { resident.Sub(float64(held)) }()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			now := treeMemory(s.cfg.ProcRoot, pid)
			resident.Add(float64(now - held))
			if held = now; held > max {
				kills.Inc()
				return fmt.Errorf("process tree of %s %d holds %d MiB, its limit is %d MiB", class, pid, held>>20, max>>20)
			}
		}
	}
}

// treeMemory adds up the resident memory in bytes of a process and its descendants. Pages that processes share are
// counted for each of them: a limit is met too early rather than too late.
func treeMemory(proc string, pid int) int64 {
	pageSize, total := int64(os.Getpagesize()), int64(0)
	for _, p := range processTree(proc, pid) {
		statm, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(p), "statm"))
		if err != nil {
			continue // ended meanwhile
		}
		if fields := bytes.Fields(statm); len(fields) > 1 {
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64) // 0 for what does not read
			total += pages * pageSize
		}
	}
	return total
}

// processTree lists a process and its descendants, at most maxTree. Some may have ended.
func processTree(proc string, pid int) []int {
	tree := []int{pid}
	for n := 0; n < len(tree) && n < maxTree; n++ {
		lists, _ := filepath.Glob(filepath.Join(proc, strconv.Itoa(tree[n]), "task", "*", "children")) // the pattern is well-formed
		for _, list := range lists {
			children, err := os.ReadFile(list)
			if err != nil {
				continue
			}
			for _, f := range bytes.Fields(children) {
				if child, err := strconv.Atoi(string(f)); err == nil {
					tree = append(tree, child)
				}
			}
		}
	}
	return tree[:min(len(tree), maxTree)]
}
