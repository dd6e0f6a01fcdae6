package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"aggnode/netconfig"
	"aggnode/netconfig/devkeys"
	"aggnode/wire"
	"aggnode/xmss"
)

// genesisFlags are the flags of `aggnode genesis`.
type genesisFlags struct {
	out                                         string
	nodes, aggregators, committees, validators  int
	registryLimit                               int
	profile, scheme, backend, ip, prefix        string
	gossipPort, apiPort, metricsPort, epochsLog int
	slotDuration, delay                         time.Duration
	insecureKeys, overwrite                     bool
}

func newGenesisCommand() *cobra.Command {
	var g genesisFlags
	cmd := &cobra.Command{
		Use:   "genesis --out DIR",
		Short: "Write the network folder of a new network",
		Long: `genesis writes everything that a network's nodes read: config.yaml, validators.yaml,
annotated_validators.yaml, nodes.yaml, validator-config.yaml, aggnode.yaml, genesis.ssz, a network
key for each node and the validators' signing keys. The validators are shared out round robin.

Keys are made from fresh randomness, which takes a while (about 3 s of one core for a blake2s key
of 2^16 epochs, 11 s for keccak, two keys a validator). --insecure-devnet-keys takes the keys
that ship with this program instead: at once, but anybody can sign with them.`,
		Example: `  aggnode genesis --out ./network/genesis --nodes 4 --committees 2 --validators 8 --profile lean-pq --genesis-in 2m
  aggnode run --custom-network-config-dir ./network/genesis --node-id aggnode_0 --is-aggregator`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.validate(); err != nil {
				return err
			}
			spec, err := g.spec(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := netconfig.Write(g.out, spec); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: %d nodes, %d validators in %d committees, profile %s, genesis at %s\nstart node 0 with: aggnode run --custom-network-config-dir %s --node-id %s%s\n",
				g.out, g.nodes, g.validators, g.committees, g.profile, time.Unix(int64(spec.GenesisTime), 0).Format(time.RFC3339),
				g.out, spec.Nodes[0].Name, map[bool]string{true: " --is-aggregator"}[g.aggregators > 0])
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&g.out, "out", "", "folder to write; must be new or empty, `DIR`")
	f.IntVar(&g.nodes, "nodes", 4, "number of nodes, `N`")
	f.IntVar(&g.aggregators, "aggregators", -1, "how many nodes, from the first on, are aggregators; default: one a committee, `N`")
	f.IntVar(&g.committees, "committees", 1, "number of attestation committees, `N`")
	f.IntVar(&g.validators, "validators", 0, "number of validators; default: one a node, `N`")
	f.StringVar(&g.profile, "profile", "lean-pq", "wire profile: devnet5, lean-pq or local, `NAME`")
	f.StringVar(&g.scheme, "scheme", "", "signature scheme, where the profile leaves a choice, `NAME`")
	f.IntVar(&g.registryLimit, "registry-limit", wire.DefaultRegistryLimit, "most validators that the lists on the wire have room for; profile local only, `N`")
	f.StringVar(&g.backend, "backend", "", "prover that the nodes use unless told otherwise, `NAME`")
	f.StringVar(&g.ip, "ip", "127.0.0.1", "IP address of all nodes; edit nodes.yaml for others, `IP`")
	f.StringVar(&g.prefix, "name", "aggnode", "client name, the first part of the node names, `NAME`")
	f.IntVar(&g.gossipPort, "gossipsub-port", 9000, "UDP port of node 0; node i gets the i-th after it, `PORT`")
	f.IntVar(&g.apiPort, "api-port", 5052, "API port of node 0; node i gets the 10·i-th after it, `PORT`")
	f.IntVar(&g.metricsPort, "metrics-port", 5054, "metrics port of node 0; node i gets the 10·i-th after it, `PORT`")
	f.IntVar(&g.epochsLog, "active-epoch", 16, "keys cover 2^N slots, 9 to 18, `N`")
	f.DurationVar(&g.slotDuration, "slot-duration", netconfig.DefaultSlotDuration, "slot length, `DURATION`")
	f.DurationVar(&g.delay, "genesis-in", time.Minute, "genesis is this much after the folder was written, `DURATION`")
	f.BoolVar(&g.insecureKeys, "insecure-devnet-keys", false, "use the keys that ship with this program")
	f.BoolVar(&g.overwrite, "overwrite", false, "write into a folder that is not empty")
	return cmd
}

