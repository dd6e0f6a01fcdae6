package scheduler

import (
	"os"
	"path/filepath"
)

// CgroupVersion is the kind of control groups of a machine.
type CgroupVersion uint8

// Versions.
const (
	CgroupUnknown CgroupVersion = iota
	CgroupNone
	CgroupV1
	CgroupHybrid // both are mounted, and the CPU controller is the old one
	CgroupV2
)

// String returns "none", "v1", "hybrid" or "v2".
func (v CgroupVersion) String() string {
	switch v {
	case CgroupNone:
		return "none"
	case CgroupV1:
		return "v1"
	case CgroupHybrid:
		return "hybrid"
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

// detect looks below root, where control groups are mounted.
func detect(root string) CgroupVersion {
	isThere := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	isV1 := isThere("cpu") || isThere("cpu,cpuacct")
	switch {
	case isThere("cgroup.controllers"):
		return CgroupV2
	case isV1 && isThere("unified/cgroup.controllers"):
		return CgroupHybrid
	case isV1:
		return CgroupV1
	}
	return CgroupNone
}
