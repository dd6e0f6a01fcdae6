package prover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Versions of Python that py-lean-pq is built for: 3.11 to 3.14.
const (
	pythonMinorMin = 11
	pythonMinorMax = 14
)

// probeTimeout bounds a question to an interpreter: starting one takes 20 ms, and seconds on a cold disk.
const probeTimeout = 30 * time.Second

// interpreter is what a Python says about itself.
type interpreter struct {
	Path           string `json:"executable"`     // absolute; of the program itself, not of a wrapper that chooses it
	Implementation string `json:"implementation"` // "cpython"
	Version        string `json:"version"`        // "3.12.4"
	Major          int    `json:"major"`
	Minor          int    `json:"minor"`
	Machine        string `json:"machine"` // "x86_64"
	Libc           string `json:"libc"`    // "glibc", empty for others
	LibcVersion    string `json:"libc_version"`
	FreeThreaded   bool   `json:"free_threaded"`
	HasVenv        bool   `json:"venv"` // venv and the ensurepip that it needs
	HasPip         bool   `json:"pip"`
}

const probeProgram = `
import importlib.util as u, json, platform, sys, sysconfig
libc = platform.libc_ver()
print(json.dumps(dict(executable=sys.executable, implementation=sys.implementation.name, version=platform.python_version(),
    major=sys.version_info[0], minor=sys.version_info[1], machine=platform.machine(), libc=libc[0], libc_version=libc[1],
    free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    venv=u.find_spec("venv") is not None and u.find_spec("ensurepip") is not None, pip=u.find_spec("pip") is not None)))
`

func (i interpreter) tag() string { return fmt.Sprintf("cp%d%d", i.Major, i.Minor) }

// unfit says why an interpreter can not be used, empty where it can.
func (i interpreter) unfit() string {
	switch {
	case i.Implementation != "cpython":
		return fmt.Sprintf("is %s, not CPython", i.Implementation)
	case i.Major != 3 || i.Minor < pythonMinorMin || i.Minor > pythonMinorMax:
		return fmt.Sprintf("is Python %s", i.Version)
	case i.FreeThreaded:
		return "is a free-threaded build, for which there is no package"
	case i.Libc != "glibc":
		return "is not linked with glibc, for which alone there are packages"
	case i.arch() == "":
		return fmt.Sprintf("runs on %s, for which there is no package", i.Machine)
	}
	return ""
}

func (i interpreter) arch() string {
	switch i.Machine {
	case "x86_64", "amd64":
		return "x86_64"
	case "aarch64", "arm64":
		return "aarch64"
	}
	return ""
}

// findPython returns a fit interpreter: the named one, else the best in PATH, where one that can make virtual
// environments goes before one that can not. With tag it must be of that version.
func findPython(ctx context.Context, name, tag string) (interpreter, error) {
	names := []string{name}
	if name == "" {
		names = []string{"python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"}
	}
	var seen []string
	var fallback *interpreter
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			continue
		}
		i, err := probe(ctx, path)
		if ctx.Err() != nil {
			return interpreter{}, ctx.Err()
		}
		if err != nil {
			seen = append(seen, fmt.Sprintf("%s does not run (%v)", path, err))
			continue
		}
		why := i.unfit()
		if why == "" && tag != "" && i.tag() != tag {
			why = fmt.Sprintf("is Python %s, the package is for %s", i.Version, tag)
		}
		switch {
		case why != "":
			seen = append(seen, path+" "+why)
		case i.HasVenv:
			return i, nil
		case fallback == nil:
			fallback = &i
		}
	}
	if fallback != nil {
		return *fallback, nil
	}
	found := "none was found"
	if len(seen) > 0 {
		found = strings.Join(seen, "; ")
	}
	return interpreter{}, fmt.Errorf("no fit Python: lean-pq needs CPython 3.%d to 3.%d for Linux on glibc (%s): install one (Debian and "+
		"Ubuntu: apt install python3 python3-venv) or name it with --python", pythonMinorMin, pythonMinorMax, found)
}

func probe(ctx context.Context, path string) (interpreter, error) {
	out, err := ask(ctx, childEnviron(), path, "-I", "-B", "-c", probeProgram)
	if err != nil {
		return interpreter{}, err
	}
	var i interpreter
	if err := json.Unmarshal(out, &i); err != nil {
		return interpreter{}, fmt.Errorf("read what it says: %w", err)
	}
	if !filepath.IsAbs(i.Path) {
		i.Path = path
	}
	return i, nil
}

// checkProgram loads the package as the child does and names its version.
const checkProgram = `
import os, sys
target = os.environ.get("` + targetVariable + `")
if target: sys.path.insert(0, target)
import py_lean_pq
print(py_lean_pq.__version__)
`

// Check runs the interpreter and sees that it loads py-lean-pq of the right version. An error wraps ErrNotInstalled
// unless ctx ended.
func (e Environment) Check(ctx context.Context) error {
	if err := e.usable(); err != nil {
		return err
	}
	out, err := ask(ctx, e.environ(), e.Python, "-I", "-B", "-c", checkProgram)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %s does not load it: %w", ErrNotInstalled, e.Python, err)
	}
	if v := strings.TrimSpace(string(out)); v != LeanPQVersion {
		return fmt.Errorf("%w: py-lean-pq there is %q, this program needs %s", ErrNotInstalled, v, LeanPQVersion)
	}
	return nil
}

// answerMax bounds what an interpreter may answer, in bytes.
const answerMax = 64 << 10

// ask runs a short command and returns what it prints; its last line on stderr goes into the error.
func ask(ctx context.Context, env []string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.WaitDelay = env, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, errOut := &boundedBuffer{}, &boundedBuffer{}
	cmd.Stdout, cmd.Stderr = out, errOut
	if err := cmd.Run(); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("no answer within %s", probeTimeout)
		}
		lines := strings.Split(strings.TrimSpace(errOut.b.String()), "\n")
		if last := lines[len(lines)-1]; last != "" {
			return nil, fmt.Errorf("%w: %s", err, last)
		}
		return nil, err
	}
	return out.b.Bytes(), nil
}

// boundedBuffer keeps the first answerMax bytes and drops the rest.
type boundedBuffer struct{ b bytes.Buffer }

func (w *boundedBuffer) Write(p []byte) (int, error) {
	if room := answerMax - w.b.Len(); room > 0 {
		w.b.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
