package aggregate

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"aggnode/wire"
)

// Buckets of the shared lean metrics list, to the letter.
var (
	buildingBuckets  = []float64{0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4}
	committeeBuckets = []float64{0.05, 0.1, 0.25, 0.5, 0.75, 1, 2, 3, 4}
	proofSizeBuckets = []float64{1024, 4096, 16384, 65536, 131072, 262144, 524288, 1048576}
	leadBuckets      = []float64{0.075, 0.15, 0.225, 0.3, 0.375, 0.45, 0.525, 0.6}
	inputBuckets     = []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 15}
)

// Fine buckets of our own.
var (
	phaseBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	// handoverBuckets resolve the milliseconds between two steps of a job.
	handoverBuckets = []float64{.001, .002, .003, .005, .0075, .01, .0125, .015, .0175, .02, .0225, .025, .03, .035, .04, .05, .06, .08, .1, .15, .25, .5, 1, 2.5, 5}
	publishBuckets  = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 16, 24}
)

// phase is a part of a job: a metric label.
type phase uint8

const (
	phaseUnknown phase = iota
	phaseSnapshot
	phasePlan
	phaseWait
	phaseProve
	phaseCheck
	phasePublish
	phaseEnd // one past the last phase
)

var phaseCodes = [phaseEnd]string{"unknown", "snapshot", "plan", "wait", "prove", "check", "publish"}

// Reasons of lean_aggregator_skipped_total; the list is closed.
const (
	skippedNotAggregator = "not_aggregator"
	skippedNotSynced     = "not_synced"
	skippedMissingState  = "missing_state"
	skippedSpawnFailed   = "spawn_failed"
	skippedOther         = "other"
)

// severalSubnets is the subnet label of an aggregate over more than one subnet, or over one that is not ours.
const severalSubnets = "several"

// metrics is what an Aggregator counts. Arrays are indexed by the enum that is the label.
type metrics struct {
	aggregates    prometheus.Counter
	attestations  prometheus.Counter
	building      prometheus.Histogram
	committee     prometheus.Histogram
	skipped       map[string]prometheus.Counter
	isAggregator  prometheus.Gauge
	proofSize     prometheus.Histogram
	earlyStarts   prometheus.Counter
	earlyLead     prometheus.Histogram
	jobs          [jobOutcomeEnd]prometheus.Counter
	sessions      [sessionReasonEnd]prometheus.Counter
	triggers      [triggerEnd]prometheus.Counter
	coalesced     prometheus.Counter
	phases        [phaseEnd]prometheus.Observer
	byInput       *prometheus.HistogramVec
	busySeconds   prometheus.Counter
	usefulSeconds prometheus.Counter
	busyRatio     prometheus.Gauge
	toProver      prometheus.Histogram
	toWire        prometheus.Histogram
	publishDelay  prometheus.Histogram
	publishErrors prometheus.Counter
	noPeers       prometheus.Counter
	bySubnet      map[string]prometheus.Counter
	outbox        prometheus.Gauge
	fixedScale    prometheus.Gauge
	rawScale      prometheus.Gauge
	childScale    prometheus.Gauge
	covered       map[string]prometheus.Gauge
}

// registerer adds collectors to a registry and returns them.
type registerer struct{ prometheus.Registerer }

func registererOf(r prometheus.Registerer) registerer {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	return registerer{r}
}

func (r registerer) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func (r registerer) counters(name, help, label string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	r.MustRegister(c)
	return c
}

func (r registerer) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

func (r registerer) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}

func (r registerer) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
}

