package xmss_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

func TestSchemesByName(t *testing.T) {
	t.Parallel()
	for s, size := range map[xmss.Scheme]int{xmss.Blake2s: 1208, xmss.Keccak: 2404} {
		got, err := xmss.SchemeByName(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.True(t, s.Valid())
		require.Equal(t, size, s.SignatureSize())
	}
	for _, name := range []string{"", "unknown", "BLAKE2S", "poseidon", "blake2s "} {
		_, err := xmss.SchemeByName(name)
		require.ErrorIs(t, err, xmss.ErrScheme, "%q", name)
	}
	for _, s := range []xmss.Scheme{xmss.SchemeUnknown, 3, 255} {
		require.False(t, s.Valid())
		require.Equal(t, "unknown", s.String())
		require.Zero(t, s.SignatureSize())
		require.Zero(t, s.UpperKey(xmss.PublicKey{1}, 1))
		require.ErrorIs(t, s.Verify(xmss.PublicKey{}, 0, [32]byte{}, nil), xmss.ErrScheme)
	}
}

func TestUpperKeysNameTheSharedPart(t *testing.T) {
	t.Parallel()
	pk := xmss.PublicKey{7}
	require.Equal(t, xmss.UpperKey{PublicKey: pk, Tree: 3}, xmss.Blake2s.UpperKey(pk, 3<<9|511))
	require.Equal(t, xmss.UpperKey{PublicKey: pk, Tree: 3}, xmss.Keccak.UpperKey(pk, 3<<16|65535))
	require.Equal(t, uint32(1<<23-1), xmss.Blake2s.UpperKey(pk, 1<<32-1).Tree)
	require.Equal(t, uint32(1<<16-1), xmss.Keccak.UpperKey(pk, 1<<32-1).Tree)
}

func TestBlake2sVerifyVectors(t *testing.T) {
	cases := blakeCases(t)
	onEachPath(t, func(t *testing.T) {
		shortKeys := 0
		for _, c := range cases {
			if c.Case == "short key" { // 31 bytes: no PublicKey, so refused before this package
				require.False(t, c.Valid)
				shortKeys++
				continue
			}
			check := xmss.Check{PublicKey: c.PublicKey.publicKey(), Epoch: c.Epoch, Message: c.Message.message(), Signature: c.Signature.B}
			err := xmss.Blake2s.Verify(check.PublicKey, check.Epoch, check.Message, check.Signature)
			require.Equal(t, c.Valid, err == nil, "%s: %v", c.Case, err)
			require.ErrorIs(t, refB2Verify(check.PublicKey, check.Epoch, check.Message, check.Signature, false), err, c.Case)
		}
		require.Equal(t, 6, shortKeys)
	})
}

func TestKeccakVerifyVectors(t *testing.T) {
	t.Parallel()
	want := map[string]error{"": nil, "codeword": xmss.ErrCodeword, "root": xmss.ErrRoot, "length": xmss.ErrLength}
	for _, c := range kcCases(t) {
		epoch := leafIndex(c.Signature.B)
		err := xmss.Keccak.Verify(c.PublicKey.publicKey(), epoch, c.Message.message(), c.Signature.B)
		require.ErrorIs(t, err, want[c.Reason], "%d %s", c.ID, c.Name)
		require.ErrorIs(t, refKcVerify(c.PublicKey.publicKey(), epoch, c.Message.message(), c.Signature.B, false), want[c.Reason], c.Name)
		if c.Verdict == "malformed" {
			continue
		}
		for _, other := range []uint32{epoch + 1, epoch - 1, epoch ^ 1<<16, epoch ^ 1<<31} {
			err := xmss.Keccak.Verify(c.PublicKey.publicKey(), other, c.Message.message(), c.Signature.B)
			require.ErrorIs(t, err, xmss.ErrEpoch, "%d %s", c.ID, c.Name)
		}
	}
}

func TestEveryWrongLengthIsRefused(t *testing.T) {
	t.Parallel()
	r := readRegistry(t)
	for s, c := range map[xmss.Scheme]xmss.Check{xmss.Blake2s: r.checks()[0], xmss.Keccak: kcValid(t)[0]} {
		size := s.SignatureSize()
		long := append(slices.Clone(c.Signature), make([]byte, size+1)...)
		for n := range len(long) + 1 {
			err := s.Verify(c.PublicKey, c.Epoch, c.Message, long[:n])
			if n == size {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, xmss.ErrLength, "%s, %d bytes", s, n)
			}
		}
		require.ErrorIs(t, s.Verify(c.PublicKey, c.Epoch, c.Message, nil), xmss.ErrLength)
	}
}

