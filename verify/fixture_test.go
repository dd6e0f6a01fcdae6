package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/wire"
	"aggnode/xmss"
)

var update = flag.Bool("update", false, "make testdata/keccak.json anew (a minute of CPU time)")

// fixture is a network of some validators with valid votes and a valid block. It is immutable.
type fixture struct {
	profile    *wire.Profile
	validators []wire.Validator
	votes      []*wire.SignedAttestation
	block      *wire.SignedBlock
}

// fixtures are one network per scheme.
func fixtures(t testing.TB) map[string]*fixture {
	t.Helper()
	return map[string]*fixture{"blake2s": blake2sFixture(), "keccak": keccakFixture(t)}
}

func testRoot(s string) wire.Root { return sha256.Sum256([]byte(s)) }

func testData(slot wire.Slot, what string) wire.AttestationData {
	return wire.AttestationData{
		Slot:   slot,
		Head:   wire.Checkpoint{Root: testRoot("head " + what), Slot: slot},
		Target: wire.Checkpoint{Root: testRoot("target " + what), Slot: slot},
		Source: wire.Checkpoint{Root: testRoot("source"), Slot: 0},
	}
}

func testBlock(slot wire.Slot) wire.Block {
	return wire.Block{Slot: slot, ProposerIndex: 0, ParentRoot: testRoot("parent")}
}

// blake2sFixture: four validators, three votes each in two neighbouring trees of 512 epochs.
var blake2sFixture = sync.OnceValue(func() *fixture {
	return makeFixture(xmss.Blake2s, "local", 4, 505, 519, []wire.Slot{510, 511, 512})
})

func makeFixture(scheme xmss.Scheme, profile string, n int, start, end uint32, slots []wire.Slot) *fixture {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	p, err := wire.LookupProfile(profile, scheme.String())
	must(err)
	f := &fixture{profile: p}
	ctx := context.Background()
	generate := func(name string) *xmss.SecretKey {
		k, err := xmss.Generate(ctx, scheme, sha256.Sum256([]byte("verify test "+name)), start, end, xmss.GenerateOptions{})
		must(err)
		return k
	}
	for i := range n {
		attester := generate("attestation " + string(rune('0'+i)))
		key := attester.PublicKey()
		proposal := testRoot("proposal " + string(rune('0'+i))) // nobody has its secret
		v := wire.Validator{Index: wire.ValidatorIndex(i), AttestationKey: key[:], ProposalKey: proposal[:]}
		for _, slot := range slots {
			data := testData(slot, "block")
			sig, err := attester.Sign(ctx, uint32(slot), data.HashTreeRoot())
			must(err)
			f.votes = append(f.votes, &wire.SignedAttestation{ValidatorIndex: v.Index, Data: data, Signature: sig})
		}
		if i == 0 {
			proposer := generate("proposal")
			key := proposer.PublicKey()
			v.ProposalKey = key[:]
			block := testBlock(slots[0])
			sig, err := proposer.Sign(ctx, uint32(block.Slot), block.HashTreeRoot(p))
			must(err)
			f.block = &wire.SignedBlock{Block: block, ProposerSignature: sig}
		}
		f.validators = append(f.validators, v)
	}
	return f
}

// keccakFile is testdata/keccak.json. Keccak keys take 11 s each to make, so their signatures are kept.
type keccakFile struct {
	Origin     string
	Validators []struct{ Attestation, Proposal string }
	Votes      []struct {
		Validator wire.ValidatorIndex
		Slot      wire.Slot
		Signature string
	}
	Block struct {
		Slot      wire.Slot
		Signature string
	}
}

const keccakPath = "testdata/keccak.json"

// keccakFixture: two validators, three votes each in two neighbouring trees of 2^16 epochs.
func keccakFixture(t testing.TB) *fixture {
	t.Helper()
	keccakOnce.Do(func() {
		if *update {
			writeKeccakFixture(t)
		}
		keccakNetwork = readKeccakFixture(t)
	})
	require.NotNil(t, keccakNetwork)
	return keccakNetwork
}

var (
	keccakOnce    sync.Once
	keccakNetwork *fixture
)

