package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestEveryReasonHasTheVerdictOfTheTable(t *testing.T) {
	t.Parallel()
	reject := map[wire.Reason]bool{
		wire.ReasonMalformed: true, wire.ReasonSchemeMismatch: true, wire.ReasonUnknownValidator: true,
		wire.ReasonEmptyParticipants: true, wire.ReasonBadSignature: true, wire.ReasonBadProof: true,
		wire.ReasonClaimMismatch: true, wire.ReasonBadProposer: true, wire.ReasonBadCheckpoints: true,
	}
	for _, r := range wire.Reasons() {
		want := Ignore
		switch {
		case reject[r]:
			want = Reject
		case r == wire.ReasonUnverified:
			want = Accept // forwarded on its structure, never pooled
		}
		require.Equal(t, want, VerdictOf(r), r.String())
		require.Less(t, int(r), reasonCount, "the metrics have a series for it")
	}
	require.Equal(t, Accept, VerdictOf(wire.ReasonNone))
	require.Equal(t, Ignore, VerdictOf(wire.Reason(250)), "an unknown number proves nothing")
}

// situation is one row of the table: a message that ends with a reason.
type situation struct {
	name   string
	set    func(r *rig) // before the message
	send   func(r *rig) Outcome
	want   wire.Reason
	reject bool // counted for the peer
}

