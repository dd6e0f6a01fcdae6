package aggregate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var refusalCodes = [...]string{
	kept: "kept", refusedWindow: "outside_window", refusedDuplicate: "duplicate", refusedUnknown: "unknown_validator", refusedFull: "evicted",
}

// poolMetrics is what a Pool counts. Gauges are set by the owner goroutine after each batch and at each boundary.
type poolMetrics struct {
	loose, pending, known              prometheus.Gauge
	rawVotes, rawBytes                 prometheus.Gauge
	aggregates, aggregateBytes         prometheus.Gauge
	inbox                              prometheus.Gauge
	full                               prometheus.Counter
	votes, merges                      [len(refusalCodes)]prometheus.Counter
	evictedRaw, evictedMerge, replaced prometheus.Counter

	sawRaw, sawMerge, sawReplaced uint64 // what the counters stand at; owned by Run
}

func newPoolMetrics(reg prometheus.Registerer) *poolMetrics {
	r := registererOf(reg)
	m := &poolMetrics{
		loose:          r.gauge("lean_gossip_signatures", "Raw votes held that no aggregate covers."),
		pending:        r.gauge("lean_latest_new_aggregated_payloads", "Aggregates accepted since the last interval 4."),
		known:          r.gauge("lean_latest_known_aggregated_payloads", "Aggregates accepted before the last interval 4 and still held."),
		rawVotes:       r.gauge("aggnode_pool_raw_votes", "Raw votes held."),
		rawBytes:       r.gauge("aggnode_pool_raw_bytes", "Bytes of the signatures held."),
		aggregates:     r.gauge("aggnode_pool_aggregates", "Aggregates held."),
		aggregateBytes: r.gauge("aggnode_pool_aggregate_bytes", "Bytes of the proofs held."),
		inbox:          r.gauge("aggnode_pool_inbox_length", "Verified items that wait for the pool, of at most 1024."),
		full:           r.counter("aggnode_pool_full_total", "Verified items dropped because the inbox stayed full for 5 ms. Should be zero."),
		replaced:       r.counter("aggnode_pool_dominated_total", "Aggregates dropped because a wider one has all their participants."),
	}
	votes := r.counters("aggnode_pool_votes_total", "Verified votes that reached the pool, by what became of them.", "outcome")
	merges := r.counters("aggnode_pool_aggregates_total", "Verified aggregates that reached the pool, by what became of them.", "outcome")
	for i, code := range refusalCodes {
		m.votes[i] = votes.WithLabelValues(code)
		m.merges[i] = merges.WithLabelValues(code)
	}
	evicted := r.counters("aggnode_pool_evicted_total", "Items that lost their place to newer slots, by kind.", "kind")
	m.evictedRaw, m.evictedMerge = evicted.WithLabelValues("vote"), evicted.WithLabelValues("aggregate")
	return m
}

// observe sets the gauges from the book.
func (m *poolMetrics) observe(b *book, c clock, waiting int) {
	loose, pending := 0, 0
	since := lastPromotion(c)
	for _, h := range b.slots {
		for _, g := range h.groups {
			loose += g.loose
			for _, p := range g.aggregates {
				if !p.Added.Before(since) {
					pending++
				}
			}
		}
	}
	m.loose.Set(float64(loose))
	m.pending.Set(float64(pending))
	m.known.Set(float64(b.aggregates - pending))
	m.rawVotes.Set(float64(b.rawVotes))
	m.rawBytes.Set(float64(b.rawBytes))
	m.aggregates.Set(float64(b.aggregates))
	m.aggregateBytes.Set(float64(b.aggregateBytes))
	m.inbox.Set(float64(waiting))
	m.evictedRaw.Add(float64(b.evictedRaw - m.sawRaw))
	m.evictedMerge.Add(float64(b.evictedMerges - m.sawMerge))
	m.replaced.Add(float64(b.dominated - m.sawReplaced))
	m.sawRaw, m.sawMerge, m.sawReplaced = b.evictedRaw, b.evictedMerges, b.dominated
}

// lastPromotion is the last start of an interval 4, when nodes move what they accepted to what they count
// (leanSpec timeline.py); the zero time before the first.
func lastPromotion(c clock) time.Time {
	now, slot := c.Now(), c.Slot()
	switch t := c.IntervalStart(slot, 4); {
	case !now.Before(t):
		return t
	case slot == 0:
		return time.Time{}
	}
	return c.IntervalStart(slot-1, 4)
}
