package prover

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNotInstalled says that no usable environment of the lean-pq backend was found.
var ErrNotInstalled = errors.New("the lean-pq prover is not installed")

// LeanPQVersion is the version of py-lean-pq that Install installs and Locate accepts.
const LeanPQVersion = "0.7.0"

// markerName is the file that makes a directory an environment; it is written last.
const markerName = "aggnode-prover.json"

// Environment is an installed lean-pq backend. Immutable.
type Environment struct {
	Dir     string `json:"-"`                // absolute
	Python  string `json:"python"`           // absolute path of the interpreter
	Target  string `json:"target,omitempty"` // directory of the packages where no virtual environment could be made
	Version string `json:"python_version"`   // of the interpreter, "3.12.4"
	Package string `json:"package_version"`  // of py-lean-pq
}

// DefaultDir is where Install puts the environment and Locate looks: $XDG_DATA_HOME/aggnode/prover, or
// ~/.local/share/aggnode/prover.
func DefaultDir() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "aggnode", "prover"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the user's data directory (set XDG_DATA_HOME or name a directory): %w", err)
	}
	return filepath.Join(home, ".local", "share", "aggnode", "prover"), nil
}

// Locate reads the environment in dir, DefaultDir where dir is empty. It runs nothing; an error wraps ErrNotInstalled
// where there is none or one of another version.
func Locate(dir string) (Environment, error) {
	dir, err := resolveDir(dir)
	if err != nil {
		return Environment{}, err
	}
	b, err := os.ReadFile(filepath.Join(dir, markerName))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return Environment{}, fmt.Errorf("%w in %s", ErrNotInstalled, dir)
		}
		return Environment{}, fmt.Errorf("read prover environment: %w", err)
	}
	var env Environment
	if err := json.Unmarshal(b, &env); err != nil {
		return Environment{}, fmt.Errorf("%w: read %s: %w", ErrNotInstalled, filepath.Join(dir, markerName), err)
	}
	env.Dir = dir
	if env.Package != LeanPQVersion {
		return Environment{}, fmt.Errorf("%w: %s holds py-lean-pq %s, this program needs %s", ErrNotInstalled, dir, env.Package, LeanPQVersion)
	}
	return env, env.usable()
}

// FromPython is the environment of an interpreter that has py-lean-pq already.
func FromPython(python string) Environment { return Environment{Python: python} }

func resolveDir(dir string) (string, error) {
	if dir == "" {
		return DefaultDir()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve prover directory: %w", err)
	}
	return abs, nil
}

func (e Environment) usable() error {
	if e.Python == "" {
		return fmt.Errorf("%w: no interpreter named", ErrNotInstalled)
	}
	// Stat follows the links of a virtual environment: an interpreter that was upgraded away is found here.
	if _, err := os.Stat(e.Python); err != nil {
		return fmt.Errorf("%w: its interpreter is gone: %w", ErrNotInstalled, err)
	}
	return nil
}

// environ is the environment of a child that runs in e.
func (e Environment) environ() []string {
	if e.Target == "" {
		return childEnviron()
	}
	return childEnviron(targetVariable + "=" + e.Target)
}

// targetVariable tells the child where its packages are: isolated mode ignores PYTHONPATH.
const targetVariable = "AGGNODE_PROVER_TARGET"
