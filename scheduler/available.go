package scheduler

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AvailableMemory returns the bytes that this process and its children can still take before something must go: what the
// machine has, or less where a control group above us (cgroup v2) has a limit. Page cache that the kernel can drop counts
// as available. 0 where nothing is known. Empty roots are those of this machine.
func AvailableMemory(procRoot, cgroupRoot string) int64 {
	cfg := Config{ProcRoot: procRoot, CgroupRoot: cgroupRoot}
	setDefaults(&cfg)
	kib, err := field(filepath.Join(cfg.ProcRoot, "meminfo"), "MemAvailable:")
	if err != nil {
		return 0
	}
	path := "/"
	for controllers, p := range ownGroups(cfg.ProcRoot) {
		if controllers == "" {
			path = p
		}
	}
	available := kib << 10
	for dir := range upwards(path) {
		available = min(available, groupRoom(filepath.Join(cfg.CgroupRoot, dir)))
	}
	return available
}

// groupRoom is what a control group may still take in bytes, more than any machine has where it has no limit.
func groupRoom(dir string) int64 {
	limit, ok := readNumber(filepath.Join(dir, "memory.max"))
	used, isUsed := readNumber(filepath.Join(dir, "memory.current"))
	if !ok || !isUsed {
		return math.MaxInt64
	}
	cache, _ := field(filepath.Join(dir, "memory.stat"), "inactive_file") // without it nothing counts as cache
	return max(limit-used+cache, 0)
}

// ownGroups yields the control groups of this process: the controllers of a hierarchy, none for v2, and the path in it,
// cleaned, so that it can not climb out of the mount.
func ownGroups(proc string) func(yield func(controllers, path string) bool) {
	return func(yield func(string, string) bool) {
		text, _ := os.ReadFile(filepath.Join(proc, "self", "cgroup")) // no file, no group
		for line := range strings.Lines(string(text)) {
			_, entry, _ := strings.Cut(strings.TrimSpace(line), ":") // past the number of the hierarchy
			controllers, path, _ := strings.Cut(entry, ":")
			if !yield(controllers, filepath.Clean("/"+path)) {
				return
			}
		}
	}
}

// upwards yields an absolute path and all above it, the root last.
func upwards(path string) func(yield func(dir string) bool) {
	return func(yield func(string) bool) {
		for dir := path; yield(dir) && dir != "/"; dir = filepath.Dir(dir) {
		}
	}
}

// readNumber reads a file that holds one number; false for "max", and where there is none.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field returns the number after the word that a line of a file begins with.
func field(path, word string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == word {
			return strconv.ParseInt(words[1], 10, 54) // 54 bits of KiB are below 64 of bytes
		}
	}
	return 0, fmt.Errorf("no %s in %s", strings.TrimSuffix(word, ":"), path)
}
