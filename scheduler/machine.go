package scheduler

import (
	"os"
	"path/filepath"
	"runtime"
)

// CgroupVersion is the kind of control groups of a machine.
type CgroupVersion uint8

// Versions. Hybrid machines, which mount both, count as v1: their CPU controller is the old one.
const (
	CgroupUnknown CgroupVersion = iota
	CgroupNone
	CgroupV1
	CgroupV2
)

// String returns "none", "v1" or "v2".
func (v CgroupVersion) String() string {
	switch v {
	case CgroupNone:
		return "none"
	case CgroupV1:
		return "v1"
	case CgroupV2:
		return "v2"
	case CgroupUnknown:
	}
	return "unknown"
}

// Machine is what placement can build on.
type Machine struct {
	CPUs   int // GOMAXPROCS: what the process may use, its quota included
	Cgroup CgroupVersion
}

// detect looks below root, "/" on a real machine.
func detect(root string) Machine {
	m := Machine{CPUs: runtime.GOMAXPROCS(0), Cgroup: CgroupNone}
	isThere := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	switch {
	case isThere("sys/fs/cgroup/cgroup.controllers"):
		m.Cgroup = CgroupV2
	case isThere("sys/fs/cgroup/cpu"), isThere("sys/fs/cgroup/cpu,cpuacct"):
		m.Cgroup = CgroupV1
	}
	return m
}