func newMetrics(reg prometheus.Registerer, subnets []wire.SubnetID) *metrics {
	r := registererOf(reg)
	m := &metrics{
		aggregates:    r.counter("lean_pq_sig_aggregated_signatures_total", "Aggregate proofs that this node produced: checked and published."),
		attestations:  r.counter("lean_pq_sig_attestations_in_aggregated_signatures_total", "Votes covered by the aggregates that this node published."),
		building:      r.histogram("lean_pq_sig_aggregated_signatures_building_time_seconds", "Wall time of producing one aggregate proof.", buildingBuckets),
		committee:     r.histogram("lean_committee_signatures_aggregation_time_seconds", "Wall time of a whole aggregation pass, from its trigger to its publication.", committeeBuckets),
		isAggregator:  r.gauge("lean_is_aggregator", "1 when the node has the aggregator role."),
		proofSize:     r.histogram("lean_aggregated_proof_size_bytes", "Length of the proofs that this node published.", proofSizeBuckets),
		earlyStarts:   r.counter("lean_aggregation_early_starts_total", "Jobs begun before interval 2."),
		earlyLead:     r.histogram("lean_aggregation_early_start_lead_seconds", "How long before interval 2 an early job began.", leadBuckets),
		coalesced:     r.counter("aggnode_aggregation_triggers_coalesced_total", "Triggers that came while a job was running and were folded into its follow-up."),
		byInput:       r.histograms("aggnode_prove_seconds", "Wall time of the prover call, by coarse size of the input.", inputBuckets, "raw", "children"),
		busySeconds:   r.counter("aggnode_prover_busy_seconds_total", "Wall time spent in prover calls, whatever came of them."),
		usefulSeconds: r.counter("aggnode_prover_useful_seconds_total", "Time in which the prover proved, or could have: a job was due and none was being proved, whatever the reason. The busy ratio is aggnode_prover_busy_seconds_total over this."),
		busyRatio:     r.gauge("aggnode_prover_busy_ratio", "Share of the time in which there was something to prove that the prover proved, over the last 16 slots."),
		toProver:      r.histogram("aggnode_quorum_to_prover_seconds", "From the moment a job over the slot's own votes was due, the last vote that it needed verified, to the prover beginning the first such job.", handoverBuckets),
		toWire:        r.histogram("aggnode_proof_to_wire_seconds", "From the prover's answer to the publication of the aggregate, self-check included.", handoverBuckets),
		publishDelay:  r.histogram("aggnode_aggregate_published_delay_seconds", "From the start of its slot to the publication of an own aggregate.", publishBuckets),
		publishErrors: r.counter("aggnode_aggregate_publish_errors_total", "Publications that the network layer refused; they are tried again."),
		noPeers:       r.counter("aggnode_aggregate_published_without_peers_total", "Own aggregates that were published while no peer took the topic."),
		outbox:        r.gauge("aggnode_outbox_length", "Checked aggregates that wait for publication, of at most 16."),
		fixedScale:    r.gauge("aggnode_cost_fixed_scale", "Observed over measured-at-hello time of the fixed part of a job, as the planner uses it."),
		rawScale:      r.gauge("aggnode_cost_raw_scale", "The same for each raw signature."),
		childScale:    r.gauge("aggnode_cost_child_scale", "The same for each child."),
		skipped:       make(map[string]prometheus.Counter),
		bySubnet:      make(map[string]prometheus.Counter),
		covered:       make(map[string]prometheus.Gauge),
	}
	skipped := r.counters("lean_aggregator_skipped_total", "Slots that ended without a proof of ours.", "reason")
	for _, reason := range []string{skippedNotAggregator, skippedNotSynced, skippedMissingState, skippedSpawnFailed, skippedOther} {
		m.skipped[reason] = skipped.WithLabelValues(reason)
	}
	jobs := r.counters("aggnode_jobs_total", "Jobs by outcome.", "outcome")
	for _, o := range JobOutcomes() {
		m.jobs[o] = jobs.WithLabelValues(o.String())
	}
	sessions := r.counters("aggnode_sessions_total", "Slots by what became of them.", "reason")
	for _, s := range SessionReasons() {
		m.sessions[s] = sessions.WithLabelValues(s.String())
	}
	triggers := r.counters("aggnode_aggregation_triggers_total", "Triggers acted on, by kind.", "kind")
	for t := triggerNone + 1; t < triggerEnd; t++ {
		m.triggers[t] = triggers.WithLabelValues(t.String())
	}
	phases := r.histograms("aggnode_job_phase_seconds", "Wall time of the parts of a job.", phaseBuckets, "phase")
	for p := phaseUnknown + 1; p < phaseEnd; p++ {
		m.phases[p] = phases.WithLabelValues(phaseCodes[p])
	}
	bySubnet := r.counters("aggnode_aggregates_published_total", "Own aggregates published, by the subnet that they cover.", "subnet")
	for _, raw := range []int{0, 1, 2, 8, 32, 128, 129} { // one of each coarse size; with children they come as they occur
		m.byInput.WithLabelValues(coarse(raw), coarse(0))
	}
	m.bySubnet[severalSubnets] = bySubnet.WithLabelValues(severalSubnets)
	for _, s := range subnets {
		label := strconv.FormatUint(uint64(s), 10)
		m.bySubnet[label] = bySubnet.WithLabelValues(label)
	}
	covered := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "aggnode_slot_validators", Help: "Validators of our subnets in the last complete slot: expected, with a vote, with a vote or in an aggregate, in the widest aggregate of ours.",
	}, []string{"section"})
	r.MustRegister(covered)
	for _, s := range []string{"expected", "voted", "reached", "proved"} {
		m.covered[s] = covered.WithLabelValues(s)
	}
	return m
}

