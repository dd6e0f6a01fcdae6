package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/prover/bundle"
	"aggnode/wire"
	"aggnode/xmss"
)

// prove makes a real aggregate of all votes of a fixture for one slot with the embedded backend.
func (f *fixture) prove(t testing.TB, b *bundle.Backend, slot wire.Slot) *wire.SignedAggregate {
	t.Helper()
	var job prover.Job
	a := &wire.SignedAggregate{}
	var indices []wire.ValidatorIndex
	for _, v := range f.votes {
		if v.Data.Slot != slot {
			continue
		}
		a.Data = v.Data
		job.Raw = append(job.Raw, prover.Raw{PublicKey: f.validators[v.ValidatorIndex].AttestationKey, Signature: v.Signature})
		indices = append(indices, v.ValidatorIndex)
	}
	require.NotEmpty(t, job.Raw)
	job.Message, job.Epoch = a.Data.HashTreeRoot(), uint32(slot)
	result, err := b.Prove(t.Context(), job)
	require.NoError(t, err)
	a.Proof = result.Proof
	a.Participants, err = wire.NewParticipants(indices)
	require.NoError(t, err)
	return a
}

func TestARealProofIsValidOnlyForItsOwnClaim(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme, err := xmss.SchemeByName(name)
			require.NoError(t, err)
			b := bundle.New(scheme)
			slot := f.votes[0].Data.Slot
			good := f.prove(t, b, slot)
			other := f.prove(t, b, f.votes[1].Data.Slot)
			r := f.rig(t, b)
			subset, err := wire.NewParticipants(good.Participants.Indices()[1:])
			require.NoError(t, err)

			changes := map[string]func(*wire.SignedAggregate){
				"another data root":     func(a *wire.SignedAggregate) { a.Data.Head.Root[0] ^= 1 },
				"another slot":          func(a *wire.SignedAggregate) { a.Data.Slot++ },
				"fewer participants":    func(a *wire.SignedAggregate) { a.Participants = subset },
				"a trailing byte":       func(a *wire.SignedAggregate) { a.Proof = append(slices.Clone(a.Proof), 0) },
				"a byte less":           func(a *wire.SignedAggregate) { a.Proof = a.Proof[:len(a.Proof)-1] },
				"all zero":              func(a *wire.SignedAggregate) { a.Proof = make([]byte, len(a.Proof)) },
				"of another aggregate":  func(a *wire.SignedAggregate) { a.Proof = other.Proof },
				"another's data":        func(a *wire.SignedAggregate) { a.Data = other.Data },
				"half of each of two":   func(a *wire.SignedAggregate) { a.Proof = slices.Concat(a.Proof[:700], other.Proof[700:]) },
				"the largest of zeroes": func(a *wire.SignedAggregate) { a.Proof = make([]byte, wire.MaxProofSize) },
			}
			for range 2 { // with a cold and with a warm signer set
				for what, change := range changes {
					a := *good
					change(&a)
					reason := r.Aggregate(t.Context(), &a)
					require.Contains(t, []wire.Reason{wire.ReasonBadProof, wire.ReasonClaimMismatch}, reason, what)
				}
				require.Equal(t, wire.ReasonNone, r.Aggregate(t.Context(), good))
				require.Equal(t, 1, r.cache.Stats().SignerSets)
			}
			for size := range minProofSize {
				a := *good
				a.Proof = good.Proof[:size]
				require.Equal(t, wire.ReasonBadProof, r.Aggregate(t.Context(), &a), "%d bytes", size)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			for range 40 {
				a := *good
				a.Proof = slices.Clone(good.Proof)
				bit := rng.IntN(8 * len(a.Proof))
				a.Proof[bit/8] ^= 1 << (bit % 8)
				require.NotEqual(t, wire.ReasonNone, r.Aggregate(t.Context(), &a), "bit %d", bit)
			}
		})
	}
}
