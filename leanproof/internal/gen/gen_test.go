package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

func TestInstructionsAreReadAsTheTableHasThem(t *testing.T) {
	t.Parallel()
	zero := word(0)
	for _, c := range []struct {
		text string
		op   int
		want []operand
	}{
		{"XOR    fp[67] = fp[63] ^ fp[46]", key.TableXOR, []operand{power(63), power(46), power(67)}},
		{"MUL    fp[10] = fp[2] * fp[11]", key.TableMUL, []operand{power(2), power(11), power(10)}},
		{"SET    fp[427] = g^159283", key.TableSET, []operand{power(427), power(159283), zero, zero}},
		{"SET    fp[53] = g^524288", key.TableSET, []operand{power(53), word(gf.PowGenerator(524288)), zero, zero}},
		{"SET    fp[0] = 0x0000000000000000", key.TableSET, []operand{power(0), zero, zero, zero}},
		{
			"SET    fp[1] = 0x300000000000000020000000000000001", key.TableSET,
			[]operand{power(1), word(1), word(2), word(3)},
		},
		{"DEREF  *(fp[2]·g^0) = fp[12]  [Cell]", key.TableDEREF, []operand{power(2), power(0), power(12), zero, zero}},
		{"DEREF  *(fp[5]·g^1) = fp  [Fp]", key.TableDEREF, []operand{power(5), power(1), power(0), zero, word(1)}},
		{"DEREF  *(fp[5]·g^0) = pc  [Pc]", key.TableDEREF, []operand{power(5), power(0), power(0), word(1), zero}},
		{"JUMP   if fp[63]≠0: pc=fp[62], fp=fp[61]", key.TableJUMP, []operand{power(63), power(62), power(61)}},
		{
			"KECCAK fp[99..+13] even = keccak_f(fp[80],fp[81],fp[84],fp[85], tail=fp[112..+4], b8=fp[117], cap=fp[113..+4]) odd",
			key.TableKECCAK,
			[]operand{power(80), power(81), power(84), power(85), power(112), power(117), power(113), power(99), word(1), zero},
		},
	} {
		name, rest, _ := strings.Cut(c.text, " ")
		got, err := parseInstruction(name, strings.TrimSpace(rest))
		require.NoError(t, err, c.text)
		require.Equal(t, instruction{op: c.op, operands: c.want}, got, c.text)
	}
}

func TestUnknownInstructionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"ADD fp[1] = fp[2]", "XOR fp[1] = fp[2]", "MUL fp[1] = fp[99999999999] * fp[2]", "SET fp[1]", "SET fp[1] = 7",
		"SET fp[1] = g^x", "SET fp[1] = 0x" + strings.Repeat("1", 49), "JUMP if fp[1]≠0: pc=fp[2]",
		"KECCAK fp[1..+13] even", "DEREF fp",
	} {
		name, rest, _ := strings.Cut(text, " ")
		_, err := parseInstruction(name, rest)
		require.Error(t, err, text)
	}
	for _, listing := range []string{"", " 1  SET    fp[0] = 0x0\n", " 0  SET    fp[0] = 0x0\n", "no instruction\n"} {
		_, err := parseListing(listing)
		require.Error(t, err, "%q", listing)
	}
}

// The seed covers all that a table says, so equal seeds are equal tables; here two small guests.
func TestGuestIsEncodedWhole(t *testing.T) {
	t.Parallel()
	set := instruction{op: key.TableSET, operands: []operand{power(3), word(77), word(1 << 63), word(5)}}
	xor := instruction{op: key.TableXOR, operands: []operand{power(500000), power(1), power(2)}}
	last := instruction{op: key.TableSET, operands: []operand{power(0), word(0), word(0), word(0)}}
	seed := func(all ...instruction) string {
		guest, err := encodeGuest(all)
		require.NoError(t, err)
		k, err := key.Decode(guest)
		require.NoError(t, err)
		return fmt.Sprintf("%x", k.TranscriptSeed())
	}
	want := seed(set, xor, last)
	require.Equal(t, want, seed(set, xor, last, last, last), "repeats at the end are the same table")
	require.NotEqual(t, want, seed(set, last, xor, last))
}

func TestConstantsAreRead(t *testing.T) {
	t.Parallel()
	c, err := parseConstants(strings.Join([]string{
		"A_PLACEHOLDER = 7", "B_PLACEHOLDER = [1, 2]", "C_PLACEHOLDER = [f192(3,0,0), f192(4,5,6)]", "D_PLACEHOLDER = []",
		"E_PLACEHOLDER = 219987477440241922375488438384259330662",
	}, "\n"))
	require.NoError(t, err)
	require.Equal(t, constants{"A": {7}, "B": {1, 2}, "C": {3, tooLarge}, "D": nil, "E": {tooLarge}}, c)
	for _, text := range []string{"", "A = 7", "A_PLACEHOLDER"} {
		_, err := parseConstants(text)
		require.Error(t, err, "%q", text)
	}
}

func TestAnotherLayoutIsRefused(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(*reader, *writer){
		"scalars": scalars, "committed": committed, "keccak": keccak, "ladder": ladder, "bus": bus,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reader{from: constants{}}
			require.NotPanics(t, func() { part(r, newWriter()) })
			require.Error(t, r.err)
		})
	}
}
