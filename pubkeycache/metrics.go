package pubkeycache

import "github.com/prometheus/client_golang/prometheus"

// metrics counts lookups. hit + miss + coalesced = lookups that got an answer.
type metrics struct {
	signerSets lookups
	uppers     lookups
}

type lookups struct {
	hit, miss, coalesced prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, c *Cache) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_cache_lookups_total",
		Help: "Lookups of signer sets and of verified upper parts of keys: hit, miss, or coalesced with a build that another worker was running.",
	}, []string{"cache", "outcome"})
	gauge := func(name, help, cache string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"cache": cache},
		}, value)
	}
	const (
		entries, entriesHelp   = "aggnode_cache_entries", "Entries in the cache."
		capacity, capacityHelp = "aggnode_cache_capacity", "Entries that the cache holds at most."
	)
	reg.MustRegister(
		total,
		gauge(entries, entriesHelp, "signer_set", func() float64 { return float64(c.Stats().SignerSets) }),
		gauge(entries, entriesHelp, "upper", func() float64 { return float64(c.Stats().Uppers) }),
		gauge(capacity, capacityHelp, "signer_set", func() float64 { return float64(c.Stats().SignerSetsMax) }),
		gauge(capacity, capacityHelp, "upper", func() float64 { return float64(c.Stats().UppersMax) }),
	)
	return &metrics{
		signerSets: lookups{
			hit:       total.WithLabelValues("signer_set", "hit"),
			miss:      total.WithLabelValues("signer_set", "miss"),
			coalesced: total.WithLabelValues("signer_set", "coalesced"),
		},
		uppers: lookups{
			hit:  total.WithLabelValues("upper", "hit"),
			miss: total.WithLabelValues("upper", "miss"),
		},
	}
}