func (g *genesisFlags) validate() error {
	if g.aggregators < 0 {
		g.aggregators = min(g.committees, g.nodes)
	}
	if g.validators == 0 {
		g.validators = g.nodes
	}
	profile, err := wire.LookupProfile(g.profile, g.scheme)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	if profile, err = profile.WithRegistryLimit(g.registryLimit); err != nil {
		return fmt.Errorf("--registry-limit: %w", err)
	}
	g.scheme = profile.Scheme
	last := (g.nodes - 1) * 10
	switch {
	case g.out == "":
		return errors.New("--out DIR is required")
	case g.nodes < 1 || g.nodes > 1000:
		return fmt.Errorf("--nodes %d: must be 1 to 1000", g.nodes)
	case g.aggregators > g.nodes:
		return fmt.Errorf("--aggregators %d: there are only %d nodes", g.aggregators, g.nodes)
	case g.committees < 1 || g.committees > profile.RegistryLimit:
		return fmt.Errorf("--committees %d: must be 1 to %d", g.committees, profile.RegistryLimit)
	case g.validators < 1 || g.validators > profile.RegistryLimit:
		return fmt.Errorf("--validators %d: must be 1 to %d", g.validators, profile.RegistryLimit)
	case g.insecureKeys && g.validators > devkeys.Validators:
		return fmt.Errorf("--validators %d: %d insecure devnet keys ship with this program", g.validators, devkeys.Validators)
	case g.epochsLog < 9 || g.epochsLog > 18:
		return fmt.Errorf("--active-epoch %d: must be 9 to 18", g.epochsLog)
	case g.delay < 0:
		return fmt.Errorf("--genesis-in %v: must not be negative", g.delay)
	case min(g.gossipPort, g.apiPort, g.metricsPort) < 1 || max(g.gossipPort+g.nodes-1, g.apiPort+last, g.metricsPort+last) > 65535:
		return errors.New("--gossipsub-port, --api-port, --metrics-port: the ports of all nodes must be 1 to 65535")
	}
	return nil
}

func (g *genesisFlags) spec(ctx context.Context, log io.Writer) (netconfig.GenesisSpec, error) {
	spec := netconfig.GenesisSpec{
		SlotDuration: g.slotDuration, Committees: uint64(g.committees), ActiveEpochLog: uint8(g.epochsLog),
		Profile: g.profile, Scheme: g.scheme, Backend: g.backend, Overwrite: g.overwrite,
	}
	if g.registryLimit != wire.DefaultRegistryLimit {
		spec.RegistryLimit = g.registryLimit
	}
	ip, err := netip.ParseAddr(g.ip)
	if err != nil {
		return spec, fmt.Errorf("--ip: %w", err)
	}
	for i := range g.nodes {
		n := netconfig.NodeSpec{
			Name: g.prefix + "_" + strconv.Itoa(i), IP: ip,
			QUICPort: uint16(g.gossipPort + i), APIPort: uint16(g.apiPort + 10*i), MetricsPort: uint16(g.metricsPort + 10*i),
			IsAggregator: i < g.aggregators, Count: g.validators / g.nodes,
		}
		if i < g.validators%g.nodes {
			n.Count++
		}
		if _, err := rand.Read(n.PrivateKey[:]); err != nil {
			return spec, fmt.Errorf("read randomness: %w", err)
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	if g.insecureKeys {
		spec.Validators, err = embeddedValidators(g.scheme, g.validators)
	} else {
		spec.Validators, err = g.freshValidators(ctx, log)
	}
	spec.GenesisTime = uint64(time.Now().Add(g.delay).Unix() + 1)
	return spec, err
}

func embeddedValidators(scheme string, n int) ([]netconfig.ValidatorSpec, error) {
	attestation, proposal, err := devkeys.Load(scheme)
	if err != nil {
		return nil, fmt.Errorf("load the devnet keys: %w", err)
	}
	out := make([]netconfig.ValidatorSpec, n)
	for v := range out {
		out[v] = netconfig.ValidatorSpec{
			AttestationKey: attestation[v].PublicKey[:], AttestationSecret: attestation[v].File,
			ProposalKey: proposal[v].PublicKey[:], ProposalSecret: proposal[v].File,
		}
	}
	return out, nil
}

func (g *genesisFlags) freshValidators(ctx context.Context, log io.Writer) ([]netconfig.ValidatorSpec, error) {
	scheme, err := xmss.SchemeByName(g.scheme)
	if err != nil {
		return nil, err
	}
	out := make([]netconfig.ValidatorSpec, g.validators)
	p := newProgress(log, "keys")
	quiet := newProgress(io.Discard, "")
	for v := range out {
		for _, role := range []struct{ key, secret *[]byte }{
			{&out[v].AttestationKey, &out[v].AttestationSecret}, {&out[v].ProposalKey, &out[v].ProposalSecret},
		} {
			key, file, err := generateKey(ctx, scheme, 0, 1<<g.epochsLog-1, 0, quiet)
			if err != nil {
				return nil, err
			}
			pk := key.PublicKey()
			*role.key, *role.secret = pk[:], file
		}
		p.update(v+1, len(out))
	}
	p.done()
	return out, nil
}