func situations() []situation {
	vote := func(v int, quality byte) func(r *rig) Outcome {
		return func(r *rig) Outcome { return r.receive("p", r.attestation(v, dataFor(10, 1, 0), quality)) }
	}
	voteOn := func(data wire.AttestationData) func(r *rig) Outcome {
		return func(r *rig) Outcome { return r.receive("p", r.attestation(3, data, good)) }
	}
	agg := func(quality byte, indices ...int) func(r *rig) Outcome {
		return func(r *rig) Outcome { return r.receive("p", r.aggregate(dataFor(10, 1, 0), 100, quality, indices...)) }
	}
	aggOn := func(data wire.AttestationData) func(r *rig) Outcome {
		return func(r *rig) Outcome { return r.receive("p", r.aggregate(data, 100, good, 1, 2)) }
	}
	block := func(slot wire.Slot, quality byte) func(r *rig) Outcome {
		return func(r *rig) Outcome { return r.receive("p", r.block(slot, quality)) }
	}
	raw := func(kind wire.TopicKind, size int) func(r *rig) Outcome {
		return func(r *rig) Outcome {
			_, out := r.Screen(wire.Topic{Kind: kind}, "p", make([]byte, size))

			return out
		}
	}
	contradicting := dataFor(10, 1, 0)
	contradicting.Source.Slot = 11
	first := func(send func(r *rig) Outcome) func(r *rig) {
		return func(r *rig) { require.Equal(r.t, Accept, send(r).Verdict) }
	}
	none := func(*rig) {}

	return []situation{
		{"good vote", none, vote(3, good), wire.ReasonNone, false},
		{"vote of another length", none, raw(wire.TopicAttestation, 100), wire.ReasonMalformed, true},
		{"vote of the length of another scheme", none, raw(wire.TopicAttestation, 136+2404), wire.ReasonSchemeMismatch, true},
		{"empty message", none, raw(wire.TopicAttestation, 0), wire.ReasonMalformed, true},
		{"validator outside the registry", none, vote(1024, good), wire.ReasonUnknownValidator, true},
		{"validator index near 2^64", none, vote(-1, good), wire.ReasonUnknownValidator, true},
		{"bad signature", none, vote(3, bad), wire.ReasonBadSignature, true},
		{"vote with checkpoints that contradict", none, voteOn(contradicting), wire.ReasonBadCheckpoints, true},
		{"old vote", none, voteOn(dataFor(8, 1, 0)), wire.ReasonStale, false},
		{"very old vote", none, voteOn(dataFor(0, 1, 0)), wire.ReasonStale, false},
		{"vote of the next slot", none, voteOn(dataFor(11, 1, 0)), wire.ReasonEarly, false},
		{"vote of slot 2^64-1", none, voteOn(dataFor(1<<64-1, 1, 0)), wire.ReasonEarly, false},
		{"vote twice", first(vote(3, good)), vote(3, good), wire.ReasonDuplicate, false},
		{"second vote of a validator", first(vote(3, good)), voteOn(dataFor(10, 1, 7)), wire.ReasonEquivocation, false},
		{"forged second vote", first(vote(3, good)), func(r *rig) Outcome {
			return r.receive("p", r.attestation(3, dataFor(10, 1, 7), bad))
		}, wire.ReasonBadSignature, true},
		{"vote on an unknown head", none, voteOn(dataFor(10, 9, 0)), wire.ReasonUnknownHead, false},
		{"vote while the pool is full", func(r *rig) { r.sink.full = true }, vote(3, good), wire.ReasonPoolFull, false},
		{"vote while the sink fails", func(r *rig) { r.sink.fail = true }, vote(3, good), wire.ReasonInternalError, false},
		{"vote while the head view fails", func(r *rig) { r.head.fail = true }, vote(3, good), wire.ReasonInternalError, false},
		{"vote while the verifier fails", none, vote(3, panics), wire.ReasonInternalError, false},
		{"vote while the verifier is away", none, vote(3, unavailable), wire.ReasonVerifierUnavailable, false},

		{"good aggregate", none, agg(good, 1, 2), wire.ReasonNone, false},
		{"aggregate that is no encoding", none, raw(wire.TopicAggregation, 100), wire.ReasonMalformed, true},
		{"aggregate without participants", none, func(r *rig) Outcome {
			topic, payload := r.encode(r.aggregate(dataFor(10, 1, 0), 100, good, 1))
			payload[128+4+8] = 1 // the delimiter alone

			_, out := r.Screen(topic, "p", payload)

			return out
		}, wire.ReasonEmptyParticipants, true},
		{"participant outside the registry", none, agg(good, 1, 1024), wire.ReasonUnknownValidator, true},
		{"bad proof", none, agg(bad, 1, 2), wire.ReasonBadProof, true},
		{"aggregate with checkpoints that contradict", none, aggOn(contradicting), wire.ReasonBadCheckpoints, true},
		{"old aggregate", none, aggOn(dataFor(7, 1, 0)), wire.ReasonStale, false},
		{"aggregate of slot 2^64-1", none, aggOn(dataFor(1<<64-1, 1, 0)), wire.ReasonEarly, false},
		{"aggregate twice", first(agg(good, 1, 2)), agg(good, 1, 2), wire.ReasonDuplicate, false},
		{"part of a verified aggregate", first(agg(good, 1, 2, 3)), agg(good, 1, 3), wire.ReasonSubsumed, false},
		{"aggregate on an unknown head", none, aggOn(dataFor(10, 9, 0)), wire.ReasonUnknownHead, false},
		{"aggregate while the pool is full", func(r *rig) { r.sink.full = true }, agg(good, 1), wire.ReasonPoolFull, false},
		{"aggregate while the head view fails", func(r *rig) { r.head.fail = true }, agg(good, 1), wire.ReasonInternalError, false},
		{"aggregate while the verifier fails", none, agg(panics, 1), wire.ReasonInternalError, false},
		{"aggregate while the verifier is away", none, agg(unavailable, 1), wire.ReasonVerifierUnavailable, false},

		{"good block", none, block(10, good), wire.ReasonNone, false},
		{"block that is no encoding", none, raw(wire.TopicBlock, 3), wire.ReasonMalformed, true},
		{"block too far ahead", none, block(12, good), wire.ReasonEarly, false},
		{"block of slot 2^64-1", none, block(1<<64-1, good), wire.ReasonEarly, false},
		{"block with a bad signature", none, block(10, bad), wire.ReasonBadSignature, true},
		{"block of the wrong proposer", func(r *rig) { r.head.admit = wire.ReasonBadProposer }, block(10, good), wire.ReasonBadProposer, true},
		{"block without parent", func(r *rig) { r.head.insert = wire.ReasonUnknownParent }, block(10, good), wire.ReasonUnknownParent, false},
		{"one block too many", func(r *rig) { r.head.admit = wire.ReasonTooManyForSlot }, block(10, good), wire.ReasonTooManyForSlot, false},
		{"late block", none, block(3, good), wire.ReasonNone, false},
	}
}

