package p2p

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// TestGossipParametersAreThoseOfTheProtocol pins protocol 3.4 line by line.
func TestGossipParametersAreThoseOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := newGossipSettings(newFakeIntake().limits, 4*time.Second, 1)
	require.Equal(t, 8, s.params.D)
	require.Equal(t, 6, s.params.Dlo)
	require.Equal(t, 12, s.params.Dhi)
	require.Equal(t, 6, s.params.Dlazy)
	require.Equal(t, 700*time.Millisecond, s.params.HeartbeatInterval)
	require.Equal(t, time.Minute, s.params.FanoutTTL)
	require.Equal(t, 6, s.params.HistoryLength)
	require.Equal(t, 3, s.params.HistoryGossip)
	require.Equal(t, time.Minute, s.params.PruneBackoff)
	require.Equal(t, 1000, s.params.IDontWantMessageThreshold)
	require.Zero(t, s.params.PrunePeers)
	require.Equal(t, 12234442, s.maxMessageSize)
	require.Equal(t, 24*time.Second, s.seenTTL)
	require.Equal(t, wire.DefaultRegistryLimit, s.validateQueue)
	require.Equal(t, 2, s.workers)
	require.Equal(t, 500, maxMessagesPerRPC)
	require.Equal(t, 48*time.Second, newGossipSettings(newFakeIntake().limits, 8*time.Second, 1).seenTTL)
}

// TestThrottlesNeverBind is invariant 2 on the configuration.
func TestThrottlesNeverBind(t *testing.T) {
	t.Parallel()
	for _, limits := range []pipeline.Limits{
		{Workers: 1, Blocks: 16, Attestations: 256, Aggregates: 64, ParkedAttestations: 16, ParkedAggregates: 16},
		{Workers: 64, Blocks: 16, Attestations: 8192, Aggregates: 64, ParkedAttestations: 8192, ParkedAggregates: 16, ParkedBlocks: 16},
		{},
	} {
		for _, attestations := range []int{0, 1, 8} {
			s := newGossipSettings(limits, 4*time.Second, attestations)
			bounds := map[wire.TopicKind]int{
				wire.TopicBlock:       limits.Blocks + limits.ParkedBlocks,
				wire.TopicAggregation: limits.Aggregates + limits.ParkedAggregates,
				wire.TopicAttestation: limits.Attestations + limits.ParkedAttestations,
			}
			sum := 0
			for kind, bound := range bounds {
				require.Equal(t, bound+limits.Workers+64+wire.DefaultRegistryLimit, s.topicThrottle[kind], kind.String())
				topics := 1
				if kind == wire.TopicAttestation {
					topics = attestations
				}
				sum += topics * s.topicThrottle[kind]
			}
			require.Equal(t, sum+256, s.throttle)
			// Everything that the pipeline may hold at once, and a message in the
			// hands of each worker, fits below the throttle of one topic alone.
			for kind, bound := range bounds {
				require.Greater(t, s.topicThrottle[kind], bound+limits.Workers)
			}
		}
	}
}

func TestConfigurationFaultsAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"no profile":             {func(c *Config) { c.Profile = nil }, "no profile"},
		"no slot duration":       {func(c *Config) { c.SlotDuration = 0 }, "slot duration"},
		"port":                   {func(c *Config) { c.Port = 65536 }, "65536 is not a UDP port"},
		"negative port":          {func(c *Config) { c.Port = -2 }, "-2 is not a UDP port"},
		"committees":             {func(c *Config) { c.Committees = 5000 }, "5000 committees"},
		"subnet":                 {func(c *Config) { c.Subnets = []wire.SubnetID{4} }, "subnet 4 does not exist with 4"},
		"peers":                  {func(c *Config) { c.MaxPeers = -1 }, "-1 peers"},
		"zero key":               {func(c *Config) { c.PrivateKey = [32]byte{} }, "secp256k1"},
		"key above the order":    {func(c *Config) { c.PrivateKey = allOnes() }, "secp256k1"},
		"name of no peer":        {func(c *Config) { c.Names = map[string]string{"xyz": "gean_0"} }, `"gean_0"`},
		"bootnode without id":    {func(c *Config) { c.Bootnodes = []Bootnode{{Name: "zeam_0"}} }, `"zeam_0"`},
		"bootnode without /p2p/": {func(c *Config) { c.Bootnodes = []Bootnode{{Multiaddr: "/ip4/1.2.3.4/udp/9/quic-v1"}} }, "1.2.3.4"},
		"bootnode by TCP": {func(c *Config) {
			c.Bootnodes = []Bootnode{{Multiaddr: "/ip4/1.2.3.4/tcp/9/p2p/" + knownPeerID}}
		}, "not a QUIC address"},
		"bootnode garbage":   {func(c *Config) { c.Bootnodes = []Bootnode{{Multiaddr: "enr:-abc"}} }, "enr:-abc"},
		"too many bootnodes": {func(c *Config) { c.Bootnodes = make([]Bootnode, 513) }, "513 bootnodes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			tt.change(&cfg)
			_, err := New(cfg, newFakeIntake(), fakeChain{})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func allOnes() (key [32]byte) {
	for i := range key {
		key[i] = 0xff
	}

	return key
}

// knownPeerID is the id of leanSpec's networking_codec case test_peer_id_secp256k1.
const knownPeerID = "16Uiu2HAmLhLvBoYaoZfaMUKuibM6ac163GwKY74c5kiSLg5KvLpY"
