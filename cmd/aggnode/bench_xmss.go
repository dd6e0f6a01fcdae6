package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"aggnode/bench"
	"aggnode/xmss"
)

func newBenchXMSSCommand() *cobra.Command {
	var (
		cfg              bench.XMSSConfig
		scheme, jsonFile string
	)
	cmd := &cobra.Command{
		Use:   "xmss",
		Short: "Measure signing, checking and key generation on every path of this CPU",
		Long: `xmss measures a signature scheme in portable code and in every wider path that this CPU has (avx2,
avx512), one after the other, --rounds times. Times are medians over single calls of all rounds. A
signature is the expected number of trials of its search times the measured time of one, plus what it
costs besides: searches are geometric, and a mean of some would say little. Keys are made for it, and
one key stands for the 64 that are warmed together. Under a minute (blake2s) or two (keccak); run it on
a machine that does nothing else.`,
		Example: `  aggnode bench xmss
  aggnode bench xmss --scheme keccak --json keccak.json
  aggnode bench xmss --rounds 2 --search 200ms`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Scheme, err = xmss.SchemeByName(scheme); err != nil {
				return fmt.Errorf("--scheme %s: %w", scheme, err)
			}
			cfg.Progress = cmd.ErrOrStderr()
			report, err := bench.XMSS(cmd.Context(), cfg)
			return showBench(cmd, report, err, jsonFile)
		},
	}
	f := cmd.Flags()
	f.StringVar(&scheme, "scheme", xmss.Blake2s.String(), "signature scheme: blake2s or keccak, `NAME`")
	f.IntVar(&cfg.Rounds, "rounds", 5, "rounds of all paths, `N`")
	f.DurationVar(&cfg.Search, "search", 0,
		"time of the search for randomizers a path and round; the other figures get a tenth; default: 1s, `DURATION`")
	f.StringVar(&jsonFile, "json", "", "write all figures as JSON, `FILE`")
	return cmd
}
