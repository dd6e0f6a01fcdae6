package prover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// InstallOptions says what Install does. The zero value is the default.
type InstallOptions struct {
	Dir      string    // directory of the environment; default DefaultDir
	Wheel    string    // file of py-lean-pq to install without network and without pip; default: pip from its index
	Python   string    // interpreter, a path or a name; default: the first fit one in PATH
	Progress io.Writer // one line a step, and one at least each two seconds; default: none
}

// Install makes the environment of the lean-pq backend and returns it. Where dir holds one that works already it is
// checked and returned as it is. The environment appears whole or not at all: it is built beside dir and renamed, under
// a lock that keeps a second Install waiting. Nothing but the builds whose SHA-256 this program knows is installed; pip
// keeps its own configuration (index, proxy, certificates).
func Install(ctx context.Context, opts InstallOptions) (Environment, error) {
	say := newProgress(opts.Progress)
	if err := cpuSupported(); err != nil {
		return Environment{}, err
	}
	dir, err := resolveDir(opts.Dir)
	if err != nil {
		return Environment{}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Environment{}, fmt.Errorf("make the directory of the prover environment: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock", say)
	if err != nil {
		return Environment{}, err
	}
	defer unlock()

	env, err := Locate(dir)
	if err == nil {
		say.line("checking the environment in %s", dir)
		if err = env.Check(ctx); err == nil {
			say.line("py-lean-pq %s with Python %s is installed in %s", env.Package, env.Version, dir)
			return env, nil
		}
	}
	if ctx.Err() != nil {
		return Environment{}, ctx.Err()
	}
	if isEmptyOrOurs, listErr := mayReplace(dir); listErr != nil {
		return Environment{}, listErr
	} else if !isEmptyOrOurs {
		return Environment{}, fmt.Errorf("%s is not empty and holds no prover environment: name another directory", dir)
	}
	if !errors.Is(err, ErrNotInstalled) {
		say.line("the environment in %s does not work (%v): making it anew", dir, err)
	}
	return build(ctx, dir, opts, say)
}

// build makes the environment in a new directory beside dir and puts it in place.
func build(ctx context.Context, dir string, opts InstallOptions, say *progressWriter) (Environment, error) {
	removeLeftovers(dir)
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+tmpMark)
	if err != nil {
		return Environment{}, fmt.Errorf("make the prover environment: %w", err)
	}
	defer os.RemoveAll(tmp) // after success it has another name
	if err := os.Chmod(tmp, 0o755); err != nil {
		return Environment{}, fmt.Errorf("make the prover environment: %w", err)
	}
	var env Environment
	if opts.Wheel != "" {
		env, err = fromWheel(ctx, tmp, opts, say)
	} else {
		env, err = fromIndex(ctx, tmp, opts, say)
	}
	if err != nil {
		return Environment{}, err
	}
	say.line("checking that Python %s loads py-lean-pq", env.Version)
	if err := env.Check(ctx); err != nil {
		return Environment{}, err
	}
	env.Package = LeanPQVersion

	// The interpreter of a virtual environment and the packages move with the directory.
	moved := env
	moved.Dir = dir
	moved.Python, moved.Target = rebase(env.Python, tmp, dir), rebase(env.Target, tmp, dir)
	marker, err := json.MarshalIndent(moved, "", "  ")
	if err != nil {
		return Environment{}, fmt.Errorf("write prover environment: %w", err)
	}
	if err := os.WriteFile(filepath.Join(tmp, markerName), append(marker, '\n'), 0o644); err != nil {
		return Environment{}, fmt.Errorf("write prover environment: %w", err)
	}
	if err := replace(tmp, dir); err != nil {
		return Environment{}, err
	}
	say.line("installed py-lean-pq %s with Python %s in %s", moved.Package, moved.Version, dir)
	return moved, nil
}

// Marks in the names of directories beside the environment.
const (
	tmpMark = ".new-"
	oldMark = ".old-"
)

// removeLeftovers removes what an Install that was killed left behind; the lock is held.
func removeLeftovers(dir string) {
	for _, mark := range []string{tmpMark, oldMark} {
		left, _ := filepath.Glob(dir + mark + "*") // only a malformed pattern is an error, and then nothing is removed
		for _, l := range left {
			os.RemoveAll(l)
		}
	}
}

func replace(tmp, dir string) error {
	old := ""
	if _, err := os.Lstat(dir); err == nil {
		old = dir + oldMark + filepath.Base(tmp)
		if err := os.Rename(dir, old); err != nil {
			return fmt.Errorf("move the old prover environment away: %w", err)
		}
	}
	if err := os.Rename(tmp, dir); err != nil {
		if old != "" {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return fmt.Errorf("put the prover environment in place: %w", err)
	}
	if old != "" {
		os.RemoveAll(old) // a leftover is removed by the next Install
	}
	return nil
}

func rebase(path, from, to string) string {
	if rest, ok := strings.CutPrefix(path, from+string(filepath.Separator)); ok {
		return filepath.Join(to, rest)
	}
	return path
}

// mayReplace protects a directory that is somebody else's.
func mayReplace(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", dir, err)
	}
	for _, e := range entries {
		if e.Name() == markerName {
			return true, nil
		}
	}
	return len(entries) == 0, nil
}

// lockEvery is how often a waiting Install looks whether the lock is free.
const lockEvery = 200 * time.Millisecond

// lockFile takes an exclusive lock, which the kernel frees when the holder ends in any way.
func lockFile(ctx context.Context, path string, say *progressWriter) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the prover environment: %w", err)
	}
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	stop := say.heartbeat("another installation is running: waiting for it")
	defer stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the prover environment: %w", err), f.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}
