package prover

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakePython is a shell script that answers as an interpreter does; what it says and does is written into it.
type fakePython struct {
	version          string // default 3.12.4
	implementation   string // default cpython
	libc             string // default glibc
	machine          string // default x86_64
	noVenv, noPip    bool
	venvFails        bool
	pip              string // shell commands run by "-m pip", default success
	packageVersion   string // default LeanPQVersion
	packageLoads     string // shell condition under which the package loads, default true
	freeThreaded     bool
	say              string // shell commands before anything else
	notAnInterpreter bool
}

// write makes the script in dir and returns its path. Every run of venv and pip is a line in dir/calls.
func (f fakePython) write(t *testing.T, dir string) string {
	t.Helper()
	or := func(s, def string) string {
		if s == "" {
			return def
		}
		return s
	}
	version := or(f.version, "3.12.4")
	minor := strings.Split(version, ".")[1]
	probe := fmt.Sprintf(`{"implementation":%q,"version":%q,"major":3,"minor":%s,"machine":%q,"libc":%q,"libc_version":"2.36","free_threaded":%v,"venv":%v,"pip":%v}`,
		or(f.implementation, "cpython"), version, minor, or(f.machine, "x86_64"), or(f.libc, "glibc"), f.freeThreaded, !f.noVenv, !f.noPip)
	if f.notAnInterpreter {
		probe = "hello"
	}
	venv := `mkdir -p "$3/bin" && cp "$0" "$3/bin/python"`
	if f.venvFails {
		venv = `echo "ensurepip is not available" >&2; exit 1`
	}
	script := fmt.Sprintf(`#!/bin/sh
%s
case "$*" in
*free_threaded*) echo '%s' ;;
*"import py_lean_pq"*) if %s; then echo '%s'; else echo "ModuleNotFoundError: no py_lean_pq" >&2; exit 1; fi ;;
"-m venv "*) echo "venv" >>'%s/calls'; %s ;;
"-m pip "*) echo "pip $* index=$PIP_INDEX_URL" >>'%s/calls'; %s ;;
esac
`, f.say, probe, or(f.packageLoads, "true"), or(f.packageVersion, LeanPQVersion), dir, venv, dir, or(f.pip, "echo Successfully installed"))
	path := filepath.Join(dir, "python")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

func calls(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "calls"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(b)
}

// leftovers lists what is beside the environment but its lock.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	found, err := filepath.Glob(dir + ".*")
	require.NoError(t, err)
	for _, f := range found {
		if f != dir+".lock" {
			out = append(out, f)
		}
	}
	return out
}

func TestInstall(t *testing.T) {
	t.Setenv("PIP_INDEX_URL", "https://mirror.example")
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "a", "prover")
	python := fakePython{}.write(t, bin)
	_, err := Locate(dir)
	require.ErrorIs(t, err, ErrNotInstalled)
	require.NoError(t, os.MkdirAll(dir+tmpMark+"123", 0o755)) // of an Install that was killed

	var out safeBuffer
	env, err := Install(t.Context(), InstallOptions{Dir: dir, Python: python, Progress: &out})
	require.NoError(t, err)
	require.Equal(t, Environment{Dir: dir, Python: filepath.Join(dir, "venv", "bin", "python"), Version: "3.12.4", Package: LeanPQVersion}, env)
	log := calls(t, bin)
	for _, want := range []string{"venv\n", "--require-hashes", "--only-binary=:all:", "--no-deps", "index=https://mirror.example"} {
		require.Contains(t, log, want)
	}
	list, err := os.ReadFile(filepath.Join(dir, "requirements.txt"))
	require.NoError(t, err)
	require.Equal(t, 8, strings.Count(string(list), "--hash=sha256:"))
	require.Empty(t, leftovers(t, dir))
	require.Contains(t, out.String(), "Successfully installed")

	found, err := Locate(dir)
	require.NoError(t, err)
	require.Equal(t, env, found)
	again, err := Install(t.Context(), InstallOptions{Dir: dir, Python: python})
	require.NoError(t, err)
	require.Equal(t, env, again)
	require.Equal(t, log, calls(t, bin), "the second time nothing is made")

	command, environ, err := LeanPQ(env)
	require.NoError(t, err)
	require.Equal(t, []string{env.Python, "-I", "-B", "-c"}, command[:4])
	require.NotContains(t, strings.Join(environ, " "), "PIP_INDEX_URL")

	t.Run("an environment whose interpreter is gone is made anew", func(t *testing.T) {
		require.NoError(t, os.Remove(env.Python))
		_, err := Locate(dir)
		require.ErrorIs(t, err, ErrNotInstalled)
		_, _, err = LeanPQ(env)
		require.ErrorIs(t, err, ErrNotInstalled)
		again, err := Install(t.Context(), InstallOptions{Dir: dir, Python: python})
		require.NoError(t, err)
		require.Equal(t, env, again)
		require.Empty(t, leftovers(t, dir))
	})
	t.Run("a marker of another version is no environment", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, markerName), []byte(`{"python":"/bin/sh","package_version":"0.6.0"}`), 0o644))
		_, err := Locate(dir)
		require.ErrorIs(t, err, ErrNotInstalled)
		require.NoError(t, os.WriteFile(filepath.Join(dir, markerName), []byte(`{`), 0o644))
		_, err = Locate(dir)
		require.ErrorIs(t, err, ErrNotInstalled)
		_, err = Install(t.Context(), InstallOptions{Dir: dir, Python: python})
		require.NoError(t, err)
	})
}

