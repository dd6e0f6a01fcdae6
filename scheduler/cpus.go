package scheduler

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCPU is one past the highest CPU number that unix.CPUSet holds.
const maxCPU = 1024

// allowedCPUs returns the CPUs that the calling thread may run on, ascending.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the CPU affinity: %w", err)
	}
	var cpus []int
	for cpu := range maxCPU {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// coreOrder orders CPUs so that the hyper-threads of one core stand side by side: a core whose two threads belong to
// both sides separates nothing. Without topology (most ARM machines, which have no hyper-threads) the order is by number.
func coreOrder(proc string, cpus []int) []int {
	text, _ := os.ReadFile(filepath.Join(proc, "cpuinfo")) // no topology then
	cores := parseTopology(string(text))
	first := make(map[string]int) // the lowest CPU of a core stands for it
	lead := make(map[int]int, len(cpus))
	out := sorted(cpus)
	for _, cpu := range out {
		lead[cpu] = cpu
		if core, ok := cores[cpu]; ok {
			if _, seen := first[core]; !seen {
				first[core] = cpu
			}
			lead[cpu] = first[core]
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return lead[a] - lead[b] })
	return out
}

// parseTopology maps CPU numbers to a name of their core, from the blocks of /proc/cpuinfo that have one.
func parseTopology(text string) map[int]string {
	cores := make(map[int]string)
	for block := range strings.SplitSeq(text, "\n\n") {
		cpu, socket, core := -1, "", ""
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			switch strings.TrimSpace(key) {
			case "processor":
				if n, err := strconv.Atoi(value); err == nil {
					cpu = n
				}
			case "physical id":
				socket = value
			case "core id":
				core = value
			}
		}
		if cpu >= 0 && core != "" {
			cores[cpu] = socket + "/" + core
		}
	}
	return cores
}

// parseCPUs reads a list in the form of the kernel, "0-2,5".
func parseCPUs(text string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", text, err)
		}
		to, err := strconv.ParseUint(high, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", text, err)
		}
		if from > to || to >= maxCPU {
			return nil, fmt.Errorf("CPU list %q: %s, must ascend and stay below %d", text, part, maxCPU)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// formatCPUs is the inverse of parseCPUs for an ascending list.
func formatCPUs(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(cpus[j]))
		}
		i = j + 1
	}
	return b.String()
}

func cpuSet(cpus []int) *unix.CPUSet {
	set := new(unix.CPUSet)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
}

func sorted(cpus []int) []int {
	out := slices.Clone(cpus)
	slices.Sort(out)
	return out
}
