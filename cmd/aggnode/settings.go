package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"aggnode/scheduler"
)

// envPrefix starts the environment variable of every setting: --node-id is AGGNODE_NODE_ID.
const envPrefix = "AGGNODE_"

// settings are the configuration of `aggnode run`. Layers, the later wins: built-in defaults, the YAML file of
// --config, environment, flags. Names are the same in all of them.
type settings struct {
	NetworkDir     string        `koanf:"custom-network-config-dir"`
	Genesis        string        `koanf:"genesis"`
	Bootnodes      []string      `koanf:"bootnodes"`
	NodeID         string        `koanf:"node-id"`
	NodeKey        string        `koanf:"node-key"`
	DataDir        string        `koanf:"data-dir"`
	ListenAddress  string        `koanf:"listen-address"`
	GossipsubPort  int           `koanf:"gossipsub-port"`
	HTTPAddress    string        `koanf:"http-address"`
	APIPort        int           `koanf:"api-port"`
	MetricsPort    int           `koanf:"metrics-port"`
	IsAggregator   bool          `koanf:"is-aggregator"`
	Subnets        []int         `koanf:"aggregate-subnet-ids"`
	Committees     int           `koanf:"attestation-committee-count"`
	CheckpointSync string        `koanf:"checkpoint-sync-url"`
	KeysDir        string        `koanf:"hash-sig-keys-dir"`
	Network        string        `koanf:"network"`
	Profile        string        `koanf:"profile"`
	Scheme         string        `koanf:"scheme"`
	SlotDuration   time.Duration `koanf:"slot-duration"`
	Backend        string        `koanf:"backend"`
	NoProofs       bool          `koanf:"no-proofs"`
	Verifier       string        `koanf:"aggregate-verifier"`
	ProverDir      string        `koanf:"prover-dir"`
	ProverCommand  []string      `koanf:"prover-command"`
	ProverThreads  int           `koanf:"prover-threads"`
	ProverClass    string        `koanf:"prover-class"`
	ProverMemory   int64         `koanf:"prover-memory-mib"`
	MemoryLimit    int64         `koanf:"memory-limit-mib"`
	BudgetTier     string        `koanf:"budget-tier"`
	CoresMin       float64       `koanf:"budget-cores-min"`
	CoresMax       float64       `koanf:"budget-cores-max"`
	BudgetTarget   time.Duration `koanf:"budget-target"`
	BudgetCalendar bool          `koanf:"budget-calendar"`
	BudgetRealTime bool          `koanf:"budget-real-time"`
	Workers        int           `koanf:"verify-workers"`
	LogLevel       string        `koanf:"log-level"`
	LogFormat      string        `koanf:"log-format"`
	OTLP           string        `koanf:"otlp"`
}

// addRunFlags declares the flags of `run`; their defaults are the lowest layer.
func addRunFlags(f *pflag.FlagSet) {
	f.String("config", "", "YAML file with any of these settings, `FILE`")
	f.String("custom-network-config-dir", "", "network folder with config.yaml, nodes.yaml and, for validators, the key files, `DIR`")
	f.String("genesis", "", "config.yaml of the network, where it is not in the network folder, `FILE`")
	f.StringSlice("bootnodes", nil, "more peers to dial: ENRs, multiaddrs, or a nodes.yaml file, `LIST`")
	f.String("node-id", "", "our name in the network folder (aggnode_0); picks our validators and key files, `NAME`")
	f.String("node-key", "", "file with the secp256k1 key of our network identity, 64 hex characters; default: NODE_ID.key in the network folder, else one made in the data directory, `FILE`")
	f.String("data-dir", "", "directory for what must survive a restart (signing marks); default: a folder of the node's name under the user's data directory, `DIR`")
	f.String("listen-address", "0.0.0.0", "IP address of the QUIC listener, `IP`")
	f.Int("gossipsub-port", 9000, "UDP port of the QUIC listener, `PORT`")
	f.String("http-address", "127.0.0.1", "IP address of the API and metrics listeners, `IP`")
	f.Int("api-port", 5052, "TCP port of the API, `PORT`")
	f.Int("metrics-port", 5054, "TCP port of /metrics, /livez and /readyz, `PORT`")
	f.Bool("is-aggregator", false, "aggregate the attestations of our subnets and publish proofs")
	f.IntSlice("aggregate-subnet-ids", nil, "subnets to subscribe to as an aggregator, besides those of our validators, `LIST`")
	f.Int("attestation-committee-count", 0, "number of committees; default: from the network folder, `N`")
	f.String("checkpoint-sync-url", "", "accepted for compatibility: this node starts from genesis and follows gossip, `URL`")
	f.String("hash-sig-keys-dir", "", "folder of the validators' key files; default: hash-sig-keys in the network folder, `DIR`")
	f.String("network", "12345678", "network name in the gossip topics, `NAME`")
	f.String("profile", "", "wire profile: devnet5, lean-pq or local; default: what aggnode.yaml in the network folder says, else devnet5, `NAME`")
	f.String("scheme", "", "signature scheme of profile local: blake2s or keccak, `NAME`")
	f.Duration("slot-duration", 0, "slot length; default: from the network folder, else 4s, `DURATION`")
	f.String("backend", "", "prover: lean-pq, bundle (profile local only) or command (with --prover-command); default: by the profile, `NAME`")
	f.Bool("no-proofs", false, "run without a prover: attestations are verified, aggregates only forwarded on structural checks")
	f.String("aggregate-verifier", "", "who checks proofs: native (this process, proofs of lean-pq), child (a process of the backend, 340 MiB and a warm spare) or both (native, and one proof in 64 also by a child); default: native with backend lean-pq, else child, `NAME`")
	f.String("prover-dir", "", "environment made by `aggnode prover install`; default: under the user's data directory, `DIR`")
	f.StringSlice("prover-command", nil, "command line of another backend that speaks the prover protocol, comma separated, `CMD`")
	f.Int("prover-threads", 0, "threads of one proof; 0: all cores, `N`")
	f.Int64("memory-limit-mib", 0, "soft limit of this process's memory, near which the Go runtime collects harder; 0: GOMEMLIMIT of the environment, else 0.9 of the control group's limit or half of the machine's memory, after what the prover takes, `MIB`")
	f.String("prover-class", "default", "placement of the prover: default (lowest priority) or plain (like the node itself, for comparisons), `CLASS`")
	f.Int64("prover-memory-mib", 0, "kill the prover above this much memory; 0: no limit, `MIB`")
	f.String("budget-tier", "auto", "highest placement of the prover to try: T0 (lowest priority), T1 (reserved cores), T2 (cgroup v2) or auto; can be changed while the node runs, `TIER`")
	f.Float64("budget-cores-min", 0, "cores that the prover keeps under stress; can be changed while the node runs, `CORES`")
	f.Float64("budget-cores-max", 0, "hard limit of the prover in cores, 0 for none; can be changed while the node runs, `CORES`")
	f.Duration("budget-target", 50*time.Millisecond, "queue wait of votes and check time at p99 above which the prover may have to yield; can be changed while the node runs, `DURATION`")
	f.Bool("budget-calendar", true, "lower weight of the prover in intervals 0 and 1; can be changed while the node runs")
	f.Bool("budget-real-time", true, "run the node, not its prover, at real-time priority, for at most half of the CPU time, where the system allows it (CAP_SYS_NICE or RLIMIT_RTPRIO)")
	f.Int("verify-workers", 0, "verification workers; 0: one per core, `N`")
	addLogFlags(f)
	f.String("otlp", "", "OpenTelemetry collector for traces: http(s)://host:4318 or grpc://host:4317, `URL`")
}

