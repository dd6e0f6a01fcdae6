package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"aggnode/bench"
)

func newBenchDutyCommand() *cobra.Command {
	var (
		cfg      bench.DutyConfig
		backend  benchBackend
		load     string
		jsonFile string
	)
	cmd := &cobra.Command{
		Use:   "duty [-- CMD ARG...]",
		Short: "Measure how long the votes of a slot take from the duty's timer to the last one sent",
		Long: `duty lives through --slots short slots with the node's own signer, insecure devnet keys, a journal in
a temporary folder and the node's pipeline, which checks each vote. The slots lie around a multiple of
512, where every key goes over to its next subtree. The network is a sink that encodes what it gets.
Searches for signatures begin when the slot's block is known: --block-at-timer shows a duty without.
--load puts busy processes beside it, placed as the node places its prover: spin is a process a core
that does nothing but run, prover is a prover at one job after the other. CMD is any program that
speaks the prover protocol for scheme keccak.`,
		Example: `  aggnode bench duty
  aggnode bench duty --load spin --json duty.json
  aggnode bench duty --backend lean-pq
  aggnode bench duty --block-at-timer
  aggnode bench duty --scheme keccak --slots 20 --data-dir /var/lib`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Load = bench.DutyLoad(load)
			if !cmd.Flags().Changed("load") && (cmd.Flags().Changed("backend") || len(args) > 0) {
				cfg.Load = bench.DutyLoadProver
			}
			if !slices.Contains(bench.DutyLoads(), cfg.Load) {
				return errors.New("--load must be none, spin or prover")
			}
			if cfg.Load == bench.DutyLoadProver {
				var err error
				if cfg.Command, cfg.Env, err = backend.command(args); err != nil {
					return err
				}
			}
			cfg.Progress = cmd.ErrOrStderr()
			report, err := bench.Duty(cmd.Context(), cfg)
			return showBench(cmd, report, err, jsonFile)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Scheme, "scheme", "blake2s", "signature scheme of the votes: blake2s or keccak, `NAME`")
	f.IntVar(&cfg.Validators, "validators", 32, "votes a slot, up to 64, `N`")
	f.IntVar(&cfg.Slots, "slots", 200, "slots that are measured, `N`")
	f.DurationVar(&cfg.SlotDuration, "slot-duration", 0, "length of a slot, a multiple of 5 ms; default: eight times what the signatures alone take, at least 250ms, `DURATION`")
	f.StringVar(&cfg.DataDir, "data-dir", "", "folder on the disk whose fsync is measured; default: that for temporary files, `DIR`")
	f.StringVar(&load, "load", "none", "what runs beside it: none, spin or prover, which --backend and CMD imply, `NAME`")
	f.BoolVar(&cfg.BlockAtTimer, "block-at-timer", false, "have the slot's block come with the votes' timer instead of at the slot's start, so that nothing can be searched for before")
	f.BoolVar(&cfg.OrdinaryPriority, "ordinary-priority", false, "stay at ordinary priority also where the system allows real-time priority")
	f.StringVar(&jsonFile, "json", "", "write the figures as JSON, `FILE`")
	backend.flags(cmd)
	return cmd
}
