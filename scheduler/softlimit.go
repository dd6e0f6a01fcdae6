package scheduler

import (
	"fmt"
	"math"
	"path/filepath"
)

// The rule of SoftLimit.
const (
	// groupShare is what the node may take of a control group's limit, less its children: such a limit was set for the
	// node, and the tenth is for what the Go runtime does not count (thread stacks of the kernel, mapped files).
	groupShare = 0.9
	// machineShare is the same of a machine without such a limit, which has other programs to serve.
	machineShare = 0.5
	// leastSoftLimit is never gone below: a limit near what is live makes the collector run all the time. A node of a
	// devnet of 64 validators lives in some 30 MiB (Intel Xeon, 2026-12); for 4,096 it is a guess.
	leastSoftLimit = 256 << 20
)

// SoftLimit returns the soft memory limit for the Go runtime of the node (debug.SetMemoryLimit) in bytes, and where it
// comes from, in words: 0.9 of the least memory limit of the process's control groups (v1 or v2), or half of the machine's
// memory if that is less, after what the children are expected to take, and 256 MiB at the least. The limit makes the
// collector work harder near it and kills nothing. children is in bytes. Empty roots are those of this machine.
func SoftLimit(procRoot, cgroupRoot string, children int64) (limit int64, why string, err error) {
	cfg := Config{ProcRoot: procRoot, CgroupRoot: cgroupRoot}
	setDefaults(&cfg)
	total, err := machineMemory(cfg.ProcRoot)
	if err != nil {
		return 0, "", err
	}
	limit, why = int64(machineShare*float64(total-children)), fmt.Sprintf("half of the machine's %d MiB", total>>20)
	if group := groupMemory(cfg.ProcRoot, cfg.CgroupRoot); group < total {
		if l := int64(groupShare * float64(group-children)); l < limit {
			limit, why = l, fmt.Sprintf("%g of the control group's %d MiB", groupShare, group>>20)
		}
	}
	return max(limit, leastSoftLimit), fmt.Sprintf("%s, after %d MiB for children", why, children>>20), nil
}

// machineMemory reads MemTotal in bytes.
func machineMemory(proc string) (int64, error) {
	kib, err := field(filepath.Join(proc, "meminfo"), "MemTotal:")
	if err != nil {
		return 0, fmt.Errorf("read the size of the memory: %w", err)
	}
	return kib << 10, nil
}

// groupMemory returns the least memory limit in bytes of the control groups that this process is in, from its own up to
// the root; math.MaxInt64 for none. In a container the path that the kernel names may lie outside of what is mounted: then
// the root of the mount is the container's own group.
func groupMemory(proc, root string) int64 {
	least := int64(math.MaxInt64)
	for controllers, path := range ownGroups(proc) {
		mount, file := root, "memory.max"
		switch controllers {
		case "":
		case "memory":
			mount, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := range upwards(path) {
			if n, ok := readNumber(filepath.Join(mount, dir, file)); ok && n > 0 { // "max" does not read
				least = min(least, n)
			}
		}
	}
	return least
}
