package prover

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// systemPython finds an interpreter that the child program is for.
func systemPython(t *testing.T) string {
	t.Helper()
	i, err := findPython(t.Context(), "", "")
	if err != nil {
		t.Skip("not run: " + err.Error())
	}
	return i.Path
}

// The frames of the shipped child, with another backend behind them.
func TestConformanceOfTheChildProgram(t *testing.T) {
	t.Parallel()
	python := systemPython(t)
	toy, err := filepath.Abs("testdata/toy_child.py")
	require.NoError(t, err)
	frames, err := filepath.Abs("leanpq_child.py")
	require.NoError(t, err)
	cfg := fakeConfig(RoleUnknown, modeGood)
	cfg.Command, cfg.Env = []string{python, "-I", "-B", toy, frames}, childEnviron()
	var out safeBuffer
	report, err := Conformance(t.Context(), cfg, &out)
	require.NoError(t, err, out.String())
	require.Equal(t, "toy", report.Capabilities.Backend)
	for _, c := range report.Checks {
		require.Empty(t, c.Skipped, c.Name)
	}
}

// A package that does not load ends Run with a refusal that says so, and a node must not start it again and again.
func TestAMissingPackageIsAClearRefusal(t *testing.T) {
	t.Parallel()
	python, target := systemPython(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(target, "py_lean_pq.py"), []byte(`raise ImportError("no such library here")`), 0o644))
	command, env, err := LeanPQ(Environment{Python: python, Target: target})
	require.NoError(t, err)
	cfg := fakeConfig(RoleVerify, modeGood)
	cfg.Command, cfg.Env = command, env
	c, err := New(cfg)
	require.NoError(t, err)
	err = c.Run(t.Context())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, CodeBackendMissing, refused.Code)
	require.ErrorContains(t, err, "no such library here")
}

func TestFindPythonReportsWhatItSaw(t *testing.T) {
	t.Parallel()
	old, odd := fakePython{version: "3.9.1"}.write(t, t.TempDir()), fakePython{}.write(t, t.TempDir())
	_, err := findPython(t.Context(), old, "")
	require.ErrorContains(t, err, old+" is Python 3.9.1")
	_, err = findPython(t.Context(), odd, "cp313")
	require.ErrorContains(t, err, "the package is for cp313")
	_, err = findPython(t.Context(), filepath.Join(t.TempDir(), "none"), "")
	require.ErrorContains(t, err, "none was found")
	i, err := findPython(t.Context(), odd, "cp312")
	require.NoError(t, err)
	require.Equal(t, odd, i.Path)
	require.Equal(t, "x86_64", i.arch())
	_, err = ask(t.Context(), nil, odd+".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}
