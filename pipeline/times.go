package pipeline

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// times is a histogram of durations, in the exported form of the library's. That
// one takes several atomic operations for an observation, and a vote makes four
// where the lock of the pipeline is held anyway: here they are additions. It is
// registered through timesCollector.
type times struct {
	desc   *prometheus.Desc
	labels []string        // values
	bounds []time.Duration // upper, ascending; immutable

	// guarded by Pipeline.mu
	counts []uint64 // of the buckets; the last one is that beyond the bounds
	sum    time.Duration
}

// newTimes returns an empty histogram with buckets in seconds, which ascend.
func newTimes(desc *prometheus.Desc, buckets []float64, labels ...string) *times {
	h := &times{desc: desc, labels: labels, counts: make([]uint64, len(buckets)+1)}
	for _, b := range buckets {
		h.bounds = append(h.bounds, time.Duration(math.Round(b*float64(time.Second))))
	}

	return h
}

// observeLocked counts a duration in the first bucket whose bound is not below it.
func (h *times) observeLocked(d time.Duration) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += d
}

// metricLocked returns the state as a metric.
func (h *times) metricLocked() prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.bounds))
	var n uint64
	for i, bound := range h.bounds {
		n += h.counts[i]
		buckets[bound.Seconds()] = n
	}

	return prometheus.MustNewConstHistogram(h.desc, n+h.counts[len(h.bounds)], h.sum.Seconds(), buckets, h.labels...)
}

// timesCollector exports histograms, all as of one moment.
type timesCollector struct {
	mu  *sync.Mutex // that of the pipeline
	all []*times    // immutable
}

// Describe is for prometheus.Collector.
func (c *timesCollector) Describe(ch chan<- *prometheus.Desc) {
	seen := make(map[*prometheus.Desc]bool, len(c.all))
	for _, h := range c.all {
		if !seen[h.desc] {
			ch <- h.desc
			seen[h.desc] = true
		}
	}
}

// Collect is for prometheus.Collector.
func (c *timesCollector) Collect(ch chan<- prometheus.Metric) {
	metrics := make([]prometheus.Metric, len(c.all))
	c.mu.Lock()
	for i, h := range c.all {
		metrics[i] = h.metricLocked()
	}
	c.mu.Unlock()
	for _, m := range metrics { // whoever collects may be slow: not with the lock held
		ch <- m
	}
}
