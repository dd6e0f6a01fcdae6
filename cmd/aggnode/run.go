package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"aggnode/node"
	"aggnode/telemetry"
)

func newRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node on an existing network",
		Long: `run joins the network that a network folder describes. Every flag can also be set in the
environment (--node-id is AGGNODE_NODE_ID) and in the YAML file of --config, with the same names;
flags win over environment, environment over file. ` + "`aggnode config print`" + ` shows what is in force.

SIGINT and SIGTERM stop the node in order: intake, duties, pipeline, session, prover, network.
A second signal ends it at once. SIGHUP, and a change of the --config file, put the budget-* settings
in force without a restart.`,
		Example: `  # an aggregator without validators, for subnets 0 and 1
  aggnode run --custom-network-config-dir ./network/genesis --node-id aggnode_0 \
      --node-key ./network/genesis/aggnode_0.key --is-aggregator --aggregate-subnet-ids 0,1

  # settings from a file, one of them overridden
  AGGNODE_LOG_FORMAT=json aggnode run --config aggnode-settings.yaml --log-level debug`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings(cmd.Flags())
			if err != nil {
				return err
			}
			return runNode(cmd.Context(), s, cmd.Flags())
		},
	}
	addRunFlags(cmd.Flags())
	return cmd
}

// runNode makes telemetry, resolves the settings, and runs the node until ctx ends.
func runNode(ctx context.Context, s *settings, flags *pflag.FlagSet) (err error) {
	registry, err := telemetry.NewRegistry(telemetry.Info{Name: nodeName(s), Version: buildVersion(), Started: time.Now()})
	if err != nil {
		return err
	}
	logger, levels, err := telemetry.NewLogger(telemetry.LogConfig{
		Writer: os.Stdout, Format: s.LogFormat, Level: s.LogLevel, Registerer: registry,
		Attrs: []slog.Attr{slog.String("node", nodeName(s))},
	})
	if err != nil {
		return err
	}
	tracer, stopTracer, err := telemetry.NewTracer(ctx, telemetry.TracerConfig{
		Endpoint: s.OTLP, Version: buildVersion(), Instance: nodeName(s), Registerer: registry,
		Logger: logger.With(telemetry.ComponentKey, "telemetry"),
	})
	if err != nil {
		return fmt.Errorf("--otlp: %w", err)
	}
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), telemetry.ShutdownTimeout)
		defer cancel()
		if stopErr := stopTracer(stopCtx); stopErr != nil {
			logger.Warn("traces were lost at the end", "error", stopErr)
		}
	}()
	cfg, err := s.nodeConfig(ctx, logger)
	if err != nil {
		return err
	}
	cfg.Logger, cfg.Registry, cfg.Tracer, cfg.Levels = logger, registry, tracer, levels
	if err := limitMemory(s, cfg, logger.With(telemetry.ComponentKey, "node")); err != nil {
		return err
	}
	n, err := node.New(*cfg)
	if err != nil {
		return err
	}
	defer n.Close()
	reloadCtx, stopReload := context.WithCancel(ctx)
	var reload sync.WaitGroup
	reload.Go(func() {
		reloadBudget(reloadCtx, flags, settingsFile(flags), n, logger.With(telemetry.ComponentKey, "config"))
	})
	defer reload.Wait()
	defer stopReload()
	return n.Run(ctx)
}

func nodeName(s *settings) string {
	if s.NodeID != "" {
		return s.NodeID
	}
	return "aggnode"
}

// nodeKeyFile finds the file of our network identity: the flag, the network folder, or one in the data directory that
// is made at the first start.
func (s *settings) nodeKeyFile() (path string, create bool, err error) {
	if s.NodeKey != "" {
		return s.NodeKey, false, nil
	}
	if s.NodeID != "" && s.NetworkDir != "" {
		path := filepath.Join(s.NetworkDir, s.NodeID+".key")
		if _, err := os.Stat(path); err == nil {
			return path, false, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", false, fmt.Errorf("look for the node key: %w", err)
		}
	}
	path = filepath.Join(s.DataDir, "node.key")
	_, err = os.Stat(path)
	return path, errors.Is(err, os.ErrNotExist), nil
}
