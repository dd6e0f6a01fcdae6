package scheduler

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// osKernel is the kernel of this machine.
type osKernel struct{}

func (osKernel) mkdir(path string) error { return os.Mkdir(path, 0o755) }

func (osKernel) rmdir(path string) error {
	if err := unix.Rmdir(path); err != nil { // os.Remove would try to unlink first and report that
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

// write writes an existing file in one call: each write to a control file is a command of its own.
func (osKernel) write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// canStartInGroup asks for clone3 with no arguments: EINVAL where it exists, ENOSYS where the kernel is old or a
// container's filter hides it. The flag for groups came with Linux 5.7, four releases after the call.
func (osKernel) canStartInGroup() error {
	if _, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0); errno != unix.EINVAL {
		return fmt.Errorf("start a process in a group: clone3: %w", errno)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("read the version of the kernel: %w", err)
	}
	return checkRelease(unix.ByteSliceToString(name.Release[:]))
}

// checkRelease refuses Linux below 5.7.
func checkRelease(release string) error {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("version of the kernel %q: %w", strings.TrimSpace(release), err)
	}
	if major < 5 || major == 5 && minor < 7 {
		return fmt.Errorf("start a process in a group: Linux %d.%d, this needs 5.7", major, minor)
	}
	return nil
}
