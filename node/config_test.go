package node

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/netconfig"
	"aggnode/scheduler"
	"aggnode/signer"
	"aggnode/wire"
)

func portOf(t *testing.T, addr string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}

func profile(t *testing.T, name, scheme string) *wire.Profile {
	t.Helper()
	p, err := wire.LookupProfile(name, scheme)
	require.NoError(t, err)
	return p
}

func TestBackendsFitTheirProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, profile, scheme string
		backend               Backend
		noProofs, aggregator  bool
		wrong                 []string // texts of the error; none: accepted
	}{
		{name: "devnet5 has no backend", profile: "devnet5", wrong: []string{"devnet5", "docs/prover-protocol.md", "--no-proofs"}},
		{name: "devnet5 without proofs", profile: "devnet5", noProofs: true},
		{name: "no aggregator without proofs", profile: "devnet5", noProofs: true, aggregator: true, wrong: []string{"--is-aggregator", "devnet5"}},
		{name: "bundle only on local", profile: "lean-pq", backend: BackendBundle, wrong: []string{"bundle", "lean-pq"}},
		{name: "bundle not on devnet5", profile: "devnet5", backend: BackendBundle, wrong: []string{"bundle", "devnet5"}},
		{name: "bundle on local", profile: "local", backend: BackendBundle},
		{name: "lean-pq needs keccak", profile: "local", scheme: "blake2s", backend: BackendLeanPQ, wrong: []string{"keccak", "blake2s"}},
		{name: "lean-pq on local keccak", profile: "local", scheme: "keccak", backend: BackendLeanPQ},
		{name: "lean-pq", profile: "lean-pq", backend: BackendLeanPQ, aggregator: true},
		{name: "no proofs and a backend", profile: "lean-pq", backend: BackendLeanPQ, noProofs: true, wrong: []string{"--no-proofs"}},
		{name: "command without a command", profile: "devnet5", backend: BackendCommand, wrong: []string{"--prover-command"}},
		{name: "unknown", profile: "local", backend: "leanVM", wrong: []string{"leanVM"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{
				Network: &netconfig.Network{Profile: profile(t, c.profile, c.scheme), Committees: 1},
				Backend: c.backend, NoProofs: c.noProofs, IsAggregator: c.aggregator,
			}
			err := cfg.Check()
			if len(c.wrong) == 0 {
				require.NoError(t, err)
			}
			for _, text := range c.wrong {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

func TestSubnetsAreTheUnionOfDutiesAndFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		validators []wire.ValidatorIndex
		flag       []wire.SubnetID
		aggregator bool
		joined     []wire.SubnetID
		aggregated []wire.SubnetID
	}{
		{name: "observer", joined: []wire.SubnetID{}, aggregated: []wire.SubnetID{}},
		{name: "validators only", validators: []wire.ValidatorIndex{5, 1}, joined: []wire.SubnetID{1}, aggregated: []wire.SubnetID{1}},
		{name: "aggregator without anything", aggregator: true, joined: []wire.SubnetID{0}, aggregated: []wire.SubnetID{0}},
		{name: "flag without role", flag: []wire.SubnetID{2}, joined: []wire.SubnetID{}, aggregated: []wire.SubnetID{2}},
		{
			name: "flag and duties", validators: []wire.ValidatorIndex{0, 4}, flag: []wire.SubnetID{1, 3}, aggregator: true,
			joined: []wire.SubnetID{0, 1, 3}, aggregated: []wire.SubnetID{1, 3},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Network: &netconfig.Network{Committees: 4}, Subnets: c.flag, IsAggregator: c.aggregator}
			for _, v := range c.validators {
				cfg.Keys = append(cfg.Keys, signer.Keys{Index: v})
			}
			require.Equal(t, c.joined, cfg.subnets())
			require.Equal(t, c.aggregated, cfg.aggregated(cfg.subnets()))
		})
	}
}

func TestOnlyAProverThatIsPlacedHasATier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg         Config
		asked, want scheduler.Tier
	}{
		{Config{IsAggregator: true}, scheduler.TierUnknown, scheduler.TierAuto},
		{Config{IsAggregator: true}, scheduler.Tier1, scheduler.Tier1},
		{Config{IsAggregator: true, ProverClass: ProverPlain}, scheduler.Tier2, scheduler.Tier0},
		{Config{}, scheduler.TierAuto, scheduler.Tier0},
	} {
		require.Equal(t, c.want, c.cfg.placed(scheduler.Budget{Tier: c.asked}).Tier)
	}
}

func TestChildrenTakeWhatTheirBackendNeeds(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for want, cfg := range map[int64]Config{
		0:          {Backend: BackendLeanPQ},
		340 * mib:  {Backend: BackendLeanPQ, AggregateVerifier: VerifierBoth},
		680 * mib:  {Backend: BackendLeanPQ, AggregateVerifier: VerifierChild},
		1876 * mib: {Backend: BackendLeanPQ, IsAggregator: true},
		2020 * mib: {Backend: BackendCommand, IsAggregator: true, ProverMemory: 1000 * mib},
	} {
		require.Equal(t, want, cfg.ChildrenMemory(), cfg.Backend)
	}
}
