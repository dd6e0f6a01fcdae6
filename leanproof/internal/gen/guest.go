package main

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"slices"

	"aggnode/leanproof/internal/key"
)

// encodeGuest writes the instructions in the form that package key describes.
func encodeGuest(all []instruction) ([]byte, error) {
	all = withoutRepeats(all)
	words := wordsOf(all)
	var b bytes.Buffer
	put := func(n int) { b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	put(len(words))
	for _, w := range words {
		b.Write(binary.LittleEndian.AppendUint64(nil, w))
	}
	put(len(all))
	for _, in := range all {
		b.WriteByte(byte(in.op))
	}
	for op, operands := range key.Operands {
		for k := range operands {
			b.Write(planesOf(all, words, op, k))
		}
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// withoutRepeats cuts the instructions at the end that are the same as the last one, but one.
func withoutRepeats(all []instruction) []instruction {
	last := all[len(all)-1]
	n := len(all)
	for n > 1 && all[n-2].op == last.op && slices.Equal(all[n-2].operands, last.operands) {
		n--
	}
	return all[:n]
}

// wordsOf lists the words that are written as such, zero first.
func wordsOf(all []instruction) []uint64 {
	seen := map[uint64]bool{0: true}
	for _, in := range all {
		for _, o := range in.operands {
			if o.isWord {
				seen[o.word] = true
			}
		}
	}
	words := make([]uint64, 0, len(seen))
	for w := range seen {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// planesOf is the list of one operand of one operation: differences, by byte.
func planesOf(all []instruction, words []uint64, op, k int) []byte {
	var planes [3][]byte
	before := uint32(0)
	for _, in := range all {
		if in.op != op {
			continue
		}
		n := uint32(in.operands[k].exponent)
		if o := in.operands[k]; o.isWord {
			i, _ := slices.BinarySearch(words, o.word)
			n = key.Instructions + uint32(i)
		}
		d := n - before
		before = n
		for i := range planes {
			planes[i] = append(planes[i], byte(d>>(8*i)))
		}
	}
	return slices.Concat(planes[:]...)
}