// sample gives checks of a scheme, valid ones and some of every kind of invalid one, in random order.
func sample(t testing.TB, s xmss.Scheme, rng *rand.Rand) (checks []xmss.Check) {
	if s == xmss.Blake2s {
		r := readRegistry(t)
		checks = r.checks()
	} else {
		checks = kcValid(t)
	}
	var cases []crafted
	readVectors(t, s.String()+"/crafted.json", &cases)
	for i := range cases {
		checks = append(checks, cases[i].check())
	}
	for i := range checks {
		if rng.IntN(2) == 0 {
			checks[i] = corrupt(checks[i], rng)
		}
	}
	rng.Shuffle(len(checks), func(i, j int) { checks[i], checks[j] = checks[j], checks[i] })
	return checks
}

// corrupt changes one thing about a check, in a copy.
func corrupt(c xmss.Check, rng *rand.Rand) xmss.Check {
	c.Signature = slices.Clone(c.Signature)
	switch rng.IntN(8) {
	case 0:
		c.Message[rng.IntN(32)] ^= 1 << rng.IntN(8)
	case 1:
		c.PublicKey[rng.IntN(32)] ^= 1 << rng.IntN(8)
	case 2:
		c.Epoch ^= 1 << rng.IntN(32)
	case 3:
		c.Signature = c.Signature[:rng.IntN(len(c.Signature))]
	case 4: // somewhere in the upper part, the end of both schemes' signatures
		c.Signature[len(c.Signature)-1-rng.IntN(300)] ^= 1 << rng.IntN(8)
	default:
		c.Signature[rng.IntN(len(c.Signature))] ^= 1 << rng.IntN(8)
	}
	return c
}

func TestABatchAnswersEachCheckAsAlone(t *testing.T) {
	t.Parallel()
	for _, s := range []xmss.Scheme{xmss.Blake2s, xmss.Keccak} {
		rng := rand.New(rand.NewPCG(11, uint64(s)))
		checks := sample(t, s, rng)
		want := make([]error, len(checks))
		verdicts := map[error]int{}
		for i := range checks {
			c := &checks[i]
			want[i] = s.Verify(c.PublicKey, c.Epoch, c.Message, c.Signature)
			require.Equal(t, refVerify(s, c, false), want[i], "%s check %d", s, i)
			verdicts[want[i]]++
		}
		require.GreaterOrEqual(t, len(verdicts), 4, "the sample must show all kinds of verdicts: %v", verdicts)
		for lo := 0; lo < len(checks); {
			n := min(rng.IntN(20), len(checks)-lo)
			answers := make([]xmss.Answer, n+1)
			for i := range answers {
				answers[i] = xmss.Answer{Err: xmss.ErrRoot, Upper: new(xmss.Upper)} // what was there before must not show
			}
			s.VerifyBatch(checks[lo:lo+n], answers)
			for i := range n {
				require.Equal(t, want[lo+i], answers[i].Err, "%s check %d", s, lo+i)
				require.Equal(t, want[lo+i] == nil, answers[i].Upper != nil)
			}
			require.Equal(t, xmss.ErrRoot, answers[n].Err, "beyond the batch")
			lo += n
		}
	}
}

func TestAKnownUpperPartNeverChangesAVerdict(t *testing.T) {
	t.Parallel()
	for _, s := range []xmss.Scheme{xmss.Blake2s, xmss.Keccak} {
		rng := rand.New(rand.NewPCG(13, uint64(s)))
		var uppers []*xmss.Upper
		var valid []xmss.Check
		for _, c := range sample(t, s, rng) {
			answers := make([]xmss.Answer, 1)
			s.VerifyBatch([]xmss.Check{c}, answers)
			if answers[0].Err != nil {
				continue
			}
			u := answers[0].Upper
			require.Equal(t, s.UpperKey(c.PublicKey, c.Epoch), u.Key())
			require.Less(t, u.Size(), 1500)
			c.Known = u
			s.VerifyBatch([]xmss.Check{c}, answers)
			require.Equal(t, xmss.Answer{}, answers[0], "%s: its own upper part serves and no other comes back", s)
			uppers = append(uppers, u)
			valid = append(valid, c)
		}
		require.Greater(t, len(valid), 10)
		corruptions := 600
		for range corruptions {
			c := corrupt(valid[rng.IntN(len(valid))], rng)
			if rng.IntN(3) == 0 {
				c.Known = uppers[rng.IntN(len(uppers))] // another key's or another tree's
			}
			bare := c
			bare.Known = nil
			answers := make([]xmss.Answer, 2)
			s.VerifyBatch([]xmss.Check{c, bare}, answers)
			require.Equal(t, answers[1].Err, answers[0].Err, "%s", s)
		}
	}
}

