package signer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/store"
	"aggnode/wire"
	"aggnode/xmss"
)

func TestVotesOfAllKeysInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 9, func(r *rig, _ *Config, v []validator) {
			slices.Reverse(v)
			for i := range r.keys {
				r.keys[i].signs = time.Duration(9-i) * time.Millisecond // the first ends last
			}
		})
		data := testData(5)
		root := data.HashTreeRoot()
		results := r.SignVotes(t.Context(), 5, data)
		require.Len(t, results, 9)
		for i, res := range results {
			require.NoError(t, res.Err)
			require.Equal(t, wire.ValidatorIndex(i), res.Index)
			require.Equal(t, &wire.SignedAttestation{ValidatorIndex: res.Index, Data: data, Signature: signature(r.keys[i], 5, root)}, res.Attestation)
		}
		require.Len(t, r.marks.batches, 1, "one transaction")
		require.Len(t, r.marks.batches[0], 9)
		require.Len(t, r.net.published, 9)
		require.Len(t, r.net.delivered, 9)
		require.InDelta(t, 9, testutil.ToFloat64(r.metrics.signatures), 0)
		require.InDelta(t, 9, testutil.ToFloat64(r.metrics.validators), 0)
	})
}

func TestEachVoteGoesOutWhenItIsSigned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, func(r *rig, cfg *Config, _ []validator) {
			cfg.Parallel = 3
			r.keys[0].signs, r.keys[1].signs, r.keys[2].signs = time.Second, time.Millisecond, 10*time.Millisecond
		})
		start := time.Now()
		results := r.SignVotes(t.Context(), 5, testData(5))
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, []wire.ValidatorIndex{0, 1, 2}, []wire.ValidatorIndex{results[0].Index, results[1].Index, results[2].Index})
		order := make([]wire.ValidatorIndex, 0, 3)
		for _, s := range r.net.published {
			order = append(order, s.vote.ValidatorIndex)
		}
		require.Equal(t, []wire.ValidatorIndex{1, 2, 0}, order)
		require.Equal(t, start.Add(time.Millisecond), r.net.published[0].at)
		require.Equal(t, start.Add(time.Millisecond), r.net.delivered[0].at)
	})
}

func TestPositionIsReservedBeforeAnySignatureExists(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, func(r *rig, _ *Config, _ []validator) {
		r.net.check = func(a *wire.SignedAttestation) {
			r.marks.mu.Lock()
			defer r.marks.mu.Unlock()
			mark := r.marks.last[r.keys[a.ValidatorIndex].public]
			require.EqualValues(t, a.Data.Slot, mark.Slot)
			require.EqualValues(t, a.Data.HashTreeRoot(), mark.Root)
		}
	})
	r.SignVotes(t.Context(), 5, testData(5))
	require.Len(t, r.net.published, 4)

	r.marks.err = errFault
	for _, res := range r.SignVotes(t.Context(), 6, testData(6)) {
		require.ErrorIs(t, res.Err, errFault)
		require.Nil(t, res.Attestation)
	}
	require.Len(t, r.net.published, 4, "nothing leaves without a mark")
	for _, k := range r.keys {
		require.Equal(t, []uint32{5}, k.signed)
	}
}

// TestSearchesGoOnBesideTheDisk: four searches of two goroutines take twice 50 ms, whatever a disk does that is sooner, and
// nothing leaves before the disk has all positions.
func TestSearchesGoOnBesideTheDisk(t *testing.T) {
	t.Parallel()
	for disk, want := range map[time.Duration][]time.Duration{
		0:                      {50, 50, 100, 100},
		30 * time.Millisecond:  {50, 50, 100, 100},
		70 * time.Millisecond:  {70, 70, 100, 100},
		200 * time.Millisecond: {200, 200, 200, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 4, func(r *rig, _ *Config, _ []validator) {
				r.marks.takes = disk
				for _, k := range r.keys {
					k.signs = 50 * time.Millisecond
				}
			})
			start := time.Now()
			for i, res := range r.SignVotes(t.Context(), 5, testData(5)) {
				require.NoError(t, res.Err)
				require.EqualValues(t, i, res.Index)
			}
			require.Len(t, r.net.published, 4)
			for i, s := range r.net.published {
				require.Equal(t, want[i]*time.Millisecond, s.at.Sub(start), "disk of %v, vote %d", disk, i)
			}
		})
	}
}

