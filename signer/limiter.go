package signer

import (
	"sync"
	"time"
)

// warnEvery is the least time between two log lines of one kind.
const warnEvery = time.Minute

// limiter lets one event pass per warnEvery. Safe for concurrent use.
type limiter struct {
	mu   sync.Mutex
	last time.Time // guarded by mu
}

// allow reports whether the event may pass now, and notes that it does.
func (l *limiter) allow(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < warnEvery {
		return false
	}
	l.last = now

	return true
}
