package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// LockedError says that another process uses the data directory.
type LockedError struct {
	Dir string
	PID int // 0 when it is not known
}

// Error names the directory and the process.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}

	return fmt.Sprintf("data directory %s is in use by %s: give each node its own --data-dir", e.Dir, who)
}

// lockDir takes the directory's lock and writes our process id into it. The lock
// is the kernel's and ends with the process, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		locked := &LockedError{Dir: dir, PID: readPID(f)}

		return nil, errors.Join(locked, f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock data directory: %w", err), f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock data directory: %w", err), f.Close())
	}

	return f, nil
}

// readPID returns the process id in the lock file, 0 when there is none.
func readPID(f io.ReaderAt) int {
	var b [20]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}

	return pid
}

// writePID replaces the content of the lock file.
func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)

	return err
}
