package signer

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Stages after a vote was signed, the label of aggnode_votes_emit_failed_total.
const (
	stagePublish = "publish"
	stageDeliver = "deliver"
)

// What searches were begun for before the duty, the label of aggnode_votes_searched_early_total.
const (
	earlySame  = "same_data"
	earlyOther = "other_data"
)

// metrics are the metrics of a Signer.
type metrics struct {
	signatures  prometheus.Counter
	signing     prometheus.Histogram
	production  prometheus.Histogram
	validators  prometheus.Gauge
	published   prometheus.Histogram
	refused     *prometheus.CounterVec
	emitFailed  *prometheus.CounterVec
	missed      prometheus.Counter
	noBlock     prometheus.Counter
	early       *prometheus.CounterVec
	warm        prometheus.Histogram
	warmSkipped prometheus.Counter
	warmFailed  prometheus.Counter
}

// newMetrics registers the metrics; a nil registerer keeps them private.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		signatures: counter("lean_pq_sig_attestation_signatures_total", "Votes that this node signed."),
		signing: histogram("lean_pq_sig_attestation_signing_time_seconds", "Duration of one vote signature.",
			[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 1}),
		production: histogram("lean_attestations_production_time_seconds", "Duration of producing a vote, from the duty's start to its signature.",
			[]float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1}),
		validators: prometheus.NewGauge(prometheus.GaugeOpts{Name: "lean_validators_count", Help: "Validators that this node holds keys for."}),
		published: histogram("aggnode_vote_publish_delay_seconds", "Publication of own votes after the start of interval 1.",
			[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.4, 4, 8}),
		refused:    vec("aggnode_signer_refused_total", "Signatures that a key did not make, by role and reason.", "role", "reason"),
		emitFailed: vec("aggnode_votes_emit_failed_total", "Own votes that could not be sent, or that our own pipeline did not take.", "stage"),
		missed:     counter("aggnode_votes_missed_slots_total", "Slots in which this node was too late to vote."),
		noBlock:    counter("aggnode_votes_without_block_total", "Votes made before the slot's block was known."),
		early:      vec("aggnode_votes_searched_early_total", "Slots whose signatures were searched for before the duty, by whether it then voted for the same data.", "data"),
		warm: histogram("aggnode_keys_warm_seconds", "Duration of preparing the keys for a slot.",
			[]float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}),
		warmSkipped: counter("aggnode_keys_warm_skipped_total", "Preparations left out because the one before still ran."),
		warmFailed:  counter("aggnode_keys_warm_failed_total", "Keys that could not be prepared."),
	}
	for _, r := range Refusals() {
		m.refused.WithLabelValues(roleAttestation.String(), r.String())
		m.refused.WithLabelValues(roleProposal.String(), r.String())
	}
	m.early.WithLabelValues(earlySame)
	m.early.WithLabelValues(earlyOther)
	m.emitFailed.WithLabelValues(stagePublish)
	m.emitFailed.WithLabelValues(stageDeliver)
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	for _, c := range []prometheus.Collector{
		m.signatures, m.signing, m.production, m.validators, m.published, m.refused, m.emitFailed,
		m.missed, m.noBlock, m.early, m.warm, m.warmSkipped, m.warmFailed,
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of the signer: %w", err)
		}
	}

	return m, nil
}

// refuse counts a refusal.
func (m *metrics) refuse(r role, err error) {
	refusal := RefusedInternal
	if refused, ok := errors.AsType[*Refused](err); ok {
		refusal = refused.Refusal
	}
	m.refused.WithLabelValues(r.String(), refusal.String()).Inc()
}