func TestEverySituationEndsWithItsReason(t *testing.T) {
	t.Parallel()
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(r *rig) {
				s.set(r)
				before := r.PeerScore("p").Rejected
				require.Equal(t, outcomeOf(s.want), s.send(r))
				want := 0
				if s.reject {
					want = 1
				}
				require.Equal(t, want, r.PeerScore("p").Rejected-before, "rejects counted for the peer")
				require.Equal(t, 1, r.balanced()[s.want.String()], "one item with this reason")
				r.head.mu.Lock()
				r.head.fail, r.head.admit, r.head.insert = false, 0, 0
				r.head.mu.Unlock()
				r.sink.full, r.sink.fail = false, false
				require.Equal(t, Accept, r.receive("q", r.attestation(900, dataFor(10, 1, 0), good)).Verdict, "and the worker lives")
			})
		})
	}
}

func TestAVoteOfAnotherSubnetIsIgnored(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Committees = 4; c.Subnets = []wire.SubnetID{1, 3} }, func(r *rig) {
		_, payload := r.encode(r.attestation(6, dataFor(10, 1, 0), good))
		it, out := r.Screen(wire.Topic{Kind: wire.TopicAttestation, Subnet: 1}, "p", payload)
		require.Nil(t, it)
		require.Equal(t, outcomeOf(wire.ReasonWrongSubnet), out)
		require.Zero(t, r.PeerScore("p").Rejected)
	})
}

func TestTheSlotWindowHasTheWidthOfOneIntervalAhead(t *testing.T) {
	t.Parallel()
	interval := testSlot / wire.IntervalsPerSlot
	tests := []struct {
		name string
		at   time.Duration // after the start of slot 10
		slot wire.Slot
		vote wire.Reason
		agg  wire.Reason
	}{
		{"one interval before its slot", testSlot - interval, 11, 0, 0},
		{"1 ms earlier", testSlot - interval - time.Millisecond, 11, wire.ReasonEarly, wire.ReasonEarly},
		{"two slots ahead", testSlot - 1, 12, wire.ReasonEarly, wire.ReasonEarly},
		{"near 2^64", 0, 1<<64 - 2, wire.ReasonEarly, wire.ReasonEarly},
		{"its own slot", 0, 10, 0, 0},
		{"last moment of a vote", testSlot - 1, 9, 0, 0},
		{"start of slot+2", 0, 8, wire.ReasonStale, 0},
		{"last moment of an aggregate", testSlot - 1, 8, wire.ReasonStale, 0},
		{"start of slot+3", 0, 7, wire.ReasonStale, wire.ReasonStale},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, clockAt(10, testSlot), nil)
				advance(tt.at)
				screen := func(m any) wire.Reason {
					topic, payload := r.encode(m)
					it, out := r.Screen(topic, "p", payload)
					require.Equal(t, out.Verdict == VerdictUnknown, it != nil, "an item or an outcome")

					return out.Reason
				}
				require.Equal(t, tt.vote, screen(r.attestation(1, dataFor(tt.slot, 1, 0), good)))
				require.Equal(t, tt.agg, screen(r.aggregate(dataFor(tt.slot, 1, 0), 10, good, 1)))
			})
		})
	}
}

