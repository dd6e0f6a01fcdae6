package pubkeycache

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/xmss"
)

// testKey is a distinct made-up key; any 32 bytes are a public key of either scheme.
func testKey(role string, i int) []byte {
	k := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(role), uint64(i)))
	return k[:]
}

func testValidators(n int) []wire.Validator {
	vs := make([]wire.Validator, n)
	for i := range vs {
		vs[i] = wire.Validator{
			AttestationKey: testKey("attestation", i),
			ProposalKey:    testKey("proposal", i),
			Index:          wire.ValidatorIndex(i),
		}
	}
	return vs
}

func testRegistry(tb testing.TB, n int) *Registry {
	tb.Helper()
	r, err := NewRegistry(xmss.Blake2s, testValidators(n))
	require.NoError(tb, err)
	return r
}

func testCache(tb testing.TB, cfg Config, n int) *Cache {
	tb.Helper()
	c, err := New(cfg, testRegistry(tb, n), nil)
	require.NoError(tb, err)
	return c
}

func participants(tb testing.TB, indices ...wire.ValidatorIndex) wire.Participants {
	tb.Helper()
	p, err := wire.NewParticipants(indices)
	require.NoError(tb, err)
	return p
}

func randomParticipants(tb testing.TB, rng *rand.Rand, n int) wire.Participants {
	tb.Helper()
	indices := []wire.ValidatorIndex{wire.ValidatorIndex(rng.IntN(n))}
	for i := range n {
		if rng.IntN(2) == 0 {
			indices = append(indices, wire.ValidatorIndex(i))
		}
	}
	return participants(tb, indices...)
}
