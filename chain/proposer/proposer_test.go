package proposer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/chain"
	"aggnode/wire"
)

const testSlot = 4 * time.Second

// world is a proposer over a real tree and clock and fakes for the rest.
type world struct {
	t       *testing.T
	profile *wire.Profile
	clock   *chain.Clock
	tree    *chain.Tree
	genesis wire.Root
	log     bytes.Buffer
	p       *Proposer

	best      *wire.SignedAggregate
	held      map[wire.ValidatorIndex]bool
	signErr   error
	reason    *wire.Reason // our own pipeline's answer; nil: insert into the tree
	sendErr   error
	calls     []string
	published []*wire.SignedBlock
	at        []time.Time
}

func (w *world) BestForBlock(wire.Slot) (*wire.SignedAggregate, bool) { return w.best, w.best != nil }

func (w *world) HasProposalKey(v wire.ValidatorIndex) bool { return w.held[v] }

func (w *world) SignBlock(_ context.Context, v wire.ValidatorIndex, slot wire.Slot, root wire.Root) ([]byte, error) {
	w.calls = append(w.calls, "sign")
	if w.signErr != nil {
		return nil, w.signErr
	}

	return w.signature(v, slot, root), nil
}

func (w *world) signature(v wire.ValidatorIndex, slot wire.Slot, root wire.Root) []byte {
	sig := make([]byte, w.profile.SignatureSize)
	sig[0], sig[1] = byte(v), byte(slot)
	copy(sig[2:], root[:])

	return sig
}

func (w *world) SubmitBlock(_ context.Context, b *wire.SignedBlock) wire.Reason {
	w.calls = append(w.calls, "deliver")
	if w.reason != nil {
		return *w.reason
	}
	root := b.Block.HashTreeRoot(w.profile)
	if r := w.tree.AdmitBlock(b, root); r != wire.ReasonNone {
		return r
	}

	return w.tree.InsertBlock(b, root, 0)
}

func (w *world) PublishBlock(_ context.Context, b *wire.SignedBlock) error {
	w.calls = append(w.calls, "publish")
	w.published = append(w.published, b)
	w.at = append(w.at, w.clock.Now())

	return w.sendErr
}

func newWorld(t *testing.T, profile string) *world {
	t.Helper()
	w := &world{t: t, genesis: wire.Root{9}, held: map[wire.ValidatorIndex]bool{1: true}}
	var err error
	w.profile, err = wire.LookupProfile(profile, "")
	require.NoError(t, err)
	w.clock = chain.NewClock(time.Now(), testSlot, nil)
	w.tree, err = chain.NewTree(chain.Config{Profile: w.profile, Validators: 4, GenesisRoot: w.genesis}, w.clock)
	require.NoError(t, err)
	w.p, err = New(Config{Profile: w.profile, Validators: 4, Logger: slog.New(slog.NewTextHandler(&w.log, nil))}, w.clock, w.tree, w, w, w, w)
	require.NoError(t, err)

	return w
}

// runUntil runs the proposer until a time after genesis.
func (w *world) runUntil(d time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithDeadline(w.t.Context(), w.clock.Genesis().Add(d))
	defer cancel()
	require.NoError(w.t, w.p.Run(ctx))
}

func (w *world) count(o Outcome) float64 {
	return testutil.ToFloat64(w.p.metrics.outcomes.WithLabelValues(o.String()))
}

// aggregate is a verified aggregate of votes of a slot for a head, in a form
// that was padded by its sender.
func (w *world) aggregate(slot wire.Slot, head wire.Checkpoint, voters ...wire.ValidatorIndex) *wire.SignedAggregate {
	w.t.Helper()
	participants, err := wire.NewParticipants(voters)
	require.NoError(w.t, err)
	a := &wire.SignedAggregate{
		Data:         wire.AttestationData{Slot: slot, Head: head, Target: head, Source: wire.Checkpoint{Root: w.genesis}},
		Participants: participants,
		Proof:        []byte("proof"),
	}

	return a
}

func TestBlocksOfOurOwnSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "local")
		w.held = map[wire.ValidatorIndex]bool{1: true, 2: true, 0: true}
		w.runUntil(5*testSlot + time.Second)
		slots := make([]wire.Slot, 0, 4)
		parent := w.genesis
		for i, b := range w.published {
			slots = append(slots, b.Block.Slot)
			root := b.Block.HashTreeRoot(w.profile)
			v := wire.ValidatorIndex(b.Block.Slot % 4)
			require.Equal(t, &wire.SignedBlock{
				Block:             wire.Block{Slot: b.Block.Slot, ProposerIndex: v, ParentRoot: parent},
				ProposerSignature: w.signature(v, b.Block.Slot, root),
			}, b)
			require.Equal(t, w.clock.SlotStart(b.Block.Slot), w.at[i])
			_, err := w.profile.EncodeBlock(b)
			require.NoError(t, err)
			parent = root
		}
		require.Equal(t, []wire.Slot{1, 2, 4, 5}, slots, "slot 0 is genesis, slot 3 is another node's")
		require.Equal(t, parent, w.tree.Head().Root, "our chain has our blocks")
		require.InDelta(t, 4, w.count(OutcomePublished), 0)
		require.Equal(t, 4, strings.Count(w.log.String(), "\n"), "one line a duty")
		require.Equal(t, []string{"sign", "deliver", "publish"}, w.calls[:3])
	})
}

func TestBodyIsTheBestAggregateUnchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "local")
		genesis := wire.Checkpoint{Root: w.genesis}
		w.best = w.aggregate(0, genesis, 0, 2)
		b, outcome, err := w.p.Propose(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, OutcomePublished, outcome)
		require.Equal(t, []byte("proof"), b.Proof)
		require.Len(t, b.Block.Body.Attestations, 1)
		require.Equal(t, w.best.Data, b.Block.Body.Attestations[0].Data)
		require.True(t, w.best.Participants.Equal(b.Block.Body.Attestations[0].Participants))
		encoded, err := w.profile.EncodeBlock(b)
		require.NoError(t, err)
		decoded, err := w.profile.DecodeBlock(encoded)
		require.NoError(t, err)
		require.Equal(t, b.Block.HashTreeRoot(w.profile), decoded.Block.HashTreeRoot(w.profile))
		require.Equal(t, b.Proof, decoded.Proof)
	})
}

func TestAggregateThatDoesNotFitLeavesTheBodyEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "local")
		w.held = map[wire.ValidatorIndex]bool{0: true, 1: true, 2: true, 3: true}
		genesis := wire.Checkpoint{Root: w.genesis}
		propose := func(slot wire.Slot) *wire.SignedBlock {
			t.Helper()
			require.NoError(t, w.clock.WaitUntil(t.Context(), w.clock.SlotStart(slot)))
			b, outcome, err := w.p.Propose(t.Context(), slot)
			require.NoError(t, err)
			require.Equal(t, OutcomePublished, outcome)

			return b
		}
		empty := func(b *wire.SignedBlock) bool { return len(b.Block.Body.Attestations) == 0 && len(b.Proof) == 0 }

		w.best = w.aggregate(1, genesis, 0, 2)
		require.True(t, empty(propose(1)), "a vote of the block's own slot")
		require.False(t, empty(propose(2)))
		require.True(t, empty(propose(3)), "all of it is in the block before")
		w.best = w.aggregate(1, genesis, 0, 1, 2)
		require.False(t, empty(propose(4)), "one participant is new")
		w.best = w.aggregate(4, wire.Checkpoint{Root: wire.Root{1}, Slot: 4}, 0, 1)
		require.True(t, empty(propose(5)), "an unknown head")

		fork := &wire.SignedBlock{Block: wire.Block{Slot: 5, ProposerIndex: 1, ParentRoot: w.genesis, StateRoot: wire.Root{1}}}
		root := fork.Block.HashTreeRoot(w.profile)
		require.Equal(t, wire.ReasonNone, w.tree.InsertBlock(fork, root, 0))
		b6 := propose(6)
		other := root
		if b6.Block.ParentRoot == root {
			other = w.published[4].Block.HashTreeRoot(w.profile)
		}
		w.best = w.aggregate(5, wire.Checkpoint{Root: other, Slot: 5}, 0, 1)
		require.True(t, empty(propose(7)), "a vote for another branch")
	})
}

func TestLateDutyIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "local")
		require.NoError(t, w.clock.WaitUntil(t.Context(), w.clock.IntervalStart(1, 1)))
		b, outcome, _ := w.p.Propose(t.Context(), 1)
		require.Nil(t, b)
		require.Equal(t, OutcomeLate, outcome)
		require.Empty(t, w.calls, "no position was used up")
		w.p.duty(t.Context(), 1)
		require.InDelta(t, 1, w.count(OutcomeLate), 0)
		require.Contains(t, w.log.String(), "outcome=late")
	})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for _, c := range []struct {
		name   string
		change func(*world)
		want   Outcome
		sent   int
	}{
		{"no key", func(w *world) { w.held = nil }, OutcomeRefused, 0},
		{"the key refuses", func(w *world) { w.signErr = fault }, OutcomeRefused, 0},
		{"our own pipeline finds a fault", func(w *world) { w.reason = new(wire.ReasonBadSignature) }, OutcomeWithheld, 0},
		{"our own pipeline has no room", func(w *world) { w.reason = new(wire.ReasonQueueFull) }, OutcomePublished, 1},
		{"our own pipeline is out of time", func(w *world) { w.reason = new(wire.ReasonExpired) }, OutcomePublished, 1},
		{"the network fails", func(w *world) { w.sendErr = fault }, OutcomeNotSent, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "local")
				c.change(w)
				_, outcome, err := w.p.Propose(t.Context(), 1)
				require.Equal(t, c.want, outcome)
				require.Equal(t, c.want != OutcomePublished, err != nil)
				require.Len(t, w.published, c.sent)
			})
		})
	}
}

func TestMergedEnvelopeCanNotBeMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "devnet5")
		w.runUntil(testSlot + time.Second)
		require.Empty(t, w.calls)
		require.InDelta(t, 1, w.count(OutcomeNoEnvelope), 0)
		require.Contains(t, w.log.String(), "merged")
	})
}

func TestEveryReasonIsSortedByFault(t *testing.T) {
	t.Parallel()
	faults := 0
	for _, r := range wire.Reasons() {
		if isFault(r) {
			faults++
		}
	}
	require.Equal(t, 9, faults)
	require.False(t, isFault(wire.ReasonNone))
}

func TestNewRefusesAnUnusableConfig(t *testing.T) {
	t.Parallel()
	profile, err := wire.LookupProfile("local", "")
	require.NoError(t, err)
	for _, cfg := range []Config{{Validators: 1}, {Profile: profile}} {
		_, err := New(cfg, nil, nil, nil, nil, nil, nil)
		require.Error(t, err)
	}
	reg := prometheus.NewRegistry()
	_, err = New(Config{Profile: profile, Validators: 1, Registerer: reg}, nil, nil, nil, nil, nil, nil)
	require.NoError(t, err)
	_, err = New(Config{Profile: profile, Validators: 1, Registerer: reg}, nil, nil, nil, nil, nil, nil)
	require.Error(t, err, "one proposer a registry")
}

func TestOutcomesAreDocumented(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for _, o := range Outcomes() {
		require.False(t, codes[o.String()])
		codes[o.String()] = true
		require.NotEmpty(t, o.Short())
		require.NotEmpty(t, o.Long())
	}
	require.Equal(t, "unknown", Outcome(200).String())
}