// budget is the part of the settings that can change while the node runs.
func (s *settings) budget() (scheduler.Budget, error) {
	tier, err := scheduler.ParseTier(s.BudgetTier)
	if err != nil {
		return scheduler.Budget{}, fmt.Errorf("--budget-tier: %w", err)
	}
	return scheduler.Budget{CoresMin: s.CoresMin, CoresMax: s.CoresMax, Target: s.BudgetTarget, Calendar: s.BudgetCalendar, Tier: tier}, nil
}

func addLogFlags(f *pflag.FlagSet) {
	f.String("log-level", "info", "debug, info, warn or error, `LEVEL`")
	f.String("log-format", "text", "text or json, `FORMAT`")
}

// loadSettings merges the layers for the flag set of a command.
func loadSettings(f *pflag.FlagSet) (*settings, error) {
	k, err := layers(f)
	if err != nil {
		return nil, err
	}
	var s settings
	if err := k.Unmarshal("", &s); err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return &s, nil
}

// layers merges defaults, file, environment and flags.
func layers(f *pflag.FlagSet) (*koanf.Koanf, error) {
	k := koanf.New(".")
	runFlags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	addRunFlags(runFlags)
	known := map[string]any{}
	runFlags.VisitAll(func(fl *pflag.Flag) { known[fl.Name] = nil })
	delete(known, "config")
	if path := settingsFile(f); path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return nil, fmt.Errorf("read --config %s: %w", path, err)
		}
		if err := refuseUnknown(k.Keys(), known, "--config "+path); err != nil {
			return nil, err
		}
	}
	if err := loadEnv(k, known); err != nil {
		return nil, err
	}
	if err := k.Load(posflag.Provider(f, ".", k), nil); err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	for _, key := range k.Keys() {
		if _, ok := known[key]; !ok {
			k.Delete(key) // flags of the command itself
		}
	}
	return k, nil
}

// settingsFile is the YAML file of the settings, "" for none.
func settingsFile(f *pflag.FlagSet) string {
	if fl := f.Lookup("config"); fl != nil && fl.Value.String() != "" {
		return fl.Value.String()
	}
	return os.Getenv(envPrefix + "CONFIG")
}

func loadEnv(k *koanf.Koanf, known map[string]any) error {
	var unknown []error
	err := k.Load(env.Provider(".", env.Opt{
		Prefix: envPrefix,
		TransformFunc: func(key, value string) (string, any) {
			name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(key, envPrefix)), "_", "-")
			if name == "config" || strings.HasPrefix(name, "test-") {
				return "", nil
			}
			if _, ok := known[name]; !ok {
				unknown = append(unknown, fmt.Errorf("environment variable %s: no such setting", key))
				return "", nil
			}
			if strings.Contains(value, ",") {
				return name, strings.Split(value, ",")
			}
			return name, value
		},
	}), nil)
	if err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	return errors.Join(unknown...)
}

func refuseUnknown(keys []string, known map[string]any, where string) error {
	for _, key := range keys {
		if _, ok := known[key]; !ok {
			return fmt.Errorf("%s: unknown key %q (names are those of the flags, see `aggnode run --help`)", where, key)
		}
	}
	return nil
}

// dataHome is the user's data directory for this program (XDG base directory rules).
func dataHome() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "aggnode"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the user's data directory (set XDG_DATA_HOME): %w", err)
	}
	return filepath.Join(home, ".local", "share", "aggnode"), nil
}
