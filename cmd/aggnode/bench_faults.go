package main

import (
	"github.com/spf13/cobra"

	"aggnode/bench"
)

func newBenchFaultsCommand() *cobra.Command {
	var (
		cfg      bench.FaultsConfig
		backend  benchBackend
		jsonFile string
	)
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Measure what a failing prover does to the checks of this node",
		Long: `faults sends recorded votes and aggregates through the node's pipeline while the real prover is
absent, at work, stopped in the middle of each job, killed in the middle of each job, slowed down three
times, or over its memory limit. The six take turns, --rounds times; the figures are pooled. After each
phase the prover has to make a proof again. Under seven minutes.`,
		Example: `  aggnode bench faults
  aggnode bench faults --rounds 1 --json faults.json
  aggnode bench faults --aggregate-verifier child`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Command, cfg.Env, err = backend.command(nil); err != nil {
				return err
			}
			cfg.Progress = cmd.ErrOrStderr()
			report, err := bench.Faults(cmd.Context(), cfg)
			return showBench(cmd, report, err, jsonFile)
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Rounds, "rounds", 0, "rounds of the six kinds of phase; default: 3, `N`")
	f.DurationVar(&cfg.Phase, "phase", 0, "length of a phase; default: 12s, `DURATION`")
	f.IntVar(&cfg.Workers, "workers", 0, "verify workers; default: one a core, `N`")
	f.BoolVar(&cfg.OrdinaryPriority, "ordinary-priority", false, "stay at ordinary priority also where the system allows real-time priority")
	f.StringVar(&cfg.Verifier, "aggregate-verifier", "native", "who checks aggregates: native, or child (the installed package in a process of its own), `HOW`")
	f.StringVar(&jsonFile, "json", "", "write the figures as JSON, `FILE`")
	backend.flags(cmd)
	return cmd
}
