package telemetry

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// floodPeriod and floodLines bound identical warnings and errors: 20 a minute are enough to see that something
	// goes on. A guess, not measured; packages hold back their own repeated warnings far earlier.
	floodPeriod = time.Minute
	floodLines  = 20
	// floodKeys bounds the table. Messages are constants of the program, some hundred in all.
	floodKeys = 1024
)

// floodKey identifies "the same line": attributes do not count.
type floodKey struct {
	component string
	message   string
	level     slog.Level
}

// floodGuard is the net under the rate limits of the packages: whatever goes wrong, the log stays readable.
type floodGuard struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[floodKey]*floodWindow // guarded by mu
}

type floodWindow struct {
	start      time.Time
	written    int
	suppressed uint64
}

func newFloodGuard(now func() time.Time) *floodGuard {
	return &floodGuard{now: now, lines: make(map[floodKey]*floodWindow)}
}

// allow reports whether a line may be written, and how many were held back since the last one that was.
func (g *floodGuard) allow(key floodKey) (ok bool, suppressed uint64) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.lines[key]
	if w == nil {
		if len(g.lines) >= floodKeys {
			g.forgetLocked(now)
		}
		w = &floodWindow{start: now}
		g.lines[key] = w
	}
	if now.Sub(w.start) >= floodPeriod {
		suppressed = w.suppressed
		*w = floodWindow{start: now}
	}
	if w.written >= floodLines {
		w.suppressed++
		return false, 0
	}
	w.written++
	return true, suppressed
}

// forgetLocked drops finished windows, or all of them when none is finished: a full table must not grow.
func (g *floodGuard) forgetLocked(now time.Time) {
	for key, w := range g.lines {
		if now.Sub(w.start) >= floodPeriod {
			delete(g.lines, key)
		}
	}
	if len(g.lines) >= floodKeys {
		clear(g.lines)
	}
}
