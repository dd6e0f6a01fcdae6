package scheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// enterPasses is how often the processes of a tree are listed: one that an unmoved process starts during the first pass
// is born where that one was, and met by the second.
const enterPasses = 2

// enter moves a process and its descendants into a leaf. Those that end meanwhile are left out.
func (c *cgroups) enter(leaf, proc string, pid int) error {
	moved := make(map[int]bool)
	for range enterPasses {
		for _, p := range processTree(proc, pid) {
			if moved[p] {
				continue
			}
			moved[p] = true
			if err := c.write(filepath.Join(leaf, "cgroup.procs"), strconv.Itoa(p)); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move process %d to leaf %s: %w", p, leaf, err)
			}
		}
	}
	return nil
}

// leave moves everybody in a leaf back to the parent.
func (c *cgroups) leave(leaf string) error {
	pids, err := c.processes(leaf)
	if err != nil {
		return err
	}
	for _, p := range pids {
		if err := c.write("cgroup.procs", strconv.Itoa(p)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("move process %d out of leaf %s: %w", p, leaf, err)
		}
	}
	return nil
}

// setWeight sets the prover's share against weightNode.
func (c *cgroups) setWeight(weight int) error {
	if err := c.write(filepath.Join(proverLeaf, "cpu.weight"), strconv.Itoa(weight)); err != nil {
		return fmt.Errorf("set the prover's weight: %w", err)
	}
	return nil
}

// setCores sets the prover's quota; p cores and more are none.
func (c *cgroups) setCores(cores float64, p int) error {
	if err := c.write(filepath.Join(proverLeaf, "cpu.max"), quota(cores, p)); err != nil {
		return fmt.Errorf("set the prover's quota: %w", err)
	}
	return nil
}

func quota(cores float64, p int) string {
	limit := "max"
	if cores < float64(p) {
		limit = strconv.Itoa(max(minQuota, int(cores*quotaPeriod)))
	}
	return limit + " " + strconv.Itoa(quotaPeriod)
}

// setMemory bounds the memory of the prover; past it, all its processes go, since a tree with a hole is of no use.
func (c *cgroups) setMemory(bytes int64) error {
	if err := c.write(filepath.Join(proverLeaf, "memory.max"), strconv.FormatInt(bytes, 10)); err != nil {
		return fmt.Errorf("set the prover's memory: %w", err)
	}
	if err := c.write(filepath.Join(proverLeaf, "memory.oom.group"), "1"); err != nil {
		return fmt.Errorf("set the prover's end when memory is out: %w", err)
	}
	return nil
}

// cpuStat is what the prover's leaf used since it was made.
type cpuStat struct {
	usage     time.Duration // CPU time
	throttled time.Duration // time in which threads waited for a new quota
	throttles uint64        // periods in which the quota ran out
}

func (c *cgroups) stat() (cpuStat, error) {
	text, err := os.ReadFile(filepath.Join(c.parent, proverLeaf, "cpu.stat"))
	if err != nil {
		return cpuStat{}, fmt.Errorf("read the prover's CPU use: %w", err)
	}
	return parseCPUStat(string(text)), nil
}

// pressure is avg10 of "some" of the node's leaf in percent; 0 where the kernel does not measure it.
func (c *cgroups) pressure() float64 {
	text, err := os.ReadFile(filepath.Join(c.parent, nodeLeaf, "cpu.pressure"))
	if err != nil {
		return 0
	}
	return parsePressure(string(text))
}

// ownGroup reads the path of the own group in the v2 hierarchy, "/" for its root, from /proc/self/cgroup.
func ownGroup(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("find the own control group: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		switch {
		case !ok:
			continue
		case !strings.HasPrefix(path, "/"), strings.Contains(path+"/", "/../"), strings.HasSuffix(path, " (deleted)"):
			return "", fmt.Errorf("the own control group %q is outside of what is mounted", path)
		}
		return filepath.Clean(path), nil
	}
	return "", fmt.Errorf("%s names no v2 group", file)
}

// parseCPUStat reads the lines that it knows; what is missing or does not read is 0.
func parseCPUStat(text string) cpuStat {
	var s cpuStat
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 53) // microseconds: 53 bits are nanoseconds below 64
		if err != nil {
			continue
		}
		switch key {
		case "usage_usec":
			s.usage = time.Duration(n) * time.Microsecond
		case "throttled_usec":
			s.throttled = time.Duration(n) * time.Microsecond
		case "nr_throttled":
			s.throttles = n
		}
	}
	return s
}

// parsePressure reads avg10 of the line "some", 0 to 100.
func parsePressure(text string) float64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "some" {
			continue
		}
		value, ok := strings.CutPrefix(fields[1], "avg10=")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && v >= 0 && v <= 100 {
			return v
		}
	}
	return 0
}
