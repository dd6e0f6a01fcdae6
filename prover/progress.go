package prover

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeatEvery keeps a terminal from being silent for more than two seconds.
const heartbeatEvery = 1900 * time.Millisecond

// progressWriter prints lines for a person. Safe for concurrent use; a nil writer prints nothing.
type progressWriter struct {
	mu   sync.Mutex
	w    io.Writer // guarded by mu
	last time.Time // guarded by mu: of the last line
}

func newProgress(w io.Writer) *progressWriter {
	if w == nil {
		w = io.Discard
	}
	return &progressWriter{w: w, last: time.Now()}
}

func (p *progressWriter) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// heartbeat prints what with the seconds so far whenever nothing else was printed for heartbeatEvery, until stop is
// called; stop waits for its goroutine.
func (p *progressWriter) heartbeat(what string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(heartbeatEvery / 8)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				p.mu.Lock()
				isSilent := now.Sub(p.last) >= heartbeatEvery
				p.mu.Unlock()
				if isSilent {
					p.line("%s (%.0f s)", what, now.Sub(began).Seconds())
				}
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}
