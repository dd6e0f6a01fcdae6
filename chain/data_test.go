package chain

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// hexRoot reads a root from 0x and 64 digits.
type hexRoot wire.Root

func (r *hexRoot) UnmarshalText(text []byte) error {
	_, err := hex.Decode(r[:], []byte(strings.TrimPrefix(string(text), "0x")))

	return err
}

type jsonCheckpoint struct {
	Root hexRoot
	Slot wire.Slot
}

func (c jsonCheckpoint) wire() wire.Checkpoint { return checkpoint(wire.Root(c.Root), c.Slot) }

type jsonData struct {
	Slot                 wire.Slot
	Head, Target, Source jsonCheckpoint
}

func (d jsonData) wire() *wire.AttestationData {
	return &wire.AttestationData{Slot: d.Slot, Head: d.Head.wire(), Target: d.Target.wire(), Source: d.Source.wire()}
}

// forkChoice is the part of a leanSpec fork_choice case that the tree is about.
type forkChoice struct {
	AnchorBlock struct{ Slot wire.Slot }
	AnchorState struct {
		Validators struct{ Data []json.RawMessage }
	}
	Steps []forkChoiceStep
}

type forkChoiceStep struct {
	StepType        string
	Valid           bool
	RejectionReason string
	StoreSnapshot   struct {
		BlockRoots []hexRoot
		Finalized  jsonCheckpoint `json:"latestFinalized"`
	}
	Block       *jsonBlock
	Attestation *struct{ Data jsonData }
}

type jsonBlock struct {
	Slot                  wire.Slot
	ProposerIndex         wire.ValidatorIndex
	ParentRoot, StateRoot hexRoot
	Body                  struct {
		Attestations struct {
			Data []struct {
				AggregationBits struct{ Data []bool }
				Data            jsonData
			}
		}
	}
}

func (j *jsonBlock) wire(t *testing.T) *wire.SignedBlock {
	t.Helper()
	b := &wire.SignedBlock{Block: wire.Block{
		Slot:          j.Slot,
		ProposerIndex: j.ProposerIndex,
		ParentRoot:    wire.Root(j.ParentRoot),
		StateRoot:     wire.Root(j.StateRoot),
	}}
	for _, a := range j.Body.Attestations.Data {
		var indices []wire.ValidatorIndex
		for v, set := range a.AggregationBits.Data {
			if set {
				indices = append(indices, wire.ValidatorIndex(v))
			}
		}
		participants, err := wire.NewParticipants(indices)
		require.NoError(t, err)
		b.Block.Body.Attestations = append(b.Block.Body.Attestations, wire.AggregatedAttestation{Participants: participants, Data: *a.Data.wire()})
	}

	return b
}

// leanSpecReasons are our answers to the rejections of the specification.
// Rule 7, signatures and the registry of votes are other packages'.
var leanSpecReasons = map[string]wire.Reason{
	"":                              wire.ReasonNone,
	"UNKNOWN_SOURCE_BLOCK":          wire.ReasonUnknownHead,
	"UNKNOWN_TARGET_BLOCK":          wire.ReasonUnknownHead,
	"UNKNOWN_HEAD_BLOCK":            wire.ReasonUnknownHead,
	"SOURCE_AFTER_TARGET":           wire.ReasonBadCheckpoints,
	"HEAD_OLDER_THAN_TARGET":        wire.ReasonBadCheckpoints,
	"SOURCE_SLOT_MISMATCH":          wire.ReasonBadCheckpoints,
	"TARGET_SLOT_MISMATCH":          wire.ReasonBadCheckpoints,
	"HEAD_SLOT_MISMATCH":            wire.ReasonBadCheckpoints,
	"SOURCE_NOT_ANCESTOR_OF_TARGET": wire.ReasonBadCheckpoints,
	"TARGET_NOT_ANCESTOR_OF_HEAD":   wire.ReasonBadCheckpoints,
	"ATTESTATION_SLOT_BEFORE_HEAD":  wire.ReasonBadCheckpoints,
	"ATTESTATION_TOO_FAR_IN_FUTURE": wire.ReasonNone,
	"INVALID_SIGNATURE":             wire.ReasonNone,
	"VALIDATOR_NOT_IN_STATE":        wire.ReasonNone,
	"EMPTY_AGGREGATION_BITS":        wire.ReasonNone,
	"DUPLICATE_ATTESTATION_DATA":    wire.ReasonMalformed,
	"UNKNOWN_PARENT_BLOCK":          wire.ReasonUnknownParent,
}

