package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"aggnode/prover"
	"aggnode/scheduler"
)

func newProverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prover",
		Short: "Install the prover, or check that a backend keeps the protocol",
	}
	cmd.AddCommand(newProverInstallCommand(), newProverCheckCommand())
	return cmd
}

func newProverInstallCommand() *cobra.Command {
	var (
		opts   prover.InstallOptions
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Make the environment of the lean-pq prover",
		Long: fmt.Sprintf(`install makes a Python environment with py-lean-pq %s, pinned by the SHA-256 of its wheel, in the
user's data directory, where every copy of this program finds it. Run again, it checks what is there
and returns. pip keeps its own configuration: index, proxy and certificates are yours to set.`, prover.LeanPQVersion),
		Example: `  aggnode prover install
  aggnode prover install --python python3.12 --prover-dir /opt/aggnode-prover
  aggnode prover install --prover-wheel py_lean_pq-0.7.0-cp312-cp312-manylinux_2_17_x86_64.whl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Progress = cmd.ErrOrStderr()
			env, err := prover.Install(cmd.Context(), opts)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(w).Encode(map[string]string{
					"dir": env.Dir, "python": env.Python, "python_version": env.Version, "package_version": env.Package, "target": env.Target,
				})
			}
			_, err = fmt.Fprintf(w, "py-lean-pq %s with Python %s is ready in %s\n", env.Package, env.Version, env.Dir)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Dir, "prover-dir", "", "where the environment goes; default: under the user's data directory, `DIR`")
	f.StringVar(&opts.Wheel, "prover-wheel", "", "wheel of py-lean-pq, for machines without network, `FILE`")
	f.StringVar(&opts.Python, "python", "", "interpreter, 3.11 to 3.14; default: the first fit one on the path, `PATH`")
	f.BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func newProverCheckCommand() *cobra.Command {
	var (
		backend, proverDir string
		asJSON             bool
	)
	cmd := &cobra.Command{
		Use:   "check [-- CMD ARG...]",
		Short: "Run a backend through the conformance test of the prover protocol",
		Long: `check starts the backend as the node would and runs every rule of docs/prover-protocol.md against
it: hello, ping, proofs and their claims, refusals, bad frames, deadlines, end of input. CMD is any
program that speaks the protocol on its own pipes; --backend lean-pq checks the shipped one.
Exit code 1 when a rule is broken.`,
		Example: `  aggnode prover check --backend lean-pq
  aggnode prover check -- ./my-prover --fast`,
		RunE: func(cmd *cobra.Command, args []string) error {
			place, err := scheduler.New(scheduler.Config{})
			if err != nil {
				return err
			}
			cfg := prover.Config{Command: args, Env: os.Environ(), Place: place.Place(scheduler.ClassVerifier)}
			switch {
			case len(args) > 0 && backend != "":
				return errors.New("give either --backend or a command, not both")
			case backend == "lean-pq":
				env, err := prover.Locate(proverDir)
				if err != nil {
					return fmt.Errorf("%w (run `aggnode prover install`)", err)
				}
				if cfg.Command, cfg.Env, err = prover.LeanPQ(env); err != nil {
					return err
				}
			case backend != "":
				return fmt.Errorf("--backend %s: must be lean-pq", backend)
			case len(args) == 0:
				return errors.New("nothing to check: give --backend lean-pq or -- CMD")
			}
			live := cmd.OutOrStdout() // each check as it is made
			if asJSON {
				live = cmd.ErrOrStderr()
			}
			report, err := prover.Conformance(cmd.Context(), cfg, live)
			return errors.Join(printConformance(cmd, report, asJSON), err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&backend, "backend", "", "shipped backend to check: lean-pq, `NAME`")
	f.StringVar(&proverDir, "prover-dir", "", "environment made by `aggnode prover install`")
	f.BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

type conformanceLine struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Skipped string  `json:"skipped,omitempty"`
	Error   string  `json:"error,omitempty"`
	TookMS  float64 `json:"took_ms"`
}

// printConformance prints the whole report as JSON, or the last line: the checks were printed as they were made.
func printConformance(cmd *cobra.Command, report prover.Report, asJSON bool) error {
	caps, failed := report.Capabilities, report.Failures()
	if !asJSON {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "backend %s %s, scheme %s: %d passed, %d failed\n", caps.Backend, caps.Revision,
			caps.Scheme, len(report.Checks)-failed, failed)
		return err
	}
	lines := make([]conformanceLine, len(report.Checks))
	for i, c := range report.Checks {
		lines[i] = conformanceLine{Name: c.Name, OK: c.Err == nil, Skipped: c.Skipped, Error: errorText(c.Err), TookMS: float64(c.Took.Microseconds()) / 1000}
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{
		"backend": caps.Backend, "revision": caps.Revision, "scheme": caps.Scheme, "passed": failed == 0, "checks": lines,
	})
}
