package key

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"aggnode/leanproof/internal/gf"
)

// Shape of the guest's table. Instruction pc has the word of slot s at place s * 2^ProgramLog + pc; slot FirstSlot holds the
// generator to the power of the operation's number, the slots behind it the operands; the others are zero.
const (
	Instructions = 1 << ProgramLog
	FirstSlot    = 3
	UsedSlots    = 11
	Slots        = 1 << (ProgramVars - ProgramLog)
)

// Operands are the numbers of operands of the operations: of XOR, MUL and JUMP three, of SET the destination and three limbs,
// of DEREF three and two flags, of KECCAK eight and two flags.
var Operands = [Tables]int{3, 3, 4, 5, 3, 10}

// Form of the embedded file: DEFLATE of
//
//	u32 c | c * u64         words that are no power of the generator below 2^ProgramLog, the first is zero
//	u32 n | n * u8          operations; the last instruction stands for all that follow, up to 2^ProgramLog
//	for each operation, for each of its operands: the operands of its instructions in order, as differences
//
// An operand is a number below 2^24: an exponent of the generator, or 2^ProgramLog + i for word i. Each is written as its
// difference to the one before (mod 2^24, the first to zero), all low bytes of a list first, then all middle, then all high
// ones. Numbers are little-endian. So the file is a third of what the instructions in a row come to.
const (
	maxWords   = 1 << 16
	digits     = 3
	digitsMask = 1<<(8*digits) - 1
)

var errGuest = errors.New("the guest of the verification key is damaged")

// row is one instruction's words in slots FirstSlot and up.
type row [UsedSlots]uint64

// isWide reports whether the row has a word behind the dense slots.
func (r *row) isWide() bool {
	return slices.ContainsFunc(r[denseSlots:], func(w uint64) bool { return w != 0 })
}

// guest is the decoded file: 7 MiB where the words of all rows are 31.
type guest struct {
	operations []byte
	operands   [Tables][][]uint32 // of each operation, the operands of its instructions
	values     *operandValues
}

// rows calls yield with the words of each instruction in order. The row is valid during the call.
func (g *guest) rows(yield func(r *row)) {
	var next [Tables]int
	var r row // one for all: a row for each call would be 30 MB of garbage
	for _, op := range g.operations {
		r = row{1 << op}
		for k, list := range g.operands[op] {
			r[1+k] = g.values.of(list[next[op]])
		}
		next[op]++
		yield(&r)
	}
}

// decodeGuest reads the embedded form. It keeps nothing of it, and allocates no more than 2^ProgramLog instructions need.
func decodeGuest(compressed []byte) (*guest, error) {
	in := flate.NewReader(bytes.NewReader(compressed))
	words, err := readWords(in)
	if err != nil {
		return nil, err
	}
	count, err := readCount(in, Instructions)
	if err != nil {
		return nil, err
	}
	g := &guest{operations: make([]byte, count), values: newOperandValues(words)}
	if _, err := io.ReadFull(in, g.operations); err != nil {
		return nil, fmt.Errorf("%w: %w", errGuest, err)
	}
	var instructions [Tables]int
	for _, op := range g.operations {
		if op >= Tables {
			return nil, fmt.Errorf("%w: operation %d", errGuest, op)
		}
		instructions[op]++
	}
	buf := make([]byte, digits*slices.Max(instructions[:]))
	for op, n := range instructions {
		for range Operands[op] {
			list, err := readOperands(in, buf[:digits*n], Instructions+uint32(len(words)))
			if err != nil {
				return nil, err
			}
			g.operands[op] = append(g.operands[op], list)
		}
	}
	if n, err := io.ReadFull(in, buf[:1]); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("%w: more data than it announces", errGuest)
	}
	return g, nil
}

func readCount(in io.Reader, limit uint32) (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", errGuest, err)
	}
	n := binary.LittleEndian.Uint32(b[:])
	if n == 0 || n > limit {
		return 0, fmt.Errorf("%w: count %d", errGuest, n)
	}
	return n, nil
}

func readWords(in io.Reader) ([]uint64, error) {
	n, err := readCount(in, maxWords)
	if err != nil {
		return nil, err
	}
	words := make([]uint64, n)
	if err := binary.Read(in, binary.LittleEndian, words); err != nil {
		return nil, fmt.Errorf("%w: %w", errGuest, err)
	}
	return words, nil
}

// readOperands reads one list of operands, each below limit. buf is as long as the list in the file.
func readOperands(in io.Reader, buf []byte, limit uint32) ([]uint32, error) {
	if _, err := io.ReadFull(in, buf); err != nil {
		return nil, fmt.Errorf("%w: %w", errGuest, err)
	}
	n := len(buf) / digits
	list := make([]uint32, n)
	operand := uint32(0)
	for i := range list {
		operand = (operand + uint32(buf[i]) + uint32(buf[n+i])<<8 + uint32(buf[2*n+i])<<16) & digitsMask
		if operand >= limit {
			return nil, fmt.Errorf("%w: operand %d", errGuest, operand)
		}
		list[i] = operand
	}
	return list, nil
}

// operandValues turns operands into words: g^e as the product of two powers out of small tables.
type operandValues struct {
	low   [1 << lowExponents]uint64
	high  [1 << (ProgramLog - lowExponents)]uint64
	words []uint64
}

// lowExponents covers the exponents of nearly all operands, which then take no product.
const lowExponents = 14

func newOperandValues(words []uint64) *operandValues {
	v := &operandValues{words: words}
	p := uint64(1)
	for i := range v.low {
		v.low[i] = p
		p = gf.MulBase(p, gf.Generator)
	}
	v.high[0] = 1
	for i := 1; i < len(v.high); i++ {
		v.high[i] = gf.MulBase(v.high[i-1], p)
	}
	return v
}

func (v *operandValues) of(operand uint32) uint64 {
	if operand >= Instructions {
		return v.words[operand-Instructions]
	}
	low, high := operand%(1<<lowExponents), operand>>lowExponents
	if high == 0 {
		return v.low[low]
	}
	return gf.MulBase(v.low[low], v.high[high])
}
