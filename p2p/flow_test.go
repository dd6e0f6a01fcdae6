package p2p

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// line starts three nodes A - B - C, where A and C know B alone.
func line(t *testing.T, change func(*Config, *fakeIntake)) (a, b, c *testNode) {
	t.Helper()
	b = start(t, change)
	outer := func(cfg *Config, f *fakeIntake) {
		if change != nil {
			change(cfg, f)
		}
		cfg.Bootnodes = []Bootnode{bootnodeOf(b)}
	}
	a, c = start(t, outer), start(t, outer)
	for _, topic := range []wire.Topic{subnet1, aggregations, blockTopic} {
		a.meshed(t, topic, 1)
		c.meshed(t, topic, 1)
		b.meshed(t, topic, 2)
	}

	return a, b, c
}

func TestWhatIsAcceptedIsForwardedAndNothingElse(t *testing.T) {
	t.Parallel()
	a, b, c := line(t, nil)
	profile := testProfile(t)
	send := func(v wire.ValidatorIndex) []byte {
		sa := vote(t, v)
		peers, err := a.PublishAttestation(t.Context(), sa)
		require.NoError(t, err)
		require.Equal(t, 1, peers)
		ssz, err := profile.EncodeAttestation(sa)
		require.NoError(t, err)

		return ssz
	}

	first := send(1)
	require.Equal(t, first, b.intake.next(t), "B gets the bytes that A published")
	require.Equal(t, first, c.intake.next(t), "C gets them by B")
	a.intake.none(t)

	for _, outcome := range []pipeline.Outcome{rejected, ignored} {
		b.intake.set(func(f *fakeIntake) {
			f.submit = func(context.Context, *pipeline.Item) pipeline.Outcome { return outcome }
		})
		bad := send(5)
		require.Equal(t, bad, b.intake.next(t))
		b.intake.set(func(f *fakeIntake) { f.submit = nil })
		good := send(9)
		require.Equal(t, good, b.intake.next(t))
		require.Equal(t, good, c.intake.next(t), "%v was not forwarded, what came later was", outcome.Verdict)
	}
	require.True(t, a.connectedTo(b.id), "one reject does not disconnect an honest relay")
	require.Zero(t, count(b.metrics.publishes.WithLabelValues("attestation", "sent")), "forwarding is pubsub's alone")
	require.Equal(t, 5, count(a.metrics.publishes.WithLabelValues("attestation", "sent")))
}

func TestEveryKindTravels(t *testing.T) {
	t.Parallel()
	a, b, c := line(t, nil)
	participants, err := wire.NewParticipants([]wire.ValidatorIndex{1, 5})
	require.NoError(t, err)
	aggregate := &wire.SignedAggregate{Data: wire.AttestationData{Slot: 3}, Participants: participants, Proof: make([]byte, 300_000)}
	peers, err := a.PublishAggregate(t.Context(), aggregate)
	require.NoError(t, err)
	require.Equal(t, 1, peers)
	ssz, err := testProfile(t).EncodeAggregate(aggregate)
	require.NoError(t, err)
	require.Equal(t, ssz, b.intake.next(t))
	require.Equal(t, ssz, c.intake.next(t))

	block := &wire.SignedBlock{Block: wire.Block{Slot: 3, ProposerIndex: 3}}
	require.NoError(t, a.PublishBlock(t.Context(), block))
	ssz, err = testProfile(t).EncodeBlock(block)
	require.NoError(t, err)
	require.Equal(t, ssz, b.intake.next(t))
	require.Equal(t, ssz, c.intake.next(t))
}