func writeKeccakFixture(t testing.TB) {
	t.Helper()
	f := makeFixture(xmss.Keccak, "lean-pq", 2, 1<<16-4, 1<<16+4, []wire.Slot{1<<16 - 2, 1<<16 - 1, 1 << 16})
	file := keccakFile{Origin: "made by package xmss of this module: go test ./verify -update"}
	for _, v := range f.validators {
		file.Validators = append(file.Validators, struct{ Attestation, Proposal string }{
			hex.EncodeToString(v.AttestationKey), hex.EncodeToString(v.ProposalKey),
		})
	}
	for _, a := range f.votes {
		file.Votes = append(file.Votes, struct {
			Validator wire.ValidatorIndex
			Slot      wire.Slot
			Signature string
		}{a.ValidatorIndex, a.Data.Slot, hex.EncodeToString(a.Signature)})
	}
	file.Block.Slot, file.Block.Signature = f.block.Block.Slot, hex.EncodeToString(f.block.ProposerSignature)
	b, err := json.MarshalIndent(file, "", "\t")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keccakPath, append(b, '\n'), 0o644))
}

func readKeccakFixture(t testing.TB) *fixture {
	t.Helper()
	b, err := os.ReadFile(keccakPath)
	require.NoError(t, err)
	var file keccakFile
	require.NoError(t, json.Unmarshal(b, &file))
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		require.NoError(t, err)
		return b
	}
	p, err := wire.LookupProfile("lean-pq", "")
	require.NoError(t, err)
	f := &fixture{profile: p}
	for i, v := range file.Validators {
		f.validators = append(f.validators, wire.Validator{
			Index: wire.ValidatorIndex(i), AttestationKey: unhex(v.Attestation), ProposalKey: unhex(v.Proposal),
		})
	}
	for _, v := range file.Votes {
		f.votes = append(f.votes, &wire.SignedAttestation{
			ValidatorIndex: v.Validator, Data: testData(v.Slot, "block"), Signature: unhex(v.Signature),
		})
	}
	f.block = &wire.SignedBlock{Block: testBlock(file.Block.Slot), ProposerSignature: unhex(file.Block.Signature)}
	return f
}

// rig is a verifier over a fixture with all its parts at hand.
type rig struct {
	*Verifier
	registry *pubkeycache.Registry
	cache    *pubkeycache.Cache
	metrics  *prometheus.Registry
}

func (f *fixture) rig(t testing.TB, checker proofChecker, change ...func(*Config)) *rig {
	t.Helper()
	scheme, err := xmss.SchemeByName(f.profile.Scheme)
	require.NoError(t, err)
	reg, err := pubkeycache.NewRegistry(scheme, f.validators)
	require.NoError(t, err)
	cache, err := pubkeycache.New(pubkeycache.Config{}, reg, nil)
	require.NoError(t, err)
	r := &rig{registry: reg, cache: cache, metrics: prometheus.NewRegistry()}
	cfg := Config{Profile: f.profile, Registerer: r.metrics}
	for _, c := range change {
		c(&cfg)
	}
	r.Verifier, err = New(cfg, reg, cache, checker)
	require.NoError(t, err)
	return r
}

// attestation checks one vote.
func (r *rig) attestation(t testing.TB, a *wire.SignedAttestation) wire.Reason {
	t.Helper()
	var out [1]wire.Reason
	r.Attestations(t.Context(), []*wire.SignedAttestation{a}, out[:])
	return out[0]
}

// fakeChecker answers with answer, or nil, and counts calls.
type fakeChecker struct {
	mu     sync.Mutex
	calls  int
	claim  prover.Claim
	answer func(context.Context, prover.Claim, []byte) error
}

func (c *fakeChecker) Verify(ctx context.Context, claim prover.Claim, proof []byte) error {
	c.mu.Lock()
	c.calls++
	c.claim = claim
	c.mu.Unlock()
	if c.answer == nil {
		return nil
	}
	return c.answer(ctx, claim, proof)
}

func copyVote(a *wire.SignedAttestation) *wire.SignedAttestation {
	c := *a
	c.Signature = append([]byte(nil), a.Signature...)
	return &c
}
