package main

import (
	"github.com/spf13/cobra"

	"aggnode/bench"
	"aggnode/scheduler"
)

func newBenchCheckCommand() *cobra.Command {
	var (
		cfg      bench.CheckConfig
		backend  benchBackend
		jsonFile string
	)
	cmd := &cobra.Command{
		Use:   "check [-- CMD ARG...]",
		Short: "Compare the native check of proofs with that of a child",
		Long: `check has the prover make proofs of 1, 8, 32 and 64 recorded signatures and of 1, 2 and 4 recorded
aggregates, and checks each of them in turn in a verifier child, natively, and natively in a batch
of 8, over and over. It prints medians, what the stages of the native check take, and what memory
the native check holds. Under three minutes on two cores. CMD is any program that speaks the prover
protocol and whose proofs are lean-pq's.`,
		Example: `  aggnode bench check
  aggnode bench check --json check.json`,
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
			cfg.Progress = cmd.ErrOrStderr()
			report, err := bench.Check(cmd.Context(), cfg)
			return showBench(cmd, report, err, jsonFile)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&cfg.Length, "length", 0, "how long the rounds go on; default: 75s, `DURATION`")
	f.StringVar(&jsonFile, "json", "", "write the figures as JSON, `FILE`")
	backend.flags(cmd)
	return cmd
}