// TestVotesLandOnTheSubnetOfTheirValidator pins the mapping and that a vote goes
// out on a subnet that is not subscribed.
func TestVotesLandOnTheSubnetOfTheirValidator(t *testing.T) {
	t.Parallel()
	for _, committees := range []uint64{3, 4} {
		all := func(cfg *Config, _ *fakeIntake) {
			cfg.Committees, cfg.Subnets = committees, nil
			for s := range committees {
				cfg.Subnets = append(cfg.Subnets, wire.SubnetID(s))
			}
		}
		receiver := start(t, all)
		sender := start(t, func(cfg *Config, _ *fakeIntake) {
			cfg.Committees, cfg.Subnets = committees, []wire.SubnetID{1}
			cfg.Bootnodes = []Bootnode{bootnodeOf(receiver)}
		})
		sender.meshed(t, subnet1, 1)
		for v := range wire.ValidatorIndex(8) {
			peers, err := sender.PublishAttestation(t.Context(), vote(t, v))
			require.NoError(t, err)
			require.Equal(t, 1, peers)
			item := <-receiver.intake.got
			require.Equal(t, wire.SubnetID(uint64(v)%committees), item.Subnet)
		}
	}
}

func TestSubscriptionsAreExactlyTheConfigured(t *testing.T) {
	t.Parallel()
	table := newTopicTable(wire.DefaultNetwork, 4, []wire.SubnetID{1, 3})
	var got []string
	for _, e := range table.all {
		if e.isSubscribed {
			got = append(got, e.name)
		}
	}
	require.ElementsMatch(t, []string{
		"/leanconsensus/12345678/block/ssz_snappy",
		"/leanconsensus/12345678/aggregation/ssz_snappy",
		"/leanconsensus/12345678/attestation_1/ssz_snappy",
		"/leanconsensus/12345678/attestation_3/ssz_snappy",
	}, got)
	require.Len(t, table.all, 6)
	require.Equal(t, 2, table.attestationTopics())
}

// TestParkedVoteIsForwardedByRepublish pins what pubsub does with a local publish
// of bytes that were seen but never delivered.
func TestParkedVoteIsForwardedByRepublish(t *testing.T) {
	t.Parallel()
	a, b, c := line(t, nil)
	b.intake.set(func(f *fakeIntake) {
		f.submit = func(context.Context, *pipeline.Item) pipeline.Outcome { return ignored }
	})
	_, err := a.PublishAttestation(t.Context(), vote(t, 1))
	require.NoError(t, err)
	item := <-b.intake.got
	b.intake.set(func(f *fakeIntake) { f.submit = nil })
	c.intake.none(t)

	b.Republish(item)
	require.Equal(t, item.Payload, c.intake.next(t))
	b.intake.none(t)
	b.Republish(item) // delivered now: pubsub makes it a no-op
	_, err = a.PublishAttestation(t.Context(), vote(t, 1))
	require.NoError(t, err)
	require.NotEqual(t, item.Payload, c.intake.next(t), "the second Republish was not sent")
}

func TestPublishWithoutPeersIsCountedAndNoError(t *testing.T) {
	t.Parallel()
	n := start(t, nil)
	for range 3 {
		peers, err := n.PublishAttestation(t.Context(), vote(t, 2))
		require.NoError(t, err)
		require.Zero(t, peers)
	}
	require.Equal(t, 3, count(n.metrics.publishes.WithLabelValues("attestation", "no_peers")))
	require.NotContains(t, n.logs.String(), "level=WARN")
	require.NotContains(t, n.logs.String(), "level=ERROR")
}

func TestIntakeStopsBeforePublishing(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	a := start(t, func(cfg *Config, _ *fakeIntake) { cfg.Bootnodes = []Bootnode{bootnodeOf(b)} })
	a.meshed(t, subnet1, 1)
	b.meshed(t, subnet1, 1)
	a.StopIntake()
	a.StopIntake()
	peers, err := a.PublishAttestation(t.Context(), vote(t, 1))
	require.NoError(t, err)
	require.Equal(t, 1, peers)
	b.intake.next(t)
	_, err = b.PublishAttestation(t.Context(), vote(t, 1))
	require.NoError(t, err)
	eventually(t, a.metrics.stopping, 1)
	require.Zero(t, a.intake.screenedTotal())
	b.meshed(t, subnet1, 1)
	a.stop()
	_, err = a.PublishAttestation(t.Context(), vote(t, 1))
	require.ErrorIs(t, err, ErrNotRunning)
	ready, why := a.Ready()
	require.False(t, ready)
	require.NotEmpty(t, why)
	require.Empty(t, a.Peers())
	require.Empty(t, a.Addrs())
}
