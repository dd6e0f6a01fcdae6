package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// ClassStats is one class at one moment.
type ClassStats struct {
	Class    Class
	Waiting  int // in the queue; parked items aside
	Running  int // on workers
	InFlight int // submitted and without an outcome, parked ones included
	Capacity int
	Oldest   time.Duration // age of the longest waiting item
}

// Stats is the pipeline at one moment, all figures taken together.
type Stats struct {
	Classes            []ClassStats
	Workers, Busy      int
	AggregateBytes     int // queued
	ParkedAttestations int
	ParkedAggregates   int
	ParkedHeads        int
}

// Stats returns the present state. It looks at every waiting item: a few
// microseconds in normal times, for a scrape or a status page.
func (p *Pipeline) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	var waiting [classEnd]int
	var oldest [classEnd]time.Duration
	p.queue.waiting(func(it *Item) {
		waiting[it.Class]++
		oldest[it.Class] = max(oldest[it.Class], now.Sub(it.Arrival))
	})
	s := Stats{
		Workers: p.limits.Workers, Busy: p.queue.busy, AggregateBytes: p.queue.aggregates.bytes,
		ParkedAttestations: p.park.attestations, ParkedAggregates: len(p.park.aggregates), ParkedHeads: len(p.park.heads),
	}
	for _, c := range Classes() {
		s.Classes = append(s.Classes, ClassStats{
			Class: c, Waiting: waiting[c], Running: p.queue.running[c], InFlight: p.inFlight[c],
			Capacity: p.limits.capacity(c), Oldest: oldest[c],
		})
	}

	return s
}

// gauges exports Stats. All figures of one scrape are of one moment, so that
// depth is waiting plus running in each.
type gauges struct {
	p                                                *Pipeline
	length, capacity, running, depth, flight, oldest *prometheus.Desc
	parked, heads, workers, busy, bytes              *prometheus.Desc
}

func newGauges(p *Pipeline) *gauges {
	class := []string{"class"}
	desc := func(name, help string, labels []string) *prometheus.Desc {
		return prometheus.NewDesc("aggnode_pipeline_"+name, help, labels, nil)
	}

	return &gauges{
		p:        p,
		length:   desc("queue_length", "Items that wait for a worker.", class),
		capacity: desc("queue_capacity", "Bound of the class.", class),
		running:  desc("running", "Items on workers.", class),
		depth:    desc("depth", "Items that wait or are on workers.", class),
		flight:   desc("in_flight", "Items without a verdict yet, parked ones included.", class),
		oldest:   desc("oldest_age_seconds", "Age of the longest waiting item.", class),
		parked:   desc("parked", "Items that wait for an unknown block.", []string{"kind"}),
		heads:    desc("parked_heads", "Unknown blocks that votes wait for.", nil),
		workers:  desc("workers", "Verify workers.", nil),
		busy:     desc("workers_busy", "Verify workers that hold something.", nil),
		bytes:    desc("aggregate_queue_bytes", "Bytes of the waiting aggregates.", nil),
	}
}

// Describe is for prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.length, g.capacity, g.running, g.depth, g.flight, g.oldest, g.parked, g.heads, g.workers, g.busy, g.bytes} {
		ch <- d
	}
}

// Collect is for prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	s := g.p.Stats()
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, c := range s.Classes {
		label := c.Class.String()
		send(g.length, float64(c.Waiting), label)
		send(g.capacity, float64(c.Capacity), label)
		send(g.running, float64(c.Running), label)
		send(g.depth, float64(c.Waiting+c.Running), label)
		send(g.flight, float64(c.InFlight), label)
		send(g.oldest, c.Oldest.Seconds(), label)
	}
	send(g.parked, float64(s.ParkedAttestations), "attestation")
	send(g.parked, float64(s.ParkedAggregates), "aggregate")
	send(g.heads, float64(s.ParkedHeads))
	send(g.workers, float64(s.Workers))
	send(g.busy, float64(s.Busy))
	send(g.bytes, float64(s.AggregateBytes))
}

// tally counts how the items of a slot ended, for the log. Guarded by
// Pipeline.mu.
type tally struct {
	slot  wire.Slot
	ended endings
}

// endings counts items by class and reason.
type endings [classEnd][reasonCount]int

// add counts one item.
func (t *tally) add(c Class, r wire.Reason) { t.ended[c][min(int(r), reasonCount-1)]++ }

// take returns and clears the counts once now is a later slot.
func (t *tally) take(now wire.Slot) (slot wire.Slot, ended endings, ok bool) {
	if now <= t.slot {
		return 0, endings{}, false
	}
	slot, ended = t.slot, t.ended
	t.slot, t.ended = now, endings{}

	return slot, ended, true
}

// report writes the line of a slot: at Warn when something was shed, which an
// operator should see, otherwise at Debug.
func (p *Pipeline) report(slot wire.Slot, ended endings) {
	level := slog.LevelDebug
	total := 0
	args := []any{"slot", uint64(slot)}
	for _, c := range Classes() {
		var group []any
		for i, n := range ended[c] {
			if n == 0 {
				continue
			}
			total += n
			r := wire.Reason(i)
			group = append(group, slog.Int(r.String(), n))
			if isShed(r) {
				level = slog.LevelWarn
			}
		}
		if group != nil {
			args = append(args, slog.Group(c.String(), group...))
		}
	}
	if total > 0 {
		p.log.Log(context.Background(), level, "slot verdicts", args...)
	}
}

// isShed tells whether a reason says that this node could not keep up.
func isShed(r wire.Reason) bool {
	switch r {
	case wire.ReasonQueueFull, wire.ReasonEvicted, wire.ReasonExpired, wire.ReasonPoolFull,
		wire.ReasonVerifierUnavailable, wire.ReasonInternalError:
		return true
	default:
		return false
	}
}
