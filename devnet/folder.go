package devnet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	tempPrefix = "aggnode-devnet-"
	pidFile    = "devnet.pid"
)

// makeFolder returns the folder of this run: the one asked for, which must be empty or new, or a temporary one, which
// remove deletes.
func makeFolder(asked string) (dir string, remove func() error, err error) {
	if asked != "" {
		if entries, err := os.ReadDir(asked); err == nil && len(entries) > 0 {
			return "", nil, fmt.Errorf("--dir %s: the folder is not empty", asked)
		}
		dir, err := filepath.Abs(asked)
		if err != nil {
			return "", nil, fmt.Errorf("--dir %s: %w", asked, err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a network folder is for all users of the machine
			return "", nil, fmt.Errorf("--dir %s: %w", asked, err)
		}
		return dir, func() error { return nil }, nil
	}
	if err := sweep(os.TempDir()); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp("", tempPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("mark the temporary folder: %w", err), os.RemoveAll(dir))
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// sweep removes the temporary folders of devnets that were killed: those of our own user whose process is gone.
func sweep(tmp string) error {
	dirs, err := filepath.Glob(filepath.Join(tmp, tempPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for old devnets: %w", err)
	}
	for _, dir := range dirs {
		b, err := os.ReadFile(filepath.Join(dir, pidFile))
		if err != nil {
			continue // another user's, or one that starts right now
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the folder of a devnet that is gone: %w", err)
		}
	}
	return nil
}