// TestARefusedPositionIsNeverSigned: a search that ended before the refusal makes no signature, one that had not begun is left
// out.
func TestARefusedPositionIsNeverSigned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, func(r *rig, cfg *Config, _ []validator) {
			cfg.Parallel = 1
			r.marks.takes, r.marks.err = 60*time.Millisecond, errFault
			for _, k := range r.keys {
				k.signs = 50 * time.Millisecond
			}
		})
		for _, res := range r.SignVotes(t.Context(), 5, testData(5)) {
			require.ErrorIs(t, res.Err, errFault)
		}
		searches := 0
		for _, k := range r.keys {
			require.Empty(t, k.signed)
			searches += len(k.searched)
		}
		require.Equal(t, 2, searches)
		require.Empty(t, r.net.published)
	})
}

func TestEachKeyHasAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, 8, func(r *rig, cfg *Config, v []validator) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			cfg.Parallel = 8
			v[1].attestation, v[1].proposal = nil, newKey(100)
			r.keys[2].panics = true
			r.keys[3].err = errFault
			r.keys[4].end = 4
			r.keys[5].stuck = true
			r.marks.last = map[[32]byte]store.Mark{
				r.keys[6].public: {Key: r.keys[6].public, Slot: 5, Root: [32]byte{1}},
				r.keys[7].public: {Key: r.keys[7].public, Slot: 6, Root: [32]byte{1}},
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := r.SignVotes(ctx, 5, testData(5), 5, 99, 7, 0, 6, 4, 3, 2, 1, math.MaxUint64)
		want := []struct {
			index wire.ValidatorIndex
			r     Refusal
		}{
			{5, RefusedCancelled},
			{99, RefusedUnknownValidator},
			{7, RefusedBelowMark},
			{0, RefusedUnknown},
			{6, RefusedAlreadySigned},
			{4, RefusedKeyRange},
			{3, RefusedInternal},
			{2, RefusedInternal},
			{1, RefusedUnknownValidator},
			{math.MaxUint64, RefusedUnknownValidator},
		}
		require.Len(t, results, len(want))
		for i, w := range want {
			require.Equal(t, w.index, results[i].Index)
			if w.r == RefusedUnknown {
				require.NoError(t, results[i].Err)
				require.NotNil(t, results[i].Attestation)

				continue
			}
			var refused *Refused
			require.ErrorAs(t, results[i].Err, &refused, "%d", w.index)
			require.Equal(t, w.r, refused.Refusal, "%d: %v", w.index, refused)
			require.Equal(t, w.index, refused.Index)
			require.Contains(t, refused.Error(), w.r.String())
			require.Nil(t, results[i].Attestation)
		}
		require.Len(t, r.net.published, 1)
		require.InDelta(t, 2, testutil.ToFloat64(r.metrics.refused.WithLabelValues("attestation", "internal_error")), 0)
		require.InDelta(t, 3, testutil.ToFloat64(r.metrics.refused.WithLabelValues("attestation", "unknown_validator")), 0)
		require.Equal(t, 1, strings.Count(log.String(), "panic in a signing duty"))
		require.Contains(t, log.String(), "key of glass")
	})
}

func TestSlotsThatNoKeyHas(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, nil)
	for _, slot := range []wire.Slot{1 << 32, 1<<32 + 5, math.MaxUint64} {
		for _, res := range r.SignVotes(t.Context(), slot, testData(slot)) {
			var refused *Refused
			require.ErrorAs(t, res.Err, &refused)
			require.Equal(t, RefusedSlotRange, refused.Refusal)
		}
	}
	require.Empty(t, r.marks.batches)
	for _, res := range r.SignVotes(t.Context(), 1<<32-1, testData(1<<32-1)) {
		require.NoError(t, res.Err, "the last position")
	}
	for _, res := range r.SignVotes(t.Context(), 7, testData(8)) {
		var refused *Refused
		require.ErrorAs(t, res.Err, &refused)
		require.Equal(t, RefusedData, refused.Refusal)
	}
}

