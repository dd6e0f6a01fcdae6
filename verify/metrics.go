package verify

import (
	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// Bucket edges in seconds. The shared ones are those of leanMetrics and must not change: dashboards add the histograms of
// all clients. They start above what a check takes here, so each has a fine one of our own beside it.
var (
	sharedAttestationBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 1}
	sharedAggregateBuckets   = []float64{0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4}

	// A blake2s vote takes 2 us (many lanes) to 0.1 ms, a Poseidon one up to 5 ms.
	signatureBuckets = []float64{2e-6, 5e-6, 1e-5, 2e-5, 3e-5, 4e-5, 5e-5, 7e-5, 1e-4, 1.5e-4, 2e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.05, 0.25, 1}

	// An aggregate takes 2 ms (natively) to 160 ms (older lines in a child); a call is given up after 2 s from its start.
	proofBuckets = []float64{
		0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06,
		0.08, 0.1, 0.125, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 4, 8, 16,
	}

	batchBuckets = []float64{1, 2, 4, 8, 12, 16}
)

// Reasons that each kind of check can end with; their series exist from the start.
var (
	signatureReasons = []wire.Reason{
		wire.ReasonNone, wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator,
		wire.ReasonBadSignature, wire.ReasonEarly, wire.ReasonExpired, wire.ReasonStopping,
	}
	aggregateReasons = []wire.Reason{
		wire.ReasonNone, wire.ReasonMalformed, wire.ReasonSchemeMismatch, wire.ReasonUnknownValidator,
		wire.ReasonEmptyParticipants, wire.ReasonBadProof, wire.ReasonClaimMismatch, wire.ReasonEarly, wire.ReasonExpired,
		wire.ReasonStopping, wire.ReasonVerifierUnavailable, wire.ReasonInternalError, wire.ReasonUnverified,
	}
)

// metrics of the checks. For each kind the reasons add up to the items that were handed in.
type metrics struct {
	attestation, block kindMetrics
	aggregate          reasonCounters

	attestationsValid, attestationsInvalid prometheus.Counter
	aggregatesValid, aggregatesInvalid     prometheus.Counter

	aggregateShared                          prometheus.Observer
	aggregateProverIdle, aggregateProverBusy prometheus.Observer
}

// kindMetrics are those of one kind of signature check.
type kindMetrics struct {
	reasonCounters
	fine   prometheus.Observer
	shared prometheus.Observer // nil where leanMetrics has no histogram
	batch  prometheus.Observer
}

func (k *kindMetrics) observe(seconds float64) {
	k.fine.Observe(seconds)
	if k.shared != nil {
		k.shared.Observe(seconds)
	}
}

// reasonCounters is indexed by wire.Reason; entries that a kind never uses are nil.
type reasonCounters []prometheus.Counter

func (c reasonCounters) count(r wire.Reason) { c[r].Inc() }

func (c reasonCounters) countAll(reasons []wire.Reason) {
	for _, r := range reasons {
		c[r].Inc()
	}
}

func (m *metrics) observeAggregate(seconds float64, proverBusy bool) {
	m.aggregateShared.Observe(seconds)
	if proverBusy {
		m.aggregateProverBusy.Observe(seconds)
	} else {
		m.aggregateProverIdle.Observe(seconds)
	}
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aggnode_verify_results_total",
		Help: "Checks by kind and reason; the reason none means valid.",
	}, []string{"kind", "reason"})
	signatures := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "aggnode_signature_check_seconds",
		Help:    "Time of one signature check; within a batch, the batch's time divided by its size.",
		Buckets: signatureBuckets,
	}, []string{"kind"})
	batches := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "aggnode_signature_check_batch_size",
		Help:    "Signatures checked in one batch.",
		Buckets: batchBuckets,
	}, []string{"kind"})
	aggregates := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "aggnode_aggregate_check_seconds",
		Help: "Time of one proof check, from hand-over to the checker's answer, by whether our prover was at work when it began.",
		// The native histogram resolves the ratio between idle and busy without regard to the edges below.
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
		Buckets:                        proofBuckets,
	}, []string{"prover"})
	sharedAttestation := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "lean_pq_sig_attestation_verification_time_seconds",
		Help:    "Time of one check of a vote's signature.",
		Buckets: sharedAttestationBuckets,
	})
	sharedAggregate := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "lean_pq_sig_aggregated_signatures_verification_time_seconds",
		Help:    "Time of one check of an aggregate's proof.",
		Buckets: sharedAggregateBuckets,
	})
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	reg.MustRegister(results, signatures, batches, aggregates, sharedAttestation, sharedAggregate)
	reasons := func(kind string, of []wire.Reason) reasonCounters {
		c := make(reasonCounters, len(wire.Reasons())+1)
		for _, r := range of {
			c[r] = results.WithLabelValues(kind, r.String())
		}
		return c
	}
	return &metrics{
		attestation: kindMetrics{
			reasonCounters: reasons("attestation", signatureReasons),
			fine:           signatures.WithLabelValues("attestation"),
			shared:         sharedAttestation,
			batch:          batches.WithLabelValues("attestation"),
		},
		block: kindMetrics{
			reasonCounters: reasons("block", signatureReasons),
			fine:           signatures.WithLabelValues("block"),
			batch:          batches.WithLabelValues("block"),
		},
		aggregate:           reasons("aggregate", aggregateReasons),
		attestationsValid:   counter("lean_pq_sig_attestation_signatures_valid_total", "Signatures of single votes that verified."),
		attestationsInvalid: counter("lean_pq_sig_attestation_signatures_invalid_total", "Signatures of single votes that did not verify."),
		aggregatesValid:     counter("lean_pq_sig_aggregated_signatures_valid_total", "Proofs of aggregates that verified."),
		aggregatesInvalid:   counter("lean_pq_sig_aggregated_signatures_invalid_total", "Proofs of aggregates that did not verify."),
		aggregateShared:     sharedAggregate,
		aggregateProverIdle: aggregates.WithLabelValues("idle"),
		aggregateProverBusy: aggregates.WithLabelValues("busy"),
	}
}

// The judges, as a metric label.
const (
	judgeNative = iota
	judgeChild
	judges
)

// arbiterMetrics are those of an Arbiter.
type arbiterMetrics struct {
	checks                     [judges]prometheus.Observer
	native                     prometheus.Gauge
	comparisons, disagreements prometheus.Counter
}

func newArbiterMetrics(reg prometheus.Registerer) *arbiterMetrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	checks := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "aggnode_proof_check_seconds",
		Help:    "Time of one proof check where it was made, by who made it; comparisons of both are in both.",
		Buckets: proofBuckets,
	}, []string{"verifier"})
	m := &arbiterMetrics{
		checks: [judges]prometheus.Observer{checks.WithLabelValues("native"), checks.WithLabelValues("child")},
		native: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aggnode_verifier_native",
			Help: "1 while proofs are checked in this process, 0 while a verifier child does.",
		}),
		comparisons: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_verifier_comparisons_total",
			Help: "Proofs that both the native check and the verifier child gave a verdict on.",
		}),
		disagreements: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aggnode_verifier_disagreements_total",
			Help: "Comparisons whose verdicts differed; after the first one the child checks.",
		}),
	}
	reg.MustRegister(checks, m.native, m.comparisons, m.disagreements)
	return m
}
