package xmss_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

// crafted is a signature made with full knowledge of a one-time key: every chain value and the path are right, so that only the
// rule on the digest can refuse it.
type crafted struct {
	Case      string   `json:"case"`
	PublicKey hexBytes `json:"public_key"`
	Epoch     uint32   `json:"epoch"`
	Message   hexBytes `json:"message"`
	Signature hexBytes `json:"signature"`
	Valid     bool     `json:"valid"`
}

func (c *crafted) check() xmss.Check {
	return xmss.Check{PublicKey: c.PublicKey.publicKey(), Epoch: c.Epoch, Message: c.Message.message(), Signature: c.Signature.B}
}

func TestCraftedSignaturesAreRefusedForTheirDigestAlone(t *testing.T) {
	t.Parallel()
	if *update {
		writeVectors(t, "blake2s/crafted.json", craftBlake2s())
		writeVectors(t, "keccak/crafted.json", craftKeccak())
	}
	for _, s := range []xmss.Scheme{xmss.Blake2s, xmss.Keccak} {
		var cases []crafted
		readVectors(t, s.String()+"/crafted.json", &cases)
		require.NotEmpty(t, cases)
		for _, c := range cases {
			check := c.check()
			require.NoError(t, refVerify(s, &check, true), "%s %s: all but the digest must be right", s, c.Case)
			got := s.Verify(check.PublicKey, check.Epoch, check.Message, check.Signature)
			if c.Valid {
				require.NoError(t, got, "%s %s", s, c.Case)
				require.NoError(t, refVerify(s, &check, false), "%s %s", s, c.Case)
			} else {
				require.ErrorIs(t, got, xmss.ErrCodeword, "%s %s", s, c.Case)
				require.ErrorIs(t, refVerify(s, &check, false), xmss.ErrCodeword, "%s %s", s, c.Case)
			}
		}
	}
}

func craftBlake2s() (cases []crafted) {
	rule := func(spareLow, spareHigh bool, sum int) func(d []byte) bool {
		return func(d []byte) bool {
			digits, _ := refB2Digits(d)
			return d[7] >= 128 == spareLow && d[15] >= 128 == spareHigh && digitSum(digits[:]) == sum
		}
	}
	for _, epoch := range []uint32{0, 1000, 1 << 31, 1<<32 - 1} {
		for _, r := range []struct {
			name   string
			accept func(d []byte) bool
		}{
			{"admissible", rule(false, false, 195)},
			{"sum one less", rule(false, false, 194)},
			{"sum one more", rule(false, false, 196)},
			{"sum 147, the mean", rule(false, false, 147)},
			{"spare bit of the low half", rule(true, false, 195)},
			{"spare bit of the high half", rule(false, true, 195)},
			{"both spare bits", rule(true, true, 195)},
			{"spare bit and wrong sum", rule(true, false, 150)},
		} {
			message := [32]byte{0xb2, byte(epoch)}
			pk, sig := refB2Craft(craftSeed("blake2s"), epoch, message, r.accept)
			cases = append(cases, crafted{
				Case: r.name, PublicKey: hexBytes{B: pk[:]}, Epoch: epoch, Message: hexBytes{B: message[:]},
				Signature: hexBytes{B: sig}, Valid: r.name == "admissible",
			})
		}
	}
	return cases
}

func craftKeccak() (cases []crafted) {
	codeword := func(d []byte) bool { _, ok := refKcDigits(d); return ok }
	sum := func(d []byte, want int) bool { digits, _ := refKcDigits(d); return digitSum(digits[:]) == want }
	wrong := []struct {
		name   string
		accept func(d []byte) bool
	}{
		{"sum one less", func(d []byte) bool { return refKcSpare(d) == 0 && sum(d, 105) }},
		{"sum one more", func(d []byte) bool { return refKcSpare(d) == 0 && sum(d, 107) }},
		{"sum 87, the mean", func(d []byte) bool { return refKcSpare(d) == 0 && sum(d, 87) }},
		{"spare bit 116", func(d []byte) bool { return oneBit(d, 116) && sum(d, 106) }},
		{"spare bit 127", func(d []byte) bool { return oneBit(d, 127) && sum(d, 106) }},
		{"some spare bits", func(d []byte) bool { return refKcSpare(d) != 0 && sum(d, 106) }},
		{"spare bits and wrong sum", func(d []byte) bool { return refKcSpare(d) != 0 && sum(d, 90) }},
	}
	seed, message := craftSeed("keccak"), [32]byte{0xcc}
	for _, epoch := range []uint32{0x12345678, 1<<32 - 1} {
		add := func(name string, bottom, top, root []byte, valid bool) {
			cases = append(cases, crafted{
				Case: name, PublicKey: hexBytes{B: join(root, refKcParameter(seed))}, Epoch: epoch, Message: hexBytes{B: message[:]},
				Signature: hexBytes{B: join(le32(epoch), bottom, top)}, Valid: valid,
			})
		}
		// The leaf does not depend on the digits, so both layers' parts can be exchanged freely.
		bottom, bottomRoot := refKcCraft(seed, 0, epoch, message[:], codeword)
		top, root := refKcCraft(seed, refKcTop, epoch>>16, bottomRoot, codeword)
		add("codewords", bottom, top, root, true)
		for _, w := range wrong {
			part, _ := refKcCraft(seed, 0, epoch, message[:], w.accept)
			add("bottom: "+w.name, part, top, root, false)
			part, _ = refKcCraft(seed, refKcTop, epoch>>16, bottomRoot, w.accept)
			add("top: "+w.name, bottom, part, root, false)
		}
	}
	return cases
}

func craftSeed(scheme string) []byte {
	return join([]byte("crafted signatures, "), make([]byte, 12-len(scheme)), []byte(scheme))
}