// TestTreeAgreesWithLeanSpec runs the blocks, votes and aggregates of all
// fork_choice cases that start at genesis: the same verdict by the same rules on
// both paths, and the same block roots.
func TestTreeAgreesWithLeanSpec(t *testing.T) {
	t.Parallel()
	blocks, data := 0, 0
	n := cases(t, leanspec(t, "fork_choice"), func(t *testing.T, c forkChoice) {
		if c.AnchorBlock.Slot != 0 || len(c.Steps) == 0 {
			return // the tree starts at genesis
		}
		w := newWorld(t, func(cfg *Config) {
			cfg.GenesisRoot = wire.Root(c.Steps[0].StoreSnapshot.Finalized.Root)
			cfg.Validators = max(1, len(c.AnchorState.Validators.Data))
		})
		for i := range c.Steps {
			s := &c.Steps[i]
			want, known := leanSpecReasons[s.RejectionReason]
			require.True(t, known, "rejection %q has no row", s.RejectionReason)
			switch s.StepType {
			case "tick":
			case "block":
				b := s.Block.wire(t)
				root := b.Block.HashTreeRoot(w.tree.cfg.Profile)
				w.time.set(maxTime(w.time.now(), w.clock.SlotStart(b.Block.Slot)))
				got := w.tree.InsertBlock(b, root, 0)
				if s.Valid && got != wire.ReasonDuplicate {
					require.Equal(t, wire.ReasonNone, got, "step %d", i)
					require.Contains(t, s.StoreSnapshot.BlockRoots, hexRoot(root))
				}
				if !s.Valid {
					require.Equal(t, want, got, "step %d", i)
				}
				blocks++
			case "attestation", "gossipAggregatedAttestation":
				d := s.Attestation.Data.wire()
				got, missing := w.tree.CheckData(d)
				data++
				if want == wire.ReasonUnknownHead && got == wire.ReasonBadCheckpoints {
					// The specification looks for blocks before it compares slots.
					require.True(t, d.Source.Slot > d.Target.Slot || d.Head.Slot < d.Target.Slot || d.Slot < d.Head.Slot)

					continue
				}
				require.Equal(t, want, got, "step %d: %s", i, s.RejectionReason)
				_, _, isKnown := w.tree.Known(missing)
				require.Equal(t, want == wire.ReasonUnknownHead, missing != wire.Root{} && !isKnown)
			default:
				t.Fatalf("step %q has no test", s.StepType)
			}
		}
	})
	t.Logf("%d cases, %d blocks, %d attestation data", n, blocks, data)
	require.Greater(t, blocks, 400)
	require.Greater(t, data, 90)
}

func TestCheckData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// genesis - a1 - a2 - a4
	//              \ b3
	a1 := w.insert(1, w.genesis, 1, wire.ReasonNone)
	a2 := w.insert(2, a1, 1, wire.ReasonNone)
	b3 := w.insert(3, a1, 2, wire.ReasonNone)
	a4 := w.insert(4, a2, 1, wire.ReasonNone)
	unknown, other := fakeRoot(1), fakeRoot(2)
	genesis := checkpoint(w.genesis, 0)
	for _, c := range []struct {
		name                 string
		slot                 wire.Slot
		head, target, source wire.Checkpoint
		want                 wire.Reason
		missing              wire.Root
	}{
		{name: "all on one chain", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a2, 2), source: checkpoint(a1, 1)},
		{name: "all three the same", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a4, 4), source: checkpoint(a4, 4)},
		{name: "a vote for genesis", slot: 0, head: genesis, target: genesis, source: genesis},
		{name: "the vote is of the head's slot", slot: 3, head: checkpoint(b3, 3), target: checkpoint(a1, 1), source: genesis},
		{name: "the vote is older than its head", slot: 3, head: checkpoint(a4, 4), target: checkpoint(a2, 2), source: genesis, want: wire.ReasonBadCheckpoints},
		{name: "source after target", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a1, 1), source: checkpoint(a2, 2), want: wire.ReasonBadCheckpoints},
		{name: "head before target", slot: 4, head: checkpoint(a2, 2), target: checkpoint(a4, 4), source: genesis, want: wire.ReasonBadCheckpoints},
		{name: "head on a sibling", slot: 4, head: checkpoint(b3, 3), target: checkpoint(a2, 2), source: genesis, want: wire.ReasonBadCheckpoints},
		{name: "source on a sibling", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a4, 4), source: checkpoint(b3, 3), want: wire.ReasonBadCheckpoints},
		{name: "head with another slot", slot: 5, head: checkpoint(a4, 5), target: checkpoint(a2, 2), source: genesis, want: wire.ReasonBadCheckpoints},
		{name: "target with another slot", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a2, 3), source: genesis, want: wire.ReasonBadCheckpoints},
		{name: "source with another slot", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a2, 2), source: checkpoint(w.genesis, 1), want: wire.ReasonBadCheckpoints},
		{name: "head unknown", slot: 4, head: checkpoint(unknown, 4), target: checkpoint(a2, 2), source: genesis, want: wire.ReasonUnknownHead, missing: unknown},
		{name: "target unknown", slot: 4, head: checkpoint(a4, 4), target: checkpoint(unknown, 2), source: genesis, want: wire.ReasonUnknownHead, missing: unknown},
		{name: "source unknown", slot: 4, head: checkpoint(a4, 4), target: checkpoint(a2, 2), source: checkpoint(unknown, 1), want: wire.ReasonUnknownHead, missing: unknown},
		{name: "two unknown: the head is waited for", slot: 4, head: checkpoint(unknown, 4), target: checkpoint(other, 4), source: genesis, want: wire.ReasonUnknownHead, missing: unknown},
		{name: "unknown and wrong from the bytes alone", slot: 4, head: checkpoint(unknown, 4), target: checkpoint(a1, 1), source: checkpoint(a2, 2), want: wire.ReasonBadCheckpoints},
		{name: "slots near 2^64", slot: 1<<64 - 1, head: checkpoint(unknown, 1<<64-1), target: checkpoint(a1, 1), source: genesis, want: wire.ReasonUnknownHead, missing: unknown},
	} {
		r, missing := w.tree.CheckData(&wire.AttestationData{Slot: c.slot, Head: c.head, Target: c.target, Source: c.source})
		require.Equal(t, c.want, r, c.name)
		require.Equal(t, c.missing, missing, c.name)
	}
}

