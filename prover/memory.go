package prover

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// availableMemory returns the bytes that this process and its children can still take before something must go: what the
// machine has, or less where a control group above us (cgroup v2) has a limit. Page cache that the kernel can drop counts
// as available. 0 where nothing is known. The roots are /proc and the mount of cgroup v2.
func availableMemory(proc, cgroup string) int64 {
	b, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return 0
	}
	available := field(b, "MemAvailable:") << 10 // kB
	for group := ownGroup(proc); ; group = filepath.Dir(group) {
		available = min(available, groupRoom(filepath.Join(cgroup, group)))
		if group == "/" {
			return available
		}
	}
}

// ownGroup is the path of this process in cgroup v2, below its mount; "/" where there is none.
func ownGroup(proc string) string {
	b, _ := os.ReadFile(filepath.Join(proc, "self", "cgroup")) // no file, no group
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join("/", path)
		}
	}
	return "/"
}

// groupRoom is what a control group may still take in bytes, more than any machine has where it has no limit.
func groupRoom(dir string) int64 {
	limit, ok := readNumber(filepath.Join(dir, "memory.max"))
	used, isUsed := readNumber(filepath.Join(dir, "memory.current"))
	if !ok || !isUsed {
		return math.MaxInt64
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat")) // without it nothing counts as cache
	return max(limit-used+field(stat, "inactive_file"), 0)
}

// readNumber reads a file that holds one number; false for "max", and where there is none.
func readNumber(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

// field finds the line that begins with the word name and returns the number after it, 0 where there is none.
func field(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) > 1 && string(words[0]) == name {
			n, _ := strconv.ParseInt(string(words[1]), 10, 64) // 0 for what does not read
			return n
		}
	}
	return 0
}

// residentMemory returns the bytes that a process holds, 0 for one that is gone.
func residentMemory(pid int) int64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	words := bytes.Fields(b)
	if len(words) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(words[1]), 10, 64) // 0 for what does not read
	return pages * int64(os.Getpagesize())
}
