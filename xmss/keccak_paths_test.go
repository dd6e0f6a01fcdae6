package xmss_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

func TestKeccakVectorsOnEveryPath(t *testing.T) {
	reasons := map[string]error{"": nil, "codeword": xmss.ErrCodeword, "root": xmss.ErrRoot, "length": xmss.ErrLength}
	cases := kcCases(t)
	checks := make([]xmss.Check, len(cases))
	for i, c := range cases {
		checks[i] = xmss.Check{
			PublicKey: c.PublicKey.publicKey(), Epoch: leafIndex(c.Signature.B), Message: c.Message.message(), Signature: c.Signature.B,
		}
	}
	onEachPath(t, func(t *testing.T) {
		answers := make([]xmss.Answer, len(checks))
		xmss.Keccak.VerifyBatch(checks, answers)
		for i, c := range cases {
			require.Equal(t, reasons[c.Reason], answers[i].Err, "%d %s", c.ID, c.Name)
			check := &checks[i]
			require.Equal(t, reasons[c.Reason], xmss.Keccak.Verify(check.PublicKey, check.Epoch, check.Message, check.Signature), c.Name)
		}
	})
}

// TestKeccakBatchesOfEverySizeOnEveryPath checks batches of random draws, valid, invalid and with known upper parts,
// against the verdicts of the reference.
func TestKeccakBatchesOfEverySizeOnEveryPath(t *testing.T) {
	checks := sample(t, xmss.Keccak, rand.New(rand.NewPCG(19, 20)))
	want := make([]error, len(checks))
	for i := range checks {
		want[i] = refVerify(xmss.Keccak, &checks[i], false)
	}
	answers := make([]xmss.Answer, len(checks))
	xmss.Keccak.VerifyBatch(checks, answers)
	onEachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(21, 22))
		for size := range batchCount(t, 68) {
			if size > 33 {
				size = rng.IntN(34)
			}
			batch, drawn := make([]xmss.Check, size), make([]int, size)
			for k := range batch {
				drawn[k] = rng.IntN(len(checks))
				batch[k] = checks[drawn[k]]
				if rng.IntN(3) == 0 { // its own, another's or none
					batch[k].Known = answers[(drawn[k]+rng.IntN(2))%len(answers)].Upper
				}
			}
			got := make([]xmss.Answer, size)
			xmss.Keccak.VerifyBatch(batch, got)
			for k, i := range drawn {
				require.Equal(t, want[i], got[k].Err, "check %d of %d", k, size)
				isOwn := batch[k].Known != nil && batch[k].Known == answers[i].Upper
				require.Equal(t, want[i] == nil && !isOwn, got[k].Upper != nil, "check %d of %d", k, size)
			}
		}
	})
}