// model is the tree as it should be: parents by root, and for a block over a gap
// the parent that was not seen.
type model struct {
	parent map[wire.Root]wire.Root
	slot   map[wire.Root]wire.Slot
}

// relation walks parents one by one.
func (m *model) relation(genesis, a, b wire.Root) relation {
	for {
		if a == b {
			return related
		}
		if b == genesis || m.slot[b] < m.slot[a] {
			return unrelated
		}
		next := m.parent[b]
		if _, known := m.slot[next]; !known {
			if a == genesis {
				return related
			}
			if m.slot[b] > m.slot[a] {
				return relationUnknown
			}

			return unrelated
		}
		b = next
	}
}

// TestAncestorsAgreeWithAModel builds random trees with blocks that come late or
// never, and compares all pairs with a walk over parents.
func TestAncestorsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t)
		type made struct {
			b    *wire.SignedBlock
			root wire.Root
		}
		all := []made{{root: w.genesis}}
		slots := map[wire.Root]wire.Slot{w.genesis: 0}
		for slot := wire.Slot(1); slot <= 60; slot++ {
			for i := range byte(rnd.IntN(3)) {
				parent := all[max(0, len(all)-1-rnd.IntN(4))]
				if slots[parent.root] >= slot {
					continue
				}
				b, root := w.block(slot, parent.root, i)
				all = append(all, made{b, root})
				slots[root] = slot
			}
		}
		late := map[wire.Root]bool{}
		deliver := func(m made) { w.tree.InsertBlock(m.b, m.root, 0) }
		for _, m := range all[1:] {
			w.time.set(maxTime(w.time.now(), w.clock.SlotStart(m.b.Block.Slot)))
			if late[m.root] = rnd.IntN(8) == 0; !late[m.root] {
				deliver(m)
			}
			compare(t, w, rnd)
		}
		for _, m := range all[1:] {
			if late[m.root] && rnd.IntN(2) == 0 {
				deliver(m)
			}
		}
		compare(t, w, rnd)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}

// compare checks the tree's answers on pairs of its blocks, and its invariants.
func compare(t *testing.T, w *world, rnd *rand.Rand) {
	t.Helper()
	m := model{parent: map[wire.Root]wire.Root{}, slot: map[wire.Root]wire.Slot{}}
	var roots []wire.Root
	for root, n := range w.tree.blocks {
		m.parent[root], m.slot[root] = n.parentRoot, n.slot
		roots = append(roots, root)
		require.False(t, n.beats(w.tree.head))
		if n != w.tree.genesis && n.gap != n {
			require.Same(t, w.tree.blocks[n.parentRoot], n.parent, "a block whose parent is known hangs under it")
		}
	}
	for range 40 {
		a, b := roots[rnd.IntN(len(roots))], roots[rnd.IntN(len(roots))]
		want := m.relation(w.genesis, a, b)
		require.Equal(t, want, w.tree.blocks[a].relation(w.tree.blocks[b]), "slots %d and %d", m.slot[a], m.slot[b])
		require.Equal(t, want == related, w.tree.IsAncestor(a, b))
	}
	require.False(t, w.tree.IsAncestor(fakeRoot(1), w.genesis))
	require.False(t, w.tree.IsAncestor(w.genesis, fakeRoot(1)))
}
