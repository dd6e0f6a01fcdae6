package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// The block of an item comes at the same time as the item, in every order that
// two goroutines can produce: the item is never left in the park. The slot is an
// hour long, so that one that was left would hang until the test's own limit.
func TestABlockThatComesWhileAnItemIsParkedIsNotMissed(t *testing.T) {
	t.Parallel()
	const rounds, perRig = 10_000, 4000
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for done := 0; done < rounds; done += perRig {
		r := newRig(t, clockAt(10, 5*time.Hour), func(c *Config) { c.Validators = wire.DefaultRegistryLimit })
		stop := r.start()
		for i := range min(perRig, rounds-done) {
			data := dataFor(10, 1, 0)
			data.Head.Root = wire.Root{9, byte(i), byte(i >> 8)}
			var m any = r.attestation(i, data, good)
			if i%4 == 0 {
				m = r.aggregate(data, 10, good, i)
			}
			imported := make(chan struct{})
			go func() {
				defer close(imported)
				r.head.learn(data.Head.Root)
				r.HeadImported(data.Head.Root)
			}()
			require.Equal(t, outcomeOf(wire.ReasonNone), r.receiveCtx(ctx, "p", m), "round %d", done+i)
			<-imported
		}
		require.Zero(t, r.Stats().ParkedHeads)
		stop()
	}
}

// The same with the worst moment forced: the block comes after the look at the
// head view and before the park.
func TestABlockBetweenLookupAndParkIsNotMissed(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"attestation", "aggregate"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(r *rig) {
				data := dataFor(10, 5, 0)
				var m any = r.attestation(1, data, good)
				if what == "aggregate" {
					m = r.aggregate(data, 10, good, 1)
				}
				looks := 0
				r.head.onLookup = func() { looks++ }
				p := r.Pipeline
				p.head = lateImport{fakeHead: r.head, then: func() {
					if looks == 1 {
						r.head.learn(rootOf(5))
						p.HeadImported(rootOf(5))
					}
				}}
				start := time.Now()
				require.Equal(t, outcomeOf(wire.ReasonNone), r.receive("p", m))
				require.Zero(t, time.Since(start), "it did not wait")
				require.Equal(t, 2, looks)
			})
		})
	}
}

// lateImport lets a block come after the answer was found.
type lateImport struct {
	*fakeHead
	then func()
}

func (h lateImport) CheckData(d *wire.AttestationData) (wire.Reason, wire.Root) {
	r, missing := h.fakeHead.CheckData(d)
	h.then()

	return r, missing
}

// The head view calls HeadImported from within InsertBlock, on our worker.
func TestTheHeadViewMayCallBackFromInsertBlock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Workers = 1 }, func(r *rig) {
		b := r.block(10, good)
		root := b.Block.HashTreeRoot(r.cfg.Profile)
		data := dataFor(10, 1, 0)
		data.Head.Root = root
		r.head.onInsert = func(root wire.Root) {
			r.head.learn(root)
			r.HeadImported(root)
		}
		vote := r.later("p", r.attestation(3, data, good))
		advance(400 * time.Millisecond)
		require.Equal(t, 1, r.Stats().ParkedAttestations)
		require.Equal(t, outcomeOf(wire.ReasonNone), r.receive("p", b))
		require.Equal(t, outcomeOf(wire.ReasonNone), <-vote, "a vote 0.4 s ahead of its block")
		require.Equal(t, PeerScore{Verified: 2}, r.PeerScore("p"))
		require.Equal(t, 1, r.verifier.checked(), "one check of the vote")
	})
}

// A worker parks what it holds, and before it puts its batch down the block comes
// and another worker takes the item: it is the other's then.
func TestAParkedItemBelongsToTheNextWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clockAt(10, testSlot), nil) // does not run: the workers are ours
		one, two := newWorker(r.Pipeline), newWorker(r.Pipeline)
		out := r.later("p", r.attestation(1, dataFor(10, 5, 0), good))
		synctest.Wait()
		require.True(t, one.take())
		one.process(t.Context())
		require.Equal(t, 1, r.Stats().ParkedAttestations)
		r.head.learn(rootOf(5))
		r.HeadImported(rootOf(5))
		require.True(t, two.take())
		one.putDown()
		require.Empty(t, out)
		two.process(t.Context())
		two.putDown()
		require.Equal(t, outcomeOf(wire.ReasonNone), <-out)
		s := r.Stats()
		require.Zero(t, s.Busy+s.Classes[1].Running)
	})
}
