package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// lot is a park with a maker of items.
type lot struct {
	parking
	seq uint64
}

func newLot(bound int) *lot {
	return &lot{parking: newParking(Limits{ParkedAttestations: bound})}
}

func (l *lot) attestation(head byte) (*Item, []uint64) {
	l.seq++
	it := &Item{kind: kindAttestation, seq: l.seq, peer: &peerRecord{}}

	return it, seqs(l.parkAttestation(it, rootOf(head)))
}

func (l *lot) aggregate(peer *peerRecord, size int, head byte) []uint64 {
	l.seq++
	it := &Item{kind: kindAggregate, seq: l.seq, peer: peer, Size: size}

	return seqs(l.parkAggregate(it, rootOf(head), nil))
}

func TestTheHeadWithTheFewestVotesLosesOne(t *testing.T) {
	t.Parallel()
	l := newLot(5)
	for _, head := range []byte{1, 1, 1, 2, 2} { // seq 1 to 5
		_, gone := l.attestation(head)
		require.Empty(t, gone)
	}
	_, gone := l.attestation(1)
	require.Equal(t, []uint64{5}, gone, "the newest of head 2")
	_, gone = l.attestation(3)
	require.Equal(t, []uint64{4}, gone, "a tie: the older head")
	_, gone = l.attestation(1)
	require.Equal(t, []uint64{7}, gone)
	_, gone = l.attestation(4)
	require.Equal(t, []uint64{9}, gone, "fewer than anybody: the newcomer")
	_, gone = l.attestation(1)
	require.Equal(t, []uint64{10}, gone, "nobody else is left")
	require.Equal(t, 5, l.attestations)
	require.Len(t, l.heads, 1)
}

func TestAtMost32HeadsAreWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLot(1000)
	for head := range byte(maxParkedHeads) {
		_, gone := l.attestation(head)
		require.Empty(t, gone)
	}
	l.attestation(0) // seq 33
	for i := range 20 {
		_, gone := l.attestation(byte(100 + i))
		require.Equal(t, []uint64{uint64(2 + i)}, gone, "the oldest of those with one vote")
	}
	require.Len(t, l.heads, maxParkedHeads)
	require.Equal(t, []uint64{1, 33}, seqs(l.release(rootOf(0))))
	require.Empty(t, l.release(rootOf(0)))
	require.Equal(t, maxParkedHeads-1, l.attestations)
}

func TestParkedAggregatesAreBoundedByNumberBytesAndPeer(t *testing.T) {
	t.Parallel()
	l := newLot(10)
	greedy := &peerRecord{}
	require.Empty(t, l.aggregate(greedy, 3<<20, 1))
	require.Empty(t, l.aggregate(greedy, 3<<20, 1))
	require.Equal(t, []uint64{3}, l.aggregate(greedy, 1, 1), "a third one")
	require.Empty(t, l.aggregate(&peerRecord{}, 1<<20, 1))
	require.Equal(t, []uint64{2}, l.aggregate(&peerRecord{}, 2<<20, 2), "the newest of the largest peer")
	require.Equal(t, []uint64{6}, l.aggregate(&peerRecord{}, 7<<20, 2), "which is the newcomer")
	for range 13 {
		require.Empty(t, l.aggregate(&peerRecord{}, 10, 1))
	}
	require.Len(t, l.aggregates, parkedAggregateBound)
	require.Equal(t, []uint64{1}, l.aggregate(&peerRecord{}, 10, 1))
	require.Len(t, l.aggregates, parkedAggregateBound)
	require.Equal(t, []uint64{5}, seqs(l.release(rootOf(2))))
	require.Len(t, l.release(rootOf(1)), parkedAggregateBound-1)
	require.Zero(t, l.bytes)
	require.Zero(t, greedy.parkedAggs+greedy.parkedAggBytes)
}

