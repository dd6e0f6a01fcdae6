package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// instruction is one instruction of the guest: its operation and, for each operand, an exponent of the generator or a word.
type instruction struct {
	op       int
	operands []operand
}

// operand is a word of the guest's table: g^exponent, or the word itself.
type operand struct {
	isWord   bool
	exponent uint64
	word     uint64
}

func word(w uint64) operand { return operand{isWord: true, word: w} }

// power is g^exponent, as a word where the exponent is none of an instruction's number.
func power(exponent uint64) operand {
	if exponent >= key.Instructions {
		return word(gf.PowGenerator(exponent))
	}
	return operand{exponent: exponent}
}

var (
	lineForm   = regexp.MustCompile(`^\s*([\d,]+)\s+(\w+)\s+(.*)$`)
	numberForm = regexp.MustCompile(`0x[0-9a-f]+|\d+`)
	cellForm   = regexp.MustCompile(`fp\[(\d+)`)
	paritySide = regexp.MustCompile(`^.*?\] (even|odd) = .*\) (even|odd)$`)
)

// parseListing reads the file that DBG_DISASM names: one instruction a line, with its number, in order; lines that start with #
// name functions.
func parseListing(text string) ([]instruction, error) {
	var out []instruction
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := lineForm.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || strings.ReplaceAll(m[1], ",", "") != strconv.Itoa(len(out)) {
			return nil, fmt.Errorf("instruction %d: %q", len(out), line)
		}
		in, err := parseInstruction(m[2], m[3])
		if err != nil {
			return nil, fmt.Errorf("instruction %d: %w", len(out), err)
		}
		out = append(out, in)
	}
	if len(out) != key.Instructions {
		return nil, fmt.Errorf("%d instructions, want %d", len(out), key.Instructions)
	}
	return out, nil
}

var operations = map[string]int{
	"XOR": key.TableXOR, "MUL": key.TableMUL, "SET": key.TableSET,
	"DEREF": key.TableDEREF, "JUMP": key.TableJUMP, "KECCAK": key.TableKECCAK,
}

func parseInstruction(name, text string) (instruction, error) {
	op, ok := operations[name]
	if !ok {
		return instruction{}, fmt.Errorf("operation %q", name)
	}
	in := instruction{op: op}
	var err error
	switch op {
	case key.TableSET:
		in.operands, err = parseSet(text)
	case key.TableKECCAK:
		in.operands, err = parseKeccak(text)
	default:
		in.operands, err = parseCells(op, text)
	}
	if err == nil && len(in.operands) != key.Operands[op] {
		err = fmt.Errorf("%d operands of %s", len(in.operands), name)
	}
	return in, err
}

// parseSet reads "fp[n] = 0x…", 192 bits, or "fp[n] = g^e".
func parseSet(text string) ([]operand, error) {
	left, right, ok := strings.Cut(text, " = ")
	cell := cellForm.FindStringSubmatch(left)
	if !ok || cell == nil {
		return nil, fmt.Errorf("form of %q", text)
	}
	n, err := strconv.ParseUint(cell[1], 10, 32)
	if err != nil {
		return nil, err
	}
	out := []operand{power(n), word(0), word(0), word(0)}
	if exponent, ok := strings.CutPrefix(right, "g^"); ok {
		e, err := strconv.ParseUint(exponent, 10, 32)
		if err != nil {
			return nil, err
		}
		out[1] = power(e)
		return out, nil
	}
	digits, ok := strings.CutPrefix(right, "0x")
	if !ok {
		return nil, fmt.Errorf("value of %q", text)
	}
	for i := 1; len(digits) > 0; i++ {
		at := max(0, len(digits)-16)
		w, err := strconv.ParseUint(digits[at:], 16, 64)
		if err != nil || i >= len(out) {
			return nil, fmt.Errorf("value of %q", text)
		}
		out[i], digits = word(w), digits[:at]
	}
	return out, nil
}

// parseKeccak reads "fp[d..+13] even = keccak_f(fp[a],fp[b],fp[c],fp[d], tail=fp[t..+4], b8=fp[x], cap=fp[y..+4]) odd": the
// table has the four inputs, tail, b8 and cap, then the destination, then the flags of inputs and destination.
func parseKeccak(text string) ([]operand, error) {
	cells := cellForm.FindAllStringSubmatch(text, -1)
	parity := paritySide.FindStringSubmatch(text)
	if len(cells) != 8 || parity == nil {
		return nil, fmt.Errorf("form of %q", text)
	}
	out := make([]operand, 0, key.Operands[key.TableKECCAK])
	for _, c := range append(cells[1:], cells[0]) {
		n, err := strconv.ParseUint(c[1], 10, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, power(n))
	}
	flags := map[string]uint64{"even": 0, "odd": 1}
	return append(out, word(flags[parity[2]]), word(flags[parity[1]])), nil
}

// parseCells reads the other operations, whose operands are numbers in the text: the result of XOR and MUL stands first there
// and last in the table.
func parseCells(op int, text string) ([]operand, error) {
	var n []uint64
	for _, s := range numberForm.FindAllString(text, -1) {
		v, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			return nil, err
		}
		n = append(n, v)
	}
	switch {
	case (op == key.TableXOR || op == key.TableMUL) && len(n) == 3:
		return []operand{power(n[1]), power(n[2]), power(n[0])}, nil
	case op == key.TableJUMP && len(n) == 4: // if fp[n0]≠n1: pc=fp[n2], fp=fp[n3]
		return []operand{power(n[0]), power(n[2]), power(n[3])}, nil
	case op == key.TableDEREF && strings.Contains(text, "[Cell]") && len(n) == 3:
		return []operand{power(n[0]), power(n[1]), power(n[2]), word(0), word(0)}, nil
	case op == key.TableDEREF && strings.Contains(text, "[Fp]") && len(n) >= 2:
		return []operand{power(n[0]), power(n[1]), power(0), word(0), word(1)}, nil
	case op == key.TableDEREF && len(n) >= 2: // the return address
		return []operand{power(n[0]), power(n[1]), power(0), word(1), word(0)}, nil
	}
	return nil, fmt.Errorf("form of %q", text)
}
