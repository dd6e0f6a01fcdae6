package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"aggnode/devnet"
	"aggnode/netconfig/devkeys"
	"aggnode/prover"
	"aggnode/xmss"
)

func newDevnetCommand() *cobra.Command {
	cfg := devnet.Config{}
	var jsonFile string
	cmd := &cobra.Command{
		Use:   "devnet",
		Short: "Run a whole network on this machine and measure it",
		Long: `devnet writes a network folder, starts one "aggnode run" a node with public flags, the first
--committees of them as aggregators, and one more that only observes. It draws a row a slot and
ends with a summary. Validators and observer run without Python. A vote counts as covered when an aggregate that contains it was verified at the
observer before interval 4 of its slot. Exit code 1 when fewer than 0.9 of the votes were covered.

The validators' keys are the insecure ones that ship with this program. Validators and slot length
are chosen so that this machine can bear them, from one signature measured at start, unless given.`,
		Example: `  aggnode devnet
  aggnode devnet --backend lean-pq --validators 8 --committees 2 --slots 6 --slot-duration 12s
  aggnode devnet --backend bundle --scheme blake2s --validators 64 --slots 8 --slot-duration 4s --json out.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := chooseBackend(&cfg, cmd.ErrOrStderr()); err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			cfg.Executable, cfg.Out = exe, cmd.OutOrStdout()
			if f, ok := cfg.Out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
				cfg.Plain = true
			}
			cfg.MeasureSign = func(ctx context.Context) (time.Duration, error) { return measureSign(ctx, cfg.Scheme) }
			s, err := devnet.Run(cmd.Context(), cfg)
			if err != nil {
				if errors.Is(err, context.Canceled) {
					return exitError(130)
				}
				return err
			}
			if jsonFile != "" {
				if err := s.WriteFile(jsonFile); err != nil {
					return err
				}
			}
			if err := s.Print(cfg.Out); err != nil {
				return err
			}
			if !s.Passed() {
				return exitError(1)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Nodes, "nodes", 4, "nodes with keys, at least --committees, `N`")
	f.IntVar(&cfg.Committees, "committees", 2, "attestation committees, each with an aggregator of its own, `N`")
	f.IntVar(&cfg.Validators, "validators", 0, "validators, at most 64; default: what this machine can bear, `N`")
	f.IntVar(&cfg.Slots, "slots", 8, "measured slots, after two of warm-up, `N`")
	f.DurationVar(&cfg.SlotDuration, "slot-duration", 0, "slot length, at least 4s; default: what this machine can bear, `DURATION`")
	f.StringVar(&cfg.Backend, "backend", "", "prover: lean-pq (default where installed) or bundle, `NAME`")
	f.StringVar(&cfg.Scheme, "scheme", "", "signature scheme; default by the backend: keccak for lean-pq, blake2s for bundle, `NAME`")
	f.StringVar(&cfg.Dir, "dir", "", "keep the network folder and logs here; default: a temporary folder, `DIR`")
	f.StringVar(&cfg.ProverDir, "prover-dir", "", "environment made by `aggnode prover install`")
	f.StringVar(&cfg.Verifier, "aggregate-verifier", "", "who checks proofs in the nodes: native, child or both; default: native with lean-pq, `NAME`")
	f.StringVar(&cfg.ProverClass, "prover-class", "default", "placement of the provers: default (lowest priority) or plain (like the node, to see what that costs), `CLASS`")
	f.StringVar(&cfg.SaveProofs, "save-proofs", "", "save every proof that the observer verified, and its claim, `DIR`")
	f.StringVar(&cfg.LogLevel, "log-level", "info", "log level of the nodes, `LEVEL`")
	f.StringVar(&cfg.OTLP, "otlp", "", "OpenTelemetry collector for the nodes' traces, `URL`")
	f.BoolVar(&cfg.Plain, "plain", false, "one line a slot, no cursor movement")
	f.StringVar(&jsonFile, "json", "", "write the summary as JSON, `FILE`")
	return cmd
}

// chooseBackend fills in backend, scheme and profile. lean-pq is the default where it is installed.
func chooseBackend(cfg *devnet.Config, log io.Writer) error {
	env, err := prover.Locate(cfg.ProverDir)
	switch {
	case cfg.Backend == "lean-pq" && err != nil:
		return fmt.Errorf("--backend lean-pq: %w (run `aggnode prover install`)", err)
	case cfg.Backend == "" && err == nil:
		cfg.Backend = "lean-pq"
	case cfg.Backend == "":
		cfg.Backend = "bundle"
		_, _ = fmt.Fprintf(log, "devnet: %v; using the embedded backend bundle (run `aggnode prover install` for real proofs)\n", err)
	}
	_ = env
	switch cfg.Backend {
	case "lean-pq":
		if cfg.Scheme != "" && cfg.Scheme != "keccak" {
			return fmt.Errorf("--scheme %s: backend lean-pq has scheme keccak", cfg.Scheme)
		}
		cfg.Scheme, cfg.Profile = "keccak", "lean-pq"
	case "bundle":
		if cfg.Scheme == "" {
			cfg.Scheme = "blake2s"
		}
		cfg.Profile = "local"
	default:
		return fmt.Errorf("--backend %s: must be lean-pq or bundle", cfg.Backend)
	}
	if _, err := xmss.SchemeByName(cfg.Scheme); err != nil {
		return fmt.Errorf("--scheme %s: %w", cfg.Scheme, err)
	}
	return nil
}

// measureSign times signatures of an embedded devnet key, warm, on one core. The search is geometric, so a few messages
// are signed and the mean is taken.
func measureSign(ctx context.Context, scheme string) (time.Duration, error) {
	attestation, _, err := devkeys.Load(scheme)
	if err != nil {
		return 0, err
	}
	key, err := xmss.ParseSecretKey(attestation[0].File)
	if err != nil {
		return 0, err
	}
	const most, enough = 16, 2 * time.Second
	if err := key.Prepare(ctx, 0); err != nil {
		return 0, err
	}
	start := time.Now()
	for n := range most {
		if _, err := key.Sign(ctx, uint32(n), sha256.Sum256([]byte{byte(n)})); err != nil {
			return 0, err
		}
		if took := time.Since(start); took > enough || n == most-1 {
			return took / time.Duration(n+1), nil
		}
	}
	return 0, errors.New("unreachable")
}
