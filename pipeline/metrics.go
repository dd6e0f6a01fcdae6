package pipeline

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// Buckets of the shared metrics are those of the leanMetrics list; the others
// cover a queue wait of 50 us to the 2 slots after which nothing waits.
var (
	waitBuckets       = []float64{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16}
	batchBuckets      = []float64{1, 2, 4, 8, 12, 16}
	validationBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 1}
	arrivalBuckets    = []float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.4, 4, 8, 16}
	sizeBuckets       = map[Class][]float64{
		ClassBlock:       {10000, 50000, 100000, 250000, 500000, 1000000, 2000000, 5000000},
		ClassAttestation: {512, 1024, 2048, 4096, 8192, 16384},
		ClassAggregate:   {1024, 4096, 16384, 65536, 131072, 262144, 524288, 1048576},
	}
)

// reasonCount is one more than the largest reason.
const reasonCount = int(wire.ReasonUnverified) + 1

// metrics are the exported figures. Handles are looked up once, the hot path
// indexes arrays.
type metrics struct {
	received       [classEnd]prometheus.Counter
	ended          [classEnd][reasonCount]prometheus.Counter
	wait           [classEnd]*times
	verdictTime    [classEnd]*times
	size           [classEnd]prometheus.Observer
	late           [classEnd]prometheus.Counter
	batch          prometheus.Histogram
	aggregateBatch prometheus.Histogram
	republished    prometheus.Counter

	validAttestations   prometheus.Counter
	invalidAttestations prometheus.Counter
	validationTime      *times

	attestationArrival, aggregateArrival, blockArrival arrival
}

// arrival measures when messages come, relative to the time that is theirs.
type arrival struct {
	delay                 *times
	before, inside, after prometheus.Counter
}

// observeLocked records an arrival d after the due interval began.
func (a *arrival) observeLocked(d, interval time.Duration) {
	a.delay.observeLocked(d.Abs())
	switch {
	case d < 0:
		a.before.Inc()
	case d < interval:
		a.inside.Inc()
	default:
		a.after.Inc()
	}
}

func newMetrics(reg prometheus.Registerer, p *Pipeline) (*metrics, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := &metrics{
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aggnode_pipeline_batch_size", Help: "Votes whose signatures were checked in one call.", Buckets: batchBuckets,
		}),
		aggregateBatch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aggnode_pipeline_aggregate_batch_size", Help: "Aggregates whose proofs were checked in one call.", Buckets: batchBuckets[:4],
		}),
		republished: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_pipeline_republished_total", Help: "Items published again because their block came after their verdict.",
		}),
		validAttestations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lean_attestations_valid_total", Help: "Votes whose data checks passed.",
		}),
		invalidAttestations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lean_attestations_invalid_total", Help: "Votes whose data checks failed.",
		}),
		validationTime: newTimes(prometheus.NewDesc(
			"lean_attestation_validation_time_seconds", "Duration of the checks of a vote other than its signature.", nil, nil), validationBuckets),
	}
	received := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_pipeline_received_total", Help: "Items received. Equals the verdicts plus those in flight.",
	}, []string{"class"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_pipeline_verdicts_total", Help: "Items that got their verdict, by the one reason of each.",
	}, []string{"class", "verdict", "reason"})
	wait := prometheus.NewDesc("aggnode_pipeline_wait_seconds", "Time from arrival until a worker takes the item.", []string{"class"}, nil)
	verdict := prometheus.NewDesc(
		"aggnode_pipeline_verdict_seconds", "Time from arrival to verdict of submitted items, queue included.", []string{"class"}, nil)
	histograms := &timesCollector{mu: &p.mu, all: []*times{m.validationTime}}
	late := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_pipeline_late_total", Help: "Items that reached the pool after their verdict had to be given.",
	}, []string{"class"})
	for _, c := range Classes() {
		m.received[c] = received.WithLabelValues(c.String())
		m.wait[c] = newTimes(wait, waitBuckets, c.String())
		m.verdictTime[c] = newTimes(verdict, waitBuckets, c.String())
		histograms.all = append(histograms.all, m.wait[c], m.verdictTime[c])
		m.late[c] = late.WithLabelValues(c.String())
		for r := range reasonCount {
			reason := wire.Reason(r)
			m.ended[c][r] = ended.WithLabelValues(c.String(), VerdictOf(reason).String(), reason.String())
		}
	}
	all := []prometheus.Collector{
		m.batch, m.aggregateBatch, m.republished, m.validAttestations, m.invalidAttestations,
		received, ended, late, newGauges(p),
	}
	for c, name := range map[Class]string{ClassBlock: "block", ClassAttestation: "attestation", ClassAggregate: "aggregation"} {
		size := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lean_gossip_" + name + "_size_bytes", Help: "Size of gossip " + name + " messages, uncompressed.", Buckets: sizeBuckets[c],
		})
		m.size[c] = size
		all = append(all, size)
	}
	for _, a := range []struct {
		to        *arrival
		name, due string
		early     bool // whether one that comes before its interval is told apart
	}{
		{&m.attestationArrival, "attestation", "interval 1 of its slot", true},
		{&m.aggregateArrival, "aggregation", "interval 2 of its slot", false},
		{&m.blockArrival, "block", "the start of its slot", true},
	} {
		a.to.delay = newTimes(prometheus.NewDesc("lean_gossip_"+a.name+"_arrival_delay_seconds",
			"Distance between arrival of a gossip "+a.name+" and "+a.due+".", nil, nil), arrivalBuckets)
		histograms.all = append(histograms.all, a.to.delay)
		position := prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lean_gossip_" + a.name + "_arrival_total", Help: "Gossip " + a.name + " messages by arrival relative to their interval.",
		}, []string{"position"})
		a.to.inside, a.to.after = position.WithLabelValues("inside"), position.WithLabelValues("after")
		a.to.before = a.to.inside
		if a.early {
			a.to.before = position.WithLabelValues("before")
		}
		all = append(all, position)
	}
	all = append(all, histograms)
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}

	return m, nil
}

// end counts the one reason of an item.
func (m *metrics) end(c Class, r wire.Reason) {
	m.ended[c][min(int(r), reasonCount-1)].Inc()
	if c == ClassAttestation {
		switch r {
		case wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator, wire.ReasonBadCheckpoints:
			m.invalidAttestations.Inc()
		default: // a bad signature has a counter of its own, the rest is no fault of the data
		}
	}
}