// A block that many votes wait for releases them in batches, not one by one.
func TestReleasedVotesGoToThePoolTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Workers = 1 }, func(r *rig) {
		var all []<-chan Outcome
		for v := range 40 {
			all = append(all, r.later("p", r.attestation(v, dataFor(10, 5, 0), good)))
		}
		advance(1)
		require.Equal(t, 40, r.Stats().ParkedAttestations)
		r.head.learn(rootOf(5))
		r.HeadImported(rootOf(5))
		for _, ch := range all {
			require.Equal(t, outcomeOf(wire.ReasonNone), <-ch)
		}
		require.Equal(t, 40, r.verifier.checked())
	})
}

// The head's block comes first and its target is unknown then: the item waits on.
func TestAnItemWaitsForOneBlockAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"attestation", "aggregate"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(r *rig) {
				data := dataFor(10, 5, 0)
				data.Target.Root = rootOf(6)
				var m any = r.attestation(1, data, good)
				if what == "aggregate" {
					m = r.aggregate(data, 10, good, 1)
				}
				out := r.later("p", m)
				for _, block := range []byte{5, 6} {
					advance(300 * time.Millisecond)
					s := r.Stats()
					require.Equal(t, 1, s.ParkedAttestations+s.ParkedAggregates)
					require.Empty(t, out)
					r.head.learn(rootOf(block))
					r.HeadImported(rootOf(block))
				}
				require.Equal(t, outcomeOf(wire.ReasonNone), <-out)
			})
		})
	}
}

// A block that contradicts what it was waited for ends the wait with a reject.
func TestABlockMayProveAParkedItemWrong(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"attestation", "aggregate"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(r *rig) {
				var m any = r.attestation(1, dataFor(10, 5, 0), good)
				if what == "aggregate" {
					m = r.aggregate(dataFor(10, 5, 0), 10, good, 1)
				}
				out := r.later("p", m)
				advance(300 * time.Millisecond)
				r.head.mu.Lock()
				r.head.wrong = true
				r.head.mu.Unlock()
				r.HeadImported(rootOf(5))
				require.Equal(t, outcomeOf(wire.ReasonBadCheckpoints), <-out)
				require.Equal(t, 1, r.PeerScore("p").Rejected)
			})
		})
	}
}

// A check that ends after the verdict was due, and then finds the head unknown:
// the vote waits for the pool alone, and is gone when the pool has no use for it.
func TestALateVoteOnAnUnknownHeadWaitsForThePool(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Republish = func(*Item) { panic("its verdict was not for want of a block") } }, func(r *rig) {
		r.verifier.gate = slow(2*time.Second, 0)
		require.Equal(t, outcomeOf(wire.ReasonExpired), r.receive("p", r.attestation(1, dataFor(10, 5, 0), good)))
		advance(time.Second)
		require.Equal(t, 1, r.Stats().ParkedAttestations)
		r.head.learn(rootOf(5))
		r.HeadImported(rootOf(5))
		synctest.Wait()
		validators, _, _ := r.sink.counts()
		require.Equal(t, 1, validators)

		r.verifier.gate = slow(9*time.Second, 0)
		require.Equal(t, outcomeOf(wire.ReasonExpired), r.receive("p", r.attestation(2, dataFor(10, 6, 0), good)))
		advance(9 * time.Second)
		require.Zero(t, r.Stats().ParkedAttestations)
		r.balanced()
	})
}

// Room in the park is short: the one that loses is answered at once, and another
// copy of its vote is not called a duplicate.
func TestAVoteThatLosesItsParkingPlaceIsForgotten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Validators = 40; c.Committees = 8 }, func(r *rig) {
		require.Equal(t, minParkedAttestations, r.Limits().ParkedAttestations)
		var first []<-chan Outcome
		for v := range 16 {
			first = append(first, r.later("p", r.attestation(v, dataFor(10, 5, 0), good)))
		}
		advance(1)
		require.Equal(t, outcomeOf(wire.ReasonQueueFull), r.receive("p", r.attestation(16, dataFor(10, 6, 0), good)))
		r.head.learn(rootOf(6))
		require.Equal(t, outcomeOf(wire.ReasonNone), r.receive("p", r.attestation(16, dataFor(10, 6, 0), good)))
		for _, ch := range first {
			require.Equal(t, outcomeOf(wire.ReasonUnknownHead), <-ch)
		}
	})
}
