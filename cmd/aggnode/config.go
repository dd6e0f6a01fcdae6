package main

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/spf13/cobra"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or check the settings of run",
	}
	cmd.AddCommand(newConfigPrintCommand(), newConfigCheckCommand())
	return cmd
}

func newConfigPrintCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the settings in force, as a YAML file for --config",
		Example: `  aggnode config print --custom-network-config-dir ./genesis --is-aggregator > aggnode-settings.yaml
  AGGNODE_API_PORT=6000 aggnode config print --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := layers(cmd.Flags())
			if err != nil {
				return err
			}
			if err := k.Set("slot-duration", k.Duration("slot-duration").String()); err != nil {
				return fmt.Errorf("print settings: %w", err)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(k.Raw())
			}
			b, err := k.Marshal(yaml.Parser())
			if err != nil {
				return fmt.Errorf("print settings: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(b)
			return err
		},
	}
	addRunFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func newConfigCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check settings, network folder and key files, without starting",
		Example: `  aggnode config check --custom-network-config-dir ./genesis --node-id aggnode_0 --is-aggregator`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings(cmd.Flags())
			if err != nil {
				return err
			}
			cfg, err := s.nodeConfig(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
			if err != nil {
				return err
			}
			if err := cfg.Check(); err != nil {
				return err
			}
			net := cfg.Network
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: profile %s, scheme %s, backend %s, %d validators (%d ours) in %d committees, %d bootnodes, slots of %v\n",
				net.Profile.Name, net.Profile.Scheme, cfg.Backend, len(net.Validators), len(cfg.Keys), net.Committees, len(net.Bootnodes), net.SlotDuration)
			return err
		},
	}
	addRunFlags(cmd.Flags())
	return cmd
}
