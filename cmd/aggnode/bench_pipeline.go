package main

import (
	"os"

	"github.com/spf13/cobra"

	"aggnode/bench"
)

// pipelineSendCommand is the hidden subcommand of bench that the pipeline's measurement runs as its second process.
const pipelineSendCommand = "pipeline-send"

func newBenchPipelineCommand() *cobra.Command {
	var (
		cfg      bench.PipelineConfig
		jsonFile string
	)
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure what a vote costs from bytes to verdict",
		Long: `pipeline signs one vote for each of --validators (scheme blake2s, one slot, keys made for it) and takes
them through the node: decompression, message id, dedupe, queue, workers, signature check, verdict.
It does so inside one process, and over loopback QUIC from a second process at --rate, beside a
receiver that is the bare gossip library with a validator that accepts everything. The receivers take
turns, --rounds times; CPU figures are medians of this process's CPU, times are pooled. The votes come
--passes times, each time on another topic and into another queue, since a copy would be a duplicate.
About a minute and a half on two cores with AVX-512, plus half a minute of signing without.`,
		Example: `  aggnode bench pipeline
  aggnode bench pipeline --json pipeline.json
  aggnode bench pipeline --validators 512 --passes 20 --rounds 1 --cpuprofile profiles`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			cfg.Sender = []string{program, "bench", pipelineSendCommand}
			cfg.Progress = cmd.ErrOrStderr()
			report, err := bench.Pipeline(cmd.Context(), cfg)
			return showBench(cmd, report, err, jsonFile)
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Validators, "validators", 4096, "votes of one pass, each of another validator, up to 4096, `N`")
	f.IntVar(&cfg.Passes, "passes", 30, "passes of one stream; a stream lasts at most 10s, `N`")
	f.IntVar(&cfg.Rounds, "rounds", 5, "streams to each receiver, `N`")
	f.IntVar(&cfg.Rate, "rate", 25_000, "votes a second over QUIC, `N`")
	f.IntVar(&cfg.Workers, "workers", 0, "verify workers; default: one a core, `N`")
	f.StringVar(&cfg.CPUProfiles, "cpuprofile", "", "write a CPU profile of each measurement into `FOLDER`")
	f.StringVar(&jsonFile, "json", "", "write all figures as JSON, `FILE`")
	return cmd
}

func newBenchPipelineSendCommand() *cobra.Command {
	var cfg bench.SenderConfig
	cmd := &cobra.Command{
		Use:    pipelineSendCommand,
		Short:  "The second process of bench pipeline",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.SendVotes(cmd.Context(), cfg, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Capture, "capture", "", "votes of one slot, `FILE`")
	f.StringVar(&cfg.To, "to", "", "the receiver, `MULTIADDR`")
	f.IntVar(&cfg.Passes, "passes", 1, "how often the votes are sent, `N`")
	f.IntVar(&cfg.Rate, "rate", 1, "votes a second, `N`")
	return cmd
}
