package p2p

import (
	"sync"
	"time"
)

// gate counts the handlers of peers' bytes that are at work, and lets Run wait
// for them after it has let the last one in.
type gate struct {
	mu sync.Mutex
	// guarded by mu
	isClosed bool
	inside   int
	// idle is closed when the gate is closed and nobody is inside.
	idle chan struct{}
}

func newGate() *gate { return &gate{idle: make(chan struct{})} }

// enter reports whether the handler may work; it must call leave then.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed {
		return false
	}
	g.inside++

	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.isClosed && g.inside == 0 {
		close(g.idle)
	}
}

// close refuses everyone from now on. The channel that it returns is closed when
// the last one has left. It may be called again.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isClosed {
		g.isClosed = true
		if g.inside == 0 {
			close(g.idle)
		}
	}

	return g.idle
}

// maxLogKeys bounds the memory of a logLimiter; beyond it everything is silent
// until old keys have expired.
const maxLogKeys = 1024

// logLimiter lets one line a key through in a period.
type logLimiter struct {
	mu sync.Mutex
	// guarded by mu
	until map[string]time.Time
}

func newLogLimiter() *logLimiter { return &logLimiter{until: make(map[string]time.Time)} }

// allow reports whether the line of this key may be written now.
func (l *logLimiter) allow(key string, now time.Time, period time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until[key]) {
		return false
	}
	if len(l.until) >= maxLogKeys {
		for k, t := range l.until {
			if !now.Before(t) {
				delete(l.until, k)
			}
		}
		if len(l.until) >= maxLogKeys {
			return false
		}
	}
	l.until[key] = now.Add(period)

	return true
}
