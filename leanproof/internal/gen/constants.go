package main

import (
	"fmt"
	"slices"
	"strings"
)

// constants are the values that the prover writes for its guest, by name without the suffix that all of them carry. A scalar
// has one element.
type constants map[string][]uint64

const nameSuffix = "_PLACEHOLDER"

// parseConstants reads the file that DBG_PLACEHOLDERS names: a line "NAME_PLACEHOLDER = value" each, a value being an
// integer, f192(a,b,c) or a list of either. Elements that do not fit in a word become tooLarge, which a reader refuses: the
// key needs none of them.
func parseConstants(text string) (constants, error) {
	c := constants{}
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, value, ok := strings.Cut(line, " = ")
		name, suffixed := strings.CutSuffix(name, nameSuffix)
		if !ok || !suffixed {
			return nil, fmt.Errorf("line %d: want NAME%s = value", n+1, nameSuffix)
		}
		c[name] = nil
		value = strings.NewReplacer("f192(", "", ",0,0)", "", "[", "", "]", "").Replace(value)
		for _, word := range strings.Split(value, ", ") {
			var k uint64
			if word == "" {
				continue
			}
			if _, err := fmt.Sscanf(word, "%d", &k); err != nil || fmt.Sprint(k) != word {
				c[name] = append(c[name], tooLarge)
				continue
			}
			c[name] = append(c[name], k)
		}
	}
	return c, nil
}

const tooLarge = ^uint64(0)

// reader takes values out of constants and keeps the first error.
type reader struct {
	from constants
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// list returns the list of that name, of exactly n elements.
func (r *reader) list(name string, n int) []uint64 {
	l := r.all(name)
	if len(l) != n {
		r.fail("%s has %d elements, want %d", name, len(l), n)
		return make([]uint64, n)
	}
	return l
}

// all returns the list of that name, of any length.
func (r *reader) all(name string) []uint64 {
	l := r.from[name]
	if slices.Contains(l, tooLarge) {
		r.fail("%s has elements beyond a word", name)
	}
	return l
}

func (r *reader) scalar(name string) int { return int(r.list(name, 1)[0]) }

// same checks a fact of the layout that the verifier's code relies on.
func (r *reader) same(what string, got, want uint64) {
	if got != want {
		r.fail("%s is %d, the verifier's code takes it to be %d", what, got, want)
	}
}

// slice returns the part of a list that starts at start[i] and ends at start[i+1].
func (r *reader) slice(list, start []uint64, i int) []uint64 {
	if start[i] > start[i+1] || start[i+1] > uint64(len(list)) {
		r.fail("a list of ranges leaves its target")
		return nil
	}
	return list[start[i]:start[i+1]]
}
