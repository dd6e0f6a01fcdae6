package verify

import (
	"log/slog"
	"sync"
	"time"

	"aggnode/wire"
)

// noticePeriod is the time between two lines of one kind. Peers can cause these events at will, so each line also says
// how many it stands for.
const noticePeriod = time.Minute

// notice writes the warnings that need a person: peers of another signature scheme (either they or we run the wrong
// release), and a checker that gives no answers.
type notice struct {
	logger  *slog.Logger
	profile *wire.Profile

	mu       sync.Mutex
	mismatch held // guarded by mu
	checker  held // guarded by mu
}

// held counts events between two lines.
type held struct {
	last   time.Time
	events int
}

// due counts an event; it returns how many to report now, 0 for none.
func (h *held) due(now time.Time) int {
	h.events++
	if !h.last.IsZero() && now.Sub(h.last) < noticePeriod {
		return 0
	}
	n := h.events
	h.last, h.events = now, 0
	return n
}

func newNotice(logger *slog.Logger, profile *wire.Profile) *notice {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &notice{logger: logger, profile: profile}
}

// schemeMismatch reports a signature or proof of another known scheme; size is its length in bytes.
func (n *notice) schemeMismatch(what string, size int) {
	if events := n.due(&n.mismatch); events > 0 {
		n.logger.Warn("peers use another signature scheme: they or this node run the wrong release or profile",
			"profile", n.profile.Name, "scheme", n.profile.Scheme, "signature_bytes", n.profile.SignatureSize,
			"last", what, "last_bytes", size, "events", events)
	}
}

func (n *notice) unavailable(err error) {
	if events := n.due(&n.checker); events > 0 {
		n.logger.Warn("aggregates not checked: no answer from the proof checker", "events", events, "error", err)
	}
}

func (n *notice) due(h *held) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return h.due(time.Now())
}
