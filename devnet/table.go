package devnet

import (
	"fmt"
	"io"
	"time"
)

// table draws one row a slot, the running slot's row in place where the output is a terminal.
type table struct {
	out     io.Writer
	plain   bool
	started bool
	live    bool // the last line is a live row that the next one overwrites
}

const tableHeader = "slot   covered before interval 4   aggregates   published at          check p50   two thirds at"

func (tb *table) header() {
	if !tb.started {
		tb.started = true
		tb.line(tableHeader)
	}
}

// row draws the state of a slot; final rows stay.
func (tb *table) row(slot uint64, st *slotTally, t *tally, final bool) {
	if !final && tb.plain {
		return
	}
	tb.header()
	mark := " "
	if !t.measured(slot) {
		mark = "w" // warm-up, in no figure
	}
	published := "-"
	if n := len(st.publishedMS); n > 0 {
		p := append([]float64(nil), st.publishedMS...)
		published = ms(percentile(p, 0))
		if n > 1 {
			published += " .. " + ms(percentile(p, 1))
		}
	}
	check := "-"
	if len(st.checkMS) > 0 {
		check = fmt.Sprintf("%.1f ms", percentile(append([]float64(nil), st.checkMS...), 0.5))
	}
	twoThirds := "-"
	if at, ok := st.twoThirdsAt(); ok {
		twoThirds = ms(at)
	}
	covered := st.covered(t.interval(4))
	text := fmt.Sprintf("%4d%s  %3d of %3d  %5.1f%%           %6d       %-20s  %-10s  %s", slot, mark,
		covered, t.validators, 100*float64(covered)/float64(t.validators), st.aggregates, published, check, twoThirds)
	if final {
		tb.line(text)
	} else {
		tb.liveLine(text)
	}
}

func ms(v float64) string { return (time.Duration(v) * time.Millisecond).String() }

// line writes a line that stays.
func (tb *table) line(text string) {
	if tb.live {
		_, _ = fmt.Fprint(tb.out, "\r\033[K")
		tb.live = false
	}
	_, _ = fmt.Fprintln(tb.out, text) // progress only: a closed terminal must not end the run
}

// liveLine writes a line that the next one replaces; nothing where the output is no terminal.
func (tb *table) liveLine(text string) {
	if tb.plain {
		return
	}
	_, _ = fmt.Fprint(tb.out, "\r\033[K"+text)
	tb.live = true
}
