package bench

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Limits of a conclusive measurement.
const (
	// maxIdleSpread is how far apart the rounds' median checks without a prover may be: a machine that drifts by more
	// says nothing about 5 %.
	maxIdleSpread = 0.20
	// minPlainRatio is how much a plain child must slow checks at the median. It slowed them 1.8 times on a quiet
	// machine; where it does not, something else had the processors already, or there are more than the prover uses.
	minPlainRatio = 1.3
	// minNativeRatio is the same for native checks. One of 2.5 ms is often over before the kernel gives its processor to
	// somebody else (slices are of 3 ms), so a plain child slows the median by 1.1 to 1.6 only (Intel Xeon, 2026-12).
	minNativeRatio = 1.1
)

// quantile returns the q-quantile of ascending values with linear interpolation, 0 of none. 0 <= q <= 1.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + time.Duration((at-float64(low))*float64(sorted[low+1]-sorted[low]))
}

// pool returns the values of all lists in ascending order.
func pool(lists ...[]time.Duration) []time.Duration {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}

// ratio is a over b, 0 where there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return round3(a / b)
}

// milliseconds with three decimals: the clock and the scheduler are not finer.
func milliseconds(d time.Duration) float64 { return round3(float64(d) / float64(time.Millisecond)) }

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

// span is the time of one proof.
type span struct{ start, end time.Time }

// share adds up what parts of the spans lie between two times: a proof that a part of a phase saw half of counts half.
func share(spans []span, from, to time.Time) float64 {
	total := 0.0
	for _, s := range spans {
		start, end := s.start, s.end
		if start.Before(from) {
			start = from
		}
		if to.Before(end) {
			end = to
		}
		if whole := s.end.Sub(s.start); whole > 0 && start.Before(end) {
			total += float64(end.Sub(start)) / float64(whole)
		}
	}
	return total
}

// doubts says why a measurement tells nothing, in no words where it does. idleP50 is the median check without a prover
// of each round, and least what a plain child must slow checks by.
func doubts(idleP50 []time.Duration, ratioPlain, least float64) []string {
	var why []string
	if len(idleP50) == 0 || slices.Min(idleP50) == 0 {
		return []string{"no check without a prover was accepted in some round"}
	}
	low, high := slices.Min(idleP50), slices.Max(idleP50)
	if spread := float64(high-low) / float64(low); spread > maxIdleSpread {
		why = append(why, fmt.Sprintf("the rounds' median checks without a prover are %.0f %% apart (%.1f to %.1f ms), more than %.0f %%: the machine is not quiet",
			100*spread, milliseconds(low), milliseconds(high), 100*maxIdleSpread))
	}
	if ratioPlain < least {
		why = append(why, fmt.Sprintf("a plain child slows the median check %.2f times, less than %.1f: nothing to protect checks from, or others had the processors already",
			ratioPlain, least))
	}
	return why
}
