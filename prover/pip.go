package prover

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fromIndex installs with pip from the index that pip is configured for: into a virtual environment, or where none can
// be made into a plain directory of packages.
func fromIndex(ctx context.Context, tmp string, opts InstallOptions, say *progressWriter) (Environment, error) {
	py, err := findPython(ctx, opts.Python, "")
	if err != nil {
		return Environment{}, err
	}
	say.line("using Python %s at %s", py.Version, py.Path)
	list := filepath.Join(tmp, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements()), 0o644); err != nil {
		return Environment{}, fmt.Errorf("write requirements: %w", err)
	}
	env := Environment{Dir: tmp, Python: filepath.Join(tmp, "venv", "bin", "python"), Version: py.Version}
	if py.HasVenv {
		err := run(ctx, say, "making a virtual environment", py.Path, "-m", "venv", filepath.Join(tmp, "venv"))
		if err == nil {
			return env, pipInstall(ctx, say, env.Python, list)
		}
		if ctx.Err() != nil {
			return Environment{}, ctx.Err()
		}
		// Distributions ship a venv that only says so when it is used.
		say.line("that did not work (%v)", err)
		if err := os.RemoveAll(filepath.Join(tmp, "venv")); err != nil {
			return Environment{}, fmt.Errorf("remove virtual environment: %w", err)
		}
	}
	if !py.HasPip {
		return Environment{}, fmt.Errorf("the Python at %s can make no virtual environment and has no pip: install one (Debian and Ubuntu: apt "+
			"install python3-venv), or fetch py_lean_pq-%s for %s %s and give it with --prover-wheel", py.Path, LeanPQVersion, py.tag(), py.arch())
	}
	say.line("no virtual environment here: installing into a plain directory")
	env.Python, env.Target = py.Path, filepath.Join(tmp, "packages")
	return env, pipInstall(ctx, say, py.Path, list, "--target", env.Target)
}

// pipInstall lets pip fetch the package. Its environment and configuration are the user's: index, proxy, certificates.
func pipInstall(ctx context.Context, say *progressWriter, python, list string, extra ...string) error {
	args := append([]string{
		python, "-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--no-deps",
		"--disable-pip-version-check", "--no-input", "-r", list,
	}, extra...)
	err := run(ctx, say, "installing py-lean-pq "+LeanPQVersion, args...)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\nWithout network: fetch the file py_lean_pq-%s-… for this Python and machine and give it with --prover-wheel; "+
			"behind a proxy or a mirror: configure pip (PIP_INDEX_URL, HTTPS_PROXY, pip.conf)", err, LeanPQVersion)
	}
	return err
}

// pipTail is how many of the last lines of a failed command an error shows.
const pipTail = 12

// run runs a command with our environment, printing its lines as progress.
func run(ctx context.Context, say *progressWriter, what string, command ...string) error {
	say.line("%s", what)
	stop := say.heartbeat(what)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second // a grandchild that keeps the pipe must not hold us
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	lines := &lineWriter{say: say}
	cmd.Stdout, cmd.Stderr = lines, lines
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w\n%s", what, err, lines.last())
	}
	return nil
}

// lineWriter prints whole lines, indented, and remembers the last ones.
type lineWriter struct {
	say  *progressWriter
	mu   sync.Mutex
	part []byte   // guarded by mu: a line whose end has not come, at most stderrLineBytes
	tail []string // guarded by mu: at most pipTail lines
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range p {
		switch {
		case b == '\n' || b == '\r':
			w.flushLocked()
		case len(w.part) < stderrLineBytes:
			w.part = append(w.part, b)
		}
	}
	return len(p), nil
}

func (w *lineWriter) flushLocked() {
	line := strings.ToValidUTF8(strings.TrimRight(string(w.part), " \t"), "?")
	w.part = w.part[:0]
	if strings.TrimSpace(line) == "" {
		return
	}
	w.say.line("  %s", line)
	if w.tail = append(w.tail, "  "+line); len(w.tail) > pipTail {
		w.tail = w.tail[1:]
	}
}

func (w *lineWriter) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushLocked()
	return strings.Join(w.tail, "\n")
}

// wheelMax bounds a wheel and what it unpacks to, in bytes: the builds have some 4 MB and hold one library.
const wheelMax = 256 * mebibyte

// fromWheel unpacks a given file: no network, no pip and no virtual environment is needed.
func fromWheel(ctx context.Context, tmp string, opts InstallOptions, say *progressWriter) (Environment, error) {
	say.line("checking %s", opts.Wheel)
	f, err := os.Open(opts.Wheel)
	if err != nil {
		return Environment{}, fmt.Errorf("open wheel: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(f, wheelMax))
	if err != nil {
		return Environment{}, fmt.Errorf("read wheel: %w", err)
	}
	w, ok := wheelBySum(hex.EncodeToString(sum.Sum(nil)))
	if !ok {
		return Environment{}, fmt.Errorf("%s is none of the published builds of py-lean-pq %s for Linux (its SHA-256 is %x)",
			opts.Wheel, LeanPQVersion, sum.Sum(nil))
	}
	py, err := findPython(ctx, opts.Python, w.tag)
	if err != nil {
		return Environment{}, fmt.Errorf("the wheel is for %s on %s: %w", w.tag, w.arch, err)
	}
	if py.arch() != w.arch {
		return Environment{}, fmt.Errorf("%s is for %s, this machine is %s", opts.Wheel, w.arch, py.arch())
	}
	say.line("using Python %s at %s", py.Version, py.Path)
	env := Environment{Dir: tmp, Python: py.Path, Version: py.Version, Target: filepath.Join(tmp, "packages")}
	archive, err := zip.NewReader(f, size)
	if err != nil {
		return Environment{}, fmt.Errorf("read wheel: %w", err)
	}
	if err := unpack(ctx, archive, env.Target); err != nil {
		return Environment{}, err
	}
	return env, nil
}

// unpack writes the files of an archive below dir. os.Root refuses every path that leads out of it.
func unpack(ctx context.Context, archive *zip.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("unpack wheel: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack wheel: %w", err)
	}
	defer root.Close()
	left := int64(wheelMax)
	for _, entry := range archive.File {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if strings.HasSuffix(entry.Name, "/") {
			continue
		}
		n, err := unpackFile(root, entry, left)
		if err != nil {
			return fmt.Errorf("unpack wheel: %s: %w", entry.Name, err)
		}
		left -= n
	}
	return nil
}

func unpackFile(root *os.Root, entry *zip.File, left int64) (n int64, err error) {
	in, err := entry.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if err := root.MkdirAll(filepath.Dir(entry.Name), 0o755); err != nil {
		return 0, err
	}
	out, err := root.OpenFile(entry.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err = io.Copy(out, io.LimitReader(in, left+1))
	if err == nil && n > left {
		err = fmt.Errorf("unpacks to more than %d bytes", int64(wheelMax))
	}
	return n, err
}