func (m *metrics) setRole(isAggregator bool) {
	v := 0.0
	if isAggregator {
		v = 1
	}
	m.isAggregator.Set(v)
}

// skip counts a slot without a proof under the shared list's coarse reasons. Nothing of ours is "not_synced" or
// "missing_state": an aggregator needs no state, only the registry.
func (m *metrics) skip(r SessionReason) {
	switch r {
	case SessionProved, SessionUnknown, SessionStillProving:
	case SessionNotAggregator:
		m.skipped[skippedNotAggregator].Inc()
	case SessionProverUnavailable:
		m.skipped[skippedSpawnFailed].Inc()
	case SessionNoVotes, SessionSingleVote, SessionNothingNew, SessionQuarantined, SessionNoTime, SessionProverBusy, SessionFailed:
		m.skipped[skippedOther].Inc()
	}
}

func (m *metrics) early(lead time.Duration) {
	m.earlyStarts.Inc()
	m.earlyLead.Observe(lead.Seconds())
}

func (m *metrics) observePhase(p phase, d time.Duration) { m.phases[p].Observe(d.Seconds()) }

// observeProof counts a prover call.
func (m *metrics) observeProof(p *plan, wall time.Duration, err error) {
	seconds := max(wall.Seconds(), 0)
	m.busySeconds.Add(seconds)
	m.usefulSeconds.Add(seconds)
	m.observePhase(phaseProve, wall)
	if err != nil {
		return
	}
	m.building.Observe(seconds)
	m.byInput.WithLabelValues(coarse(len(p.raw)), coarse(len(p.children))).Observe(seconds)
}

// quorumToProver counts the first job over a slot's own votes.
func (m *metrics) quorumToProver(j *job, accepted time.Time) {
	if j.quorumAt.IsZero() {
		return
	}
	d := accepted.Sub(j.quorumAt)
	m.toProver.Observe(d.Seconds())
	j.session.toProver = d
	j.span.SetAttributes(attribute.Int64("quorum_to_prover_ms", d.Milliseconds()))
}

// coarse is a label from a closed set of seven for a number of inputs.
func coarse(n int) string {
	switch {
	case n <= 2:
		return strconv.Itoa(n)
	case n <= 8:
		return "3-8"
	case n <= 32:
		return "9-32"
	case n <= 128:
		return "33-128"
	}
	return "129+"
}

// published counts an own aggregate that went out.
func (m *metrics) published(j *job, p publication, committees uint64, slotStart time.Time) {
	m.aggregates.Inc()
	m.attestations.Add(float64(j.plan.width))
	m.proofSize.Observe(float64(len(j.pooled.Aggregate.Proof)))
	m.committee.Observe(p.at.Sub(j.began).Seconds())
	m.publishDelay.Observe(p.at.Sub(slotStart).Seconds())
	if p.peers == 0 {
		m.noPeers.Inc()
	}
	c, ok := m.bySubnet[subnetLabel(j.pooled.Aggregate.Participants, committees)]
	if !ok {
		c = m.bySubnet[severalSubnets]
	}
	c.Inc()
}

func subnetLabel(p wire.Participants, committees uint64) string {
	var subnet wire.SubnetID
	isFirst, isSeveral := true, false
	p.ForEach(func(v wire.ValidatorIndex) {
		s := wire.SubnetOf(v, committees)
		isSeveral = isSeveral || !isFirst && s != subnet
		subnet, isFirst = s, false
	})
	if isSeveral {
		return severalSubnets
	}
	return strconv.FormatUint(uint64(subnet), 10)
}

func (m *metrics) coverage(p Progress, s *session) {
	m.covered["expected"].Set(float64(s.watch.expected))
	m.covered["voted"].Set(float64(p.Votes))
	m.covered["reached"].Set(float64(p.Reached))
	m.covered["proved"].Set(float64(s.width))
}
