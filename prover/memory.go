package prover

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

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