func TestBeforeGenesisOnlySlotZeroIsNear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &testClock{genesis: time.Now().Add(testSlot), slot: testSlot}
		r := newRig(t, clock, nil)
		screen := func(slot wire.Slot) wire.Reason {
			topic, payload := r.encode(r.attestation(1, dataFor(slot, 1, 0), good))
			_, out := r.Screen(topic, "p", payload)

			return out.Reason
		}
		require.Equal(t, wire.ReasonEarly, screen(0))
		advance(testSlot - testSlot/wire.IntervalsPerSlot)
		require.Equal(t, wire.ReasonNone, screen(0))
		require.Equal(t, wire.ReasonEarly, screen(1))
	})
}

func TestLocalItemsAreCheckedLikeOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		ctx := context.Background()
		data := dataFor(10, 1, 0)
		local := func(it *Item) wire.Reason { return r.SubmitLocal(ctx, it).Reason }
		require.Equal(t, wire.ReasonNone, local(&Item{Attestation: r.attestation(5, data, good)}))
		require.Equal(t, wire.ReasonDuplicate, local(&Item{Attestation: r.attestation(5, data, good)}))
		require.Equal(t, wire.ReasonBadSignature, local(&Item{Attestation: r.attestation(6, data, bad)}))
		require.Equal(t, wire.ReasonUnknownValidator, local(&Item{Attestation: r.attestation(5000, data, good)}))
		require.Equal(t, wire.ReasonNone, local(&Item{Block: r.block(10, good)}))
		require.Equal(t, wire.ReasonMalformed, local(&Item{Block: &wire.SignedBlock{}}), "no signature to encode")
		require.Equal(t, wire.ReasonNone, local(&Item{Aggregate: r.aggregate(data, 10, good, 1, 2)}))
		require.Equal(t, wire.ReasonInternalError, local(&Item{}))
		require.Equal(t, wire.ReasonNone, r.CheckAggregate(ctx, r.aggregate(data, 10, good, 1, 2)), "a self-check is made always")
		require.Equal(t, wire.ReasonNone, r.CheckAggregate(ctx, r.aggregate(data, 10, good, 1, 2, 3)))
		require.Equal(t, wire.ReasonBadProof, r.CheckAggregate(ctx, r.aggregate(data, 10, bad, 9)))
		validators, _, aggregates := r.sink.counts()
		require.Equal(t, 1, validators)
		require.Equal(t, 1, aggregates, "self-checks reach no pool")
		require.Equal(t, wire.ReasonSubsumed, r.receive("p", r.aggregate(data, 10, good, 2, 3)).Reason, "what we made counts as verified")
		r.balanced()
	})
}

func TestAnUnverifiedAggregateIsForwardedAndNotPooled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		p := r.Pipeline
		p.verifier = unverified{r.verifier}
		for range 2 { // it is no verified fact, so the second is no duplicate
			require.Equal(t, Outcome{Accept, wire.ReasonUnverified}, r.receive("p", r.aggregate(dataFor(10, 1, 0), 10, good, 1)))
		}
		_, _, aggregates := r.sink.counts()
		require.Zero(t, aggregates)
		require.Zero(t, r.PeerScore("p").Verified)
	})
}

// unverified is a verifier without a backend.
type unverified struct{ *fakeVerifier }

func (unverified) Aggregates(_ context.Context, _ []*wire.SignedAggregate, out []wire.Reason) {
	for i := range out {
		out[i] = wire.ReasonUnverified
	}
}

func TestSlotsOfEarlyBlocksAreHandedToWhoWatchesTheClock(t *testing.T) {
	t.Parallel()
	var told []wire.Slot
	inBubble(t, func(c *Config) { c.EarlyBlock = func(s wire.Slot) { told = append(told, s) } }, func(r *rig) {
		for _, slot := range []wire.Slot{10, 12, 1<<64 - 1} {
			topic, payload := r.encode(r.block(slot, good))
			r.Screen(topic, "p", payload)
		}
	})
	require.Equal(t, []wire.Slot{12, 1<<64 - 1}, told)
}