func TestSameVoteAgainAndAnotherVote(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, nil)
	first := r.SignVotes(t.Context(), 5, testData(5))
	again := r.SignVotes(t.Context(), 5, testData(5))
	require.Equal(t, first, again)
	other := testData(5)
	other.Source.Slot = 1
	for _, res := range r.SignVotes(t.Context(), 5, other) {
		require.ErrorIs(t, res.Err, store.ErrAlreadySigned)
	}
	for _, res := range r.SignVotes(t.Context(), 4, testData(4)) {
		require.ErrorIs(t, res.Err, store.ErrBelowMark)
	}
}

func TestTroubleAfterSigningCostsNoOtherVote(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeNet){
		"network fails":    func(n *fakeNet) { n.err = errFault },
		"network panics":   func(n *fakeNet) { n.panics = true },
		"pipeline refuses": func(n *fakeNet) { n.reason = wire.ReasonBadSignature },
	} {
		r := newRig(t, 8, func(r *rig, _ *Config, _ []validator) { change(r.net) })
		for _, res := range r.SignVotes(t.Context(), 5, testData(5)) {
			require.NoError(t, res.Err, name)
			require.NotNil(t, res.Attestation, name)
		}
		failed := testutil.ToFloat64(r.metrics.emitFailed.WithLabelValues(stagePublish)) + testutil.ToFloat64(r.metrics.emitFailed.WithLabelValues(stageDeliver))
		require.InDelta(t, 8, failed, 0, name)
	}
	r := newRig(t, 8, func(r *rig, _ *Config, _ []validator) { r.net.reason = wire.ReasonDuplicate })
	r.SignVotes(t.Context(), 5, testData(5))
	require.Zero(t, testutil.ToFloat64(r.metrics.emitFailed.WithLabelValues(stageDeliver)), "a vote that came back from a peer is fine")
}

// One stuck peer of ours keeps no vote from the other place, whichever it is.
func TestNetworkAndPipelineDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := newRig(t, 12, func(r *rig, _ *Config, _ []validator) {
			r.net.check = func(*wire.SignedAttestation) { _ = pass(t.Context(), time.Second) }
		})
		r.SignVotes(t.Context(), 5, testData(5))
		require.Len(t, r.net.delivered, 12)
		for _, s := range r.net.delivered {
			require.Equal(t, start, s.at)
		}
		require.Len(t, r.net.published, 12)
		require.Equal(t, 12/publishers*time.Second, time.Since(start))
	})
}

// Whatever is asked for, each item has its own result in its own place, and is signed, published and delivered once.
func TestEachItemOfABatchStandsInItsPlace(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 41 {
		for _, limit := range []int{0, 1, 2, 3, 5, 8, 40, 64} {
			r := newRig(t, n, func(r *rig, cfg *Config, _ []validator) {
				cfg.Parallel = limit
				if n > 2 {
					r.keys[1].panics, r.keys[2].err = true, errFault
				}
			})
			unknown := rng.IntN(4)
			asked := make([]wire.ValidatorIndex, n+unknown)
			for i, v := range rng.Perm(len(asked)) {
				asked[i] = wire.ValidatorIndex(v) // n and more are unknown
			}
			signed, refused := 0, 0
			results := r.SignVotes(t.Context(), 7, testData(7), asked...)
			require.Len(t, results, len(asked))
			for i, res := range results {
				require.Equal(t, asked[i], res.Index)
				if v := asked[i]; v >= wire.ValidatorIndex(n) || (n > 2 && (v == 1 || v == 2)) {
					require.Error(t, res.Err)
					require.Nil(t, res.Attestation)
					refused++

					continue
				}
				require.NoError(t, res.Err)
				require.Equal(t, asked[i], res.Attestation.ValidatorIndex)
				require.Equal(t, []uint32{7}, r.keys[asked[i]].signed)
				signed++
			}
			require.Len(t, r.net.published, signed)
			require.Len(t, r.net.delivered, signed)
			require.InDelta(t, signed, testutil.ToFloat64(r.metrics.signatures), 0)
			counted := 0.0
			for _, code := range Refusals() {
				counted += testutil.ToFloat64(r.metrics.refused.WithLabelValues("attestation", code.String()))
			}
			require.InDelta(t, refused, counted, 0)
		}
	}
}

func TestAtMostParallelSignaturesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20, func(r *rig, cfg *Config, _ []validator) {
			cfg.Parallel = 3
			for _, k := range r.keys {
				k.signs = time.Millisecond
			}
		})
		start := time.Now()
		r.SignVotes(t.Context(), 5, testData(5))
		require.Equal(t, 7*time.Millisecond, time.Since(start))
	})
}

func TestSignBlock(t *testing.T) {
	t.Parallel()
	proposal := newKey(100)
	r := newRig(t, 2, func(_ *rig, _ *Config, v []validator) { v[1].proposal = proposal })
	require.False(t, r.HasProposalKey(0))
	require.True(t, r.HasProposalKey(1))
	require.False(t, r.HasProposalKey(2))
	root := wire.Root{7}
	sig, err := r.SignBlock(t.Context(), 1, 5, root)
	require.NoError(t, err)
	require.Equal(t, signature(proposal, 5, root), sig)
	require.Equal(t, store.Mark{Key: proposal.public, Slot: 5, Root: root}, r.marks.last[proposal.public])
	again, err := r.SignBlock(t.Context(), 1, 5, root)
	require.NoError(t, err)
	require.Equal(t, sig, again)
	for _, res := range r.SignVotes(t.Context(), 5, testData(5)) {
		require.NoError(t, res.Err, "the vote of the slot has its own key and mark")
	}
	for name, c := range map[string]struct {
		v    wire.ValidatorIndex
		slot wire.Slot
		root wire.Root
		want Refusal
	}{
		"another root":   {1, 5, wire.Root{8}, RefusedAlreadySigned},
		"a lower slot":   {1, 4, root, RefusedBelowMark},
		"no key":         {0, 6, root, RefusedUnknownValidator},
		"no validator":   {63, 6, root, RefusedUnknownValidator},
		"slot too large": {1, 1 << 32, root, RefusedSlotRange},
	} {
		_, err := r.SignBlock(t.Context(), c.v, c.slot, c.root)
		var refused *Refused
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, c.want, refused.Refusal, name)
	}
	proposal.panics = true
	_, err = r.SignBlock(t.Context(), 1, 6, root)
	var refused *Refused
	require.ErrorAs(t, err, &refused)
	require.Equal(t, RefusedInternal, refused.Refusal)
}

func TestNewRefusesKeysThatAreThereTwice(t *testing.T) {
	t.Parallel()
	a, b := newKey(1), newKey(2)
	for name, c := range map[string]struct {
		validators []validator
		want       []string
	}{
		"an index twice":         {[]validator{{index: 5}, {index: 5}}, []string{"5"}},
		"a key of two":           {[]validator{{index: 5, attestation: a}, {index: 7, attestation: a}}, []string{"5", "7"}},
		"a key for both roles":   {[]validator{{index: 5, attestation: a, proposal: a}}, []string{"attestation key of validator 5", "proposal key of validator 5"}},
		"outside the registry":   {[]validator{{index: 64, attestation: b}}, []string{"64"}},
		"far outside of it, too": {[]validator{{index: math.MaxUint64, attestation: b}}, []string{"18446744073709551615"}},
	} {
		_, err := newSigner(Config{Validators: 64}, c.validators, nil, nil, nil, nil, nil)
		require.Error(t, err, name)
		for _, w := range c.want {
			require.ErrorContains(t, err, w, name)
		}
	}
	_, err := newSigner(Config{}, nil, nil, nil, nil, nil, nil)
	require.Error(t, err)
	reg := prometheus.NewRegistry()
	_, err = New(Config{Validators: 1, Registerer: reg}, nil, nil, nil, nil, nil, nil)
	require.NoError(t, err)
	_, err = New(Config{Validators: 1, Registerer: reg}, nil, nil, nil, nil, nil, nil)
	require.Error(t, err, "one signer a registry")
}

