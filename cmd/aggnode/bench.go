package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"aggnode/bench"
	"aggnode/prover"
	"aggnode/scheduler"
)

// exitInconclusive is the code of a measurement on a machine too busy to tell.
const exitInconclusive = exitError(3)

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: what proofs cost, and whether they slow checking",
	}
	cmd.AddCommand(newBenchIsolationCommand(), newBenchProverCommand(), newBenchXMSSCommand(), newBenchDutyCommand(),
		newBenchPipelineCommand(), newBenchPipelineSendCommand(), newBenchCheckCommand(), newBenchFaultsCommand())
	return cmd
}

// benchBackend is the prover that is measured.
type benchBackend struct{ name, dir string }

func (b *benchBackend) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.name, "backend", "lean-pq", "prover to measure: lean-pq, `NAME`")
	cmd.Flags().StringVar(&b.dir, "prover-dir", "", "environment made by `aggnode prover install`")
}

// command returns the child's command and environment: those after -- or the named backend.
func (b *benchBackend) command(args []string) (command, environ []string, err error) {
	if len(args) > 0 {
		return args, os.Environ(), nil
	}
	if b.name != "lean-pq" {
		return nil, nil, fmt.Errorf("--backend %s: must be lean-pq; the embedded backend bundle proves in this process, so there is no prover to measure", b.name)
	}
	env, err := prover.Locate(b.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (run `aggnode prover install`)", err)
	}
	return prover.LeanPQ(env)
}

func newBenchIsolationCommand() *cobra.Command {
	var (
		cfg                bench.IsolationConfig
		backend            benchBackend
		jsonFile, htmlFile string
	)
	cmd := &cobra.Command{
		Use:   "isolation [-- CMD ARG...]",
		Short: "Measure how much proving slows the checks of this node",
		Long: `isolation sends recorded votes and aggregates through the node's pipeline, 200 and 20 a second, while
nobody proves, while a prover under the budget does, while the same prover runs as a plain child, and
while this process itself hashes on all cores. The four take turns, --rounds times; the figures are
pooled. Proofs are checked as --aggregate-verifier says, and once a round, while nobody proves, the
other way, so that both stand side by side. With defaults it takes under seven minutes. Exit code 3, with all figures, when the machine
was too busy to tell. CMD is any program that speaks the prover protocol for scheme keccak.`,
		Example: `  aggnode bench isolation
  aggnode bench isolation --json isolation.json --html isolation.html
  aggnode bench isolation --rounds 2 --phase 5s --cpuprofile profiles`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if cfg.Command, cfg.Env, err = backend.command(args); err != nil {
				return err
			}
			cfg.Progress = cmd.ErrOrStderr()
			report, err := bench.Isolation(cmd.Context(), cfg)
			if err := showBench(cmd, report, err, jsonFile); err != nil {
				return err
			}
			if err := writeTo(htmlFile, report.WriteHTML); err != nil {
				return err
			}
			if !report.Conclusive {
				return exitInconclusive
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Rounds, "rounds", 6, "rounds of all kinds of phase, `N`")
	f.DurationVar(&cfg.Phase, "phase", 0, "length of a phase, of which 11/15 are single checks and 4/15 bursts; default: 15s, `DURATION`")
	f.IntVar(&cfg.Threads, "prover-threads", 0, "threads of a proof; default: all that the prover may use, `N`")
	f.IntVar(&cfg.Workers, "workers", 0, "verify workers; default: one a core, `N`")
	f.StringVar(&cfg.Verifier, "aggregate-verifier", "native", "who checks proofs: native (this process) or child, `NAME`")
	f.StringVar(&cfg.Tier, "budget-tier", "auto", "highest placement of the prover to try: T0 (lowest priority), T1 (reserved cores), T2 (cgroup v2) or auto, `TIER`")
	f.BoolVar(&cfg.OrdinaryPriority, "ordinary-priority", false, "stay at ordinary priority also where the system allows real-time priority")
	f.StringVar(&cfg.CPUProfiles, "cpuprofile", "", "write a CPU profile of this process for each phase, `DIR`")
	f.StringVar(&jsonFile, "json", "", "write the figures as JSON, `FILE`")
	f.StringVar(&htmlFile, "html", "", "write a page with latency curves, `FILE`")
	backend.flags(cmd)
	return cmd
}

func newBenchProverCommand() *cobra.Command {
	var (
		cfg     bench.ProverConfig
		backend benchBackend
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "prover [-- CMD ARG...]",
		Short: "Measure what proofs cost on this machine",
		Long: `prover makes proofs of 1 to 64 recorded signatures and of 0 to 2 recorded aggregates, one at a time
at normal priority, and prints wall time, CPU time, peak memory of the prover process and length of
the proof. A job that needs more memory than the machine has is skipped. About 75 s on two cores.

The JSON, saved as prover-bench.json in the --data-dir of a node, tells the node what jobs cost here.`,
		Example: `  aggnode bench prover
  aggnode bench prover --children 0,1,2,4 --threads 1,2 --repeat 3 --json > DATA_DIR/prover-bench.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if cfg.Command, cfg.Env, err = backend.command(args); err != nil {
				return err
			}
			place, err := scheduler.New(scheduler.Config{})
			if err != nil {
				return err
			}
			cfg.Place = place.Place(scheduler.ClassVerifier) // normal priority
			cfg.Progress = cmd.OutOrStdout()                 // each line as it is measured
			if asJSON {
				cfg.Progress = cmd.ErrOrStderr()
			}
			report, err := bench.Prover(cmd.Context(), cfg)
			if err := endBench(err); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), report)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, %s, on %s with %d cores\n", report.Backend, report.Revision, report.CPUModel, report.Cores)
			return err
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&cfg.Raw, "raw", []int{1, 2, 4, 8, 16, 32, 64}, "numbers of raw signatures, `N,...`")
	f.IntSliceVar(&cfg.Children, "children", []int{0, 1, 2}, "numbers of children, up to 16, `N,...`")
	f.IntSliceVar(&cfg.Threads, "threads", []int{0}, "threads of a proof, a prover for each; 0: all that it may use, `N,...`")
	f.IntVar(&cfg.Repeat, "repeat", 1, "proofs of each job, of which the median is printed, `N`")
	f.BoolVar(&asJSON, "json", false, "print as JSON")
	backend.flags(cmd)
	return cmd
}

// endBench maps how a measurement ended: Ctrl-C has a code and needs no words.
func endBench(err error) error {
	if errors.Is(err, context.Canceled) {
		return exitError(130)
	}
	return err
}

// showBench ends a measurement: what it found goes to the JSON file, if there is one, and as a table to the terminal.
func showBench(cmd *cobra.Command, report interface{ Print(io.Writer) error }, err error, jsonFile string) error {
	if err := endBench(err); err != nil {
		return err
	}
	return errors.Join(
		writeTo(jsonFile, func(w io.Writer) error { return writeJSON(w, report) }),
		report.Print(cmd.OutOrStdout()),
	)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeTo writes a file; no name, no file.
func writeTo(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