func TestAnUpperPartOfAnotherKeyTreeOrSchemeIsNotUsed(t *testing.T) {
	t.Parallel()
	r := readRegistry(t)
	blake, keccak := r.checks(), kcValid(t)
	answers := make([]xmss.Answer, 1)
	upper := func(s xmss.Scheme, c xmss.Check) *xmss.Upper {
		s.VerifyBatch([]xmss.Check{c}, answers)
		require.NoError(t, answers[0].Err)
		return answers[0].Upper
	}
	for s, known := range map[xmss.Scheme][]*xmss.Upper{
		xmss.Blake2s: {upper(xmss.Blake2s, blake[1]), upper(xmss.Keccak, keccak[0]), new(xmss.Upper)},
		xmss.Keccak:  {upper(xmss.Keccak, keccak[len(keccak)-1]), upper(xmss.Blake2s, blake[0]), new(xmss.Upper)},
	} {
		c := map[xmss.Scheme]xmss.Check{xmss.Blake2s: blake[0], xmss.Keccak: keccak[0]}[s]
		for _, u := range known {
			c.Known = u
			s.VerifyBatch([]xmss.Check{c}, answers)
			require.NoError(t, answers[0].Err)
			require.NotNil(t, answers[0].Upper, "a known part that did not serve is replaced")
		}
	}
}

func TestEqualEpochsOfATreeShareTheirUpperPart(t *testing.T) {
	t.Parallel()
	// Three signatures of one keccak key in one bottom tree: the second and third need the first one's part only.
	byTree := map[xmss.UpperKey][]xmss.Check{}
	for _, c := range kcValid(t) {
		key := xmss.Keccak.UpperKey(c.PublicKey, c.Epoch)
		byTree[key] = append(byTree[key], c)
	}
	shared := 0
	for _, checks := range byTree {
		var known *xmss.Upper
		for i, c := range checks {
			c.Known = known
			answers := make([]xmss.Answer, 1)
			xmss.Keccak.VerifyBatch([]xmss.Check{c}, answers)
			require.NoError(t, answers[0].Err)
			if i == 0 {
				known = answers[0].Upper
			} else {
				require.Nil(t, answers[0].Upper)
				shared++
			}
		}
	}
	require.Positive(t, shared)
}

func TestChecksDoNotAllocate(t *testing.T) {
	r := readRegistry(t)
	for s, checks := range map[xmss.Scheme][]xmss.Check{xmss.Blake2s: r.checks()[:9], xmss.Keccak: kcValid(t)[:9]} {
		answers := make([]xmss.Answer, len(checks))
		s.VerifyBatch(checks, answers)
		for i := range checks {
			require.NoError(t, answers[i].Err)
			checks[i].Known = answers[i].Upper
		}
		require.Zero(t, testing.AllocsPerRun(5, func() { s.VerifyBatch(checks, answers) }), "%s, upper parts known", s)
		for i := range checks {
			checks[i].Known = nil
			checks[i].Signature = checks[i].Signature[:i*100] // refused at once
		}
		require.Zero(t, testing.AllocsPerRun(5, func() { s.VerifyBatch(checks, answers) }), "%s, wrong lengths", s)
	}
}

func FuzzVerify(f *testing.F) {
	r := readRegistry(f)
	blake, keccak := r.checks()[0], kcValid(f)[0]
	f.Add(true, blake.PublicKey[:], blake.Epoch, blake.Message[:], blake.Signature)
	f.Add(false, keccak.PublicKey[:], keccak.Epoch, keccak.Message[:], keccak.Signature)
	f.Add(true, []byte{}, uint32(0), []byte{}, []byte{})
	known := map[xmss.Scheme]*xmss.Upper{}
	for s, c := range map[xmss.Scheme]xmss.Check{xmss.Blake2s: blake, xmss.Keccak: keccak} {
		answers := make([]xmss.Answer, 1)
		s.VerifyBatch([]xmss.Check{c}, answers)
		known[s] = answers[0].Upper
	}
	f.Fuzz(func(t *testing.T, isBlake bool, pk []byte, epoch uint32, message, sig []byte) {
		s := xmss.Keccak
		if isBlake {
			s = xmss.Blake2s
		}
		c := xmss.Check{Epoch: epoch, Signature: sig}
		copy(c.PublicKey[:], pk)
		copy(c.Message[:], message)
		with := c
		with.Known = known[s]
		answers := make([]xmss.Answer, 2)
		s.VerifyBatch([]xmss.Check{c, with}, answers)
		require.Equal(t, refVerify(s, &c, false), answers[0].Err)
		require.Equal(t, answers[0].Err, answers[1].Err)
	})
}

func BenchmarkVerify(b *testing.B) {
	r := readRegistry(b)
	for _, s := range []xmss.Scheme{xmss.Blake2s, xmss.Keccak} {
		checks := kcValid(b)[:16]
		if s == xmss.Blake2s {
			checks = r.checks()[:16]
		}
		for _, known := range []bool{false, true} {
			for _, n := range []int{1, 16} {
				batch := slices.Clone(checks[:n])
				answers := make([]xmss.Answer, n)
				s.VerifyBatch(batch, answers)
				for i := range batch {
					if known {
						batch[i].Known = answers[i].Upper
					}
				}
				b.Run(fmt.Sprintf("%s/batch=%d/known=%t", s, n, known), func(b *testing.B) {
					for b.Loop() {
						s.VerifyBatch(batch, answers)
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*b.N), "us/sig")
				})
			}
		}
	}
}