func TestRefusalsAreDocumented(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for _, r := range Refusals() {
		require.False(t, codes[r.String()], r.String())
		codes[r.String()] = true
		require.NotEmpty(t, r.Short())
		require.NotEmpty(t, r.Long())
	}
	require.Equal(t, "unknown", Refusal(200).String())
	require.Equal(t, []string{"unknown", "attestation", "proposal", "invalid"},
		[]string{roleUnknown.String(), roleAttestation.String(), roleProposal.String(), role(9).String()})
}

// Real keys and a real journal: the signatures verify, a restart refuses another
// vote of the same slot, and the ends of the range are judged on their merit.
func TestRealKeysAndJournal(t *testing.T) {
	t.Parallel()
	const first, last = 600, 1100 // over a subtree boundary
	key := func(seed byte) *xmss.SecretKey {
		k, err := xmss.Generate(t.Context(), xmss.Blake2s, [32]byte{seed}, first, last, xmss.GenerateOptions{})
		require.NoError(t, err)

		return k
	}
	keys := []Keys{{Index: 3, Attestation: key(1), Proposal: key(2)}, {Index: 8, Attestation: key(3)}}
	dir := t.TempDir()
	run := func(f func(s *Signer, net *fakeNet)) {
		st, err := store.Open(dir)
		require.NoError(t, err)
		defer st.Close() //nolint:errcheck // reopened by the next run
		net := &fakeNet{}
		s, err := New(Config{Validators: 9}, keys, st.Marks(), fakeClock{genesis: time.Now()}, &fakeChain{}, net, net)
		require.NoError(t, err)
		f(s, net)
	}
	run(func(s *Signer, net *fakeNet) {
		for _, slot := range []wire.Slot{first, 700, 1023, 1024} {
			data := testData(slot)
			for i, res := range s.SignVotes(t.Context(), slot, data) {
				require.NoError(t, res.Err)
				require.NoError(t, xmss.Blake2s.Verify(keys[i].Attestation.PublicKey(), uint32(slot), data.HashTreeRoot(), res.Attestation.Signature))
			}
		}
		require.Len(t, net.published, 8)
		sig, err := s.SignBlock(t.Context(), 3, 1024, wire.Root{1})
		require.NoError(t, err)
		require.NoError(t, xmss.Blake2s.Verify(keys[0].Proposal.PublicKey(), 1024, wire.Root{1}, sig))
	})
	run(func(s *Signer, net *fakeNet) {
		other := testData(1024)
		other.Source.Slot = 5
		for _, res := range s.SignVotes(t.Context(), 1024, other) {
			require.ErrorIs(t, res.Err, store.ErrAlreadySigned)
		}
		_, err := s.SignBlock(t.Context(), 3, 1024, wire.Root{2})
		require.ErrorIs(t, err, store.ErrAlreadySigned)
		require.NoError(t, errors.Join(errs(s.SignVotes(t.Context(), last, testData(last)))...))
		for _, res := range s.SignVotes(t.Context(), last+1, testData(last+1)) {
			var refused *Refused
			require.ErrorAs(t, res.Err, &refused)
			require.Equal(t, RefusedKeyRange, refused.Refusal)
		}
		require.Len(t, net.published, 2)
	})
}

func errs(results []Result) (errs []error) {
	for _, r := range results {
		errs = append(errs, r.Err)
	}

	return errs
}

func TestConcurrentDutiesOfOneKeyNeverSignTwoRoots(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, nil)
	var signed atomic.Int64
	done := make(chan struct{}, 8) // one for each rival
	for rival := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			data := testData(9)
			data.Source.Slot = wire.Slot(rival)
			for _, res := range r.SignVotes(t.Context(), 9, data) {
				if res.Err == nil {
					signed.Add(1)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	require.EqualValues(t, 4, signed.Load())
}