func TestInstallWithoutVirtualEnvironment(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fakePython{"venv fails": {venvFails: true}, "ensurepip is missing": {noVenv: true}} {
		bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "prover")
		python := f.write(t, bin)
		env, err := Install(t.Context(), InstallOptions{Dir: dir, Python: python})
		require.NoError(t, err, name)
		require.Equal(t, python, env.Python)
		require.Equal(t, filepath.Join(dir, "packages"), env.Target)
		require.Contains(t, calls(t, bin), "--target")
		_, environ, err := LeanPQ(env)
		require.NoError(t, err)
		require.Contains(t, environ, targetVariable+"="+env.Target)
	}
}

func TestInstallSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		python fakePython
		want   []string
	}{
		"too old":            {fakePython{version: "3.10.2"}, []string{"is Python 3.10.2", "3.11 to 3.14", "--python"}},
		"too new":            {fakePython{version: "3.15.0"}, []string{"is Python 3.15.0"}},
		"not CPython":        {fakePython{implementation: "pypy"}, []string{"is pypy"}},
		"musl":               {fakePython{libc: "musl"}, []string{"glibc"}},
		"a strange machine":  {fakePython{machine: "riscv64"}, []string{"riscv64"}},
		"free-threaded":      {fakePython{freeThreaded: true}, []string{"free-threaded"}},
		"does not run":       {fakePython{say: "exit 3"}, []string{"does not run"}},
		"no interpreter":     {fakePython{notAnInterpreter: true}, []string{"does not run"}},
		"no venv and no pip": {fakePython{noVenv: true, noPip: true}, []string{"python3-venv", "--prover-wheel", "cp312"}},
		"pip fails":          {fakePython{pip: "echo 'ERROR: no route to host'; exit 1"}, []string{"no route to host", "--prover-wheel", "PIP_INDEX_URL"}},
		"wrong package":      {fakePython{packageVersion: "0.6.0"}, []string{"0.6.0", LeanPQVersion}},
		"does not load":      {fakePython{packageLoads: "false"}, []string{"ModuleNotFoundError"}},
	} {
		bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "prover")
		_, err := Install(t.Context(), InstallOptions{Dir: dir, Python: c.python.write(t, bin)})
		require.Error(t, err, name)
		for _, want := range c.want {
			require.ErrorContains(t, err, want, name)
		}
		require.NoDirExists(t, dir, name)
		require.Empty(t, leftovers(t, dir), name)
	}
	t.Run("a directory of somebody else", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644))
		_, err := Install(t.Context(), InstallOptions{Dir: dir, Python: fakePython{}.write(t, t.TempDir())})
		require.ErrorContains(t, err, "not empty")
		require.FileExists(t, filepath.Join(dir, "thesis.tex"))
	})
	t.Run("a wheel that is none", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "py_lean_pq.whl")
		_, err := Install(t.Context(), InstallOptions{Dir: filepath.Join(t.TempDir(), "p"), Wheel: file})
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NoError(t, os.WriteFile(file, []byte("wheel"), 0o644))
		_, err = Install(t.Context(), InstallOptions{Dir: filepath.Join(t.TempDir(), "p"), Wheel: file})
		require.ErrorContains(t, err, "SHA-256")
	})
}

// A cancelled Install ends pip and what pip started, and leaves nothing.
func TestInstallIsCancelled(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "prover")
	python := fakePython{pip: "sh -c 'while :; do :; done'"}.write(t, bin)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Install(ctx, InstallOptions{Dir: dir, Python: python})
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(calls(t, bin), "pip") }, time.Minute, 5*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoDirExists(t, dir)
	require.Empty(t, leftovers(t, dir))
}

func TestTwoInstallsAtOnceMakeOne(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "prover")
	python := fakePython{}.write(t, bin)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = Install(t.Context(), InstallOptions{Dir: dir, Python: python}) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 1, strings.Count(calls(t, bin), "venv\n"))
}

func TestProgressIsNeverSilentForLong(t *testing.T) {
	t.Parallel()
	require.Less(t, heartbeatEvery+heartbeatEvery/8, 2200*time.Millisecond)
	var out safeBuffer
	p := newProgress(&out)
	p.last = time.Now().Add(-time.Minute)
	stop := p.heartbeat("working")
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "working (") }, time.Minute, 10*time.Millisecond)
	stop()
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	archive := func(names ...string) *zip.Reader {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, n := range names {
			f, err := w.Create(n)
			require.NoError(t, err)
			if !strings.HasSuffix(n, "/") {
				_, err = f.Write([]byte("content of " + n))
				require.NoError(t, err)
			}
		}
		require.NoError(t, w.Close())
		r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		require.NoError(t, err)
		return r
	}
	dir := filepath.Join(t.TempDir(), "packages")
	require.NoError(t, unpack(t.Context(), archive("a/b/c.py", "a/", "d.so"), dir))
	got, err := os.ReadFile(filepath.Join(dir, "a/b/c.py"))
	require.NoError(t, err)
	require.Equal(t, "content of a/b/c.py", string(got))
	for _, bad := range []string{"../escape", "/absolute", "a/../../escape"} {
		parent := t.TempDir()
		require.Error(t, unpack(t.Context(), archive(bad), filepath.Join(parent, "packages")), bad)
		require.NoFileExists(t, filepath.Join(parent, "escape"))
	}
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	_, err = unpackFile(root, archive("big").File[0], 3)
	require.ErrorContains(t, err, "unpacks to more")
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/data")
	d, err := DefaultDir()
	require.NoError(t, err)
	require.Equal(t, "/data/aggnode/prover", d)
	t.Setenv("XDG_DATA_HOME", "relative is ignored")
	t.Setenv("HOME", "/home/me")
	d, err = DefaultDir()
	require.NoError(t, err)
	require.Equal(t, "/home/me/.local/share/aggnode/prover", d)
}
