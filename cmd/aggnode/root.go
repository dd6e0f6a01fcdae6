package main

import (
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "aggnode",
		Short: "A standalone aggregator node for Lean Ethereum devnets",
		Long: `aggnode joins a Lean Ethereum network, verifies the attestations and aggregates it
hears, folds the attestations of its subnets into one proof a slot and publishes it.
Proving runs in a process of its own and never slows checking.`,
		Example: `  # a whole network on this machine, with everything measured
  aggnode devnet

  # an aggregator on an existing network folder
  aggnode run --custom-network-config-dir ./network/genesis --node-id aggnode_0 \
      --node-key ./network/genesis/aggnode_0.key --is-aggregator`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newRunCommand(),
		newGenesisCommand(),
		newDevnetCommand(),
		newKeygenCommand(),
		newVerifyCommand(),
		newProverCommand(),
		newBenchCommand(),
		newBudgetCommand(),
		newConfigCommand(),
		newVersionCommand(),
	)
	return root
}
