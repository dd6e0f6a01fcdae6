package bench

import (
	"fmt"
	"slices"
	"time"
)

// Kind is who proves during a phase.
type Kind uint8

// The kinds.
const (
	KindUnknown   Kind = iota
	KindAbsent         // nobody: the figures that the others are held against
	KindBudget         // a child placed by the scheduler, as in the node
	KindPlain          // the same child at normal priority, not placed at all
	KindInProcess      // hashing in as many goroutines of this process as it has processors
	KindOtherWay       // nobody, and proofs are checked the other way: natively instead of in a child, or the reverse
)

// Kinds returns all kinds in the order of the report.
func Kinds() []Kind { return []Kind{KindAbsent, KindBudget, KindPlain, KindInProcess, KindOtherWay} }

// String returns the name used in the JSON.
func (k Kind) String() string {
	switch k {
	case KindAbsent:
		return "absent"
	case KindBudget:
		return "budget"
	case KindPlain:
		return "plain"
	case KindInProcess:
		return "in_process"
	case KindOtherWay:
		return "other_way"
	case KindUnknown:
	}
	return "unknown"
}

// Long returns the words of the printed table.
func (k Kind) Long() string {
	switch k {
	case KindAbsent:
		return "prover absent"
	case KindBudget:
		return "prover under the budget"
	case KindPlain:
		return "prover as a plain child"
	case KindInProcess:
		return "hashing in this process"
	case KindOtherWay:
		return "absent, other check"
	case KindUnknown:
	}
	return "unknown"
}

// MarshalText is for JSON.
func (k Kind) MarshalText() ([]byte, error) {
	if k == KindUnknown {
		return nil, fmt.Errorf("kind of phase %d", uint8(k))
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(b []byte) error {
	for _, known := range Kinds() {
		if known.String() == string(b) {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("no kind of phase %q", b)
}

// orders is a balanced square: over its four rows each kind has each place once, and each kind follows each other one
// once. A machine that drifts, or that remembers what ran before, treats all kinds alike.
var orders = [...][]Kind{
	{KindAbsent, KindBudget, KindInProcess, KindPlain},
	{KindBudget, KindPlain, KindAbsent, KindInProcess},
	{KindPlain, KindInProcess, KindBudget, KindAbsent},
	{KindInProcess, KindAbsent, KindPlain, KindBudget},
}

// order returns the kinds in the order of a round, counted from 0. The other way of checking, which no figure of the others is
// held against, comes last.
func order(round int) []Kind { return append(slices.Clone(orders[round%len(orders)]), KindOtherWay) }

// length is how long a phase of the kind lasts, of the length that phases have. One figure is wanted of the other way.
func (k Kind) length(phase time.Duration) time.Duration {
	if k == KindOtherWay {
		return phase / 3
	}
	return phase
}
