package bench

import (
	"time"

	"aggnode/wire"
)

// IsolationReport is the outcome. Its exported fields are the JSON, whose names are relied on by scripts. Ratios are of
// aggregate checks one at a time, pooled over the rounds; all times are in milliseconds and from arrival to verdict.
type IsolationReport struct {
	RatioP50          float64 `json:"ratio_p50"`            // under the budget over prover absent
	RatioP99          float64 `json:"ratio_p99"`            // the same of the 99th percentile
	RatioPlainP50     float64 `json:"ratio_plain_p50"`      // plain child over prover absent
	RatioInProcessP50 float64 `json:"ratio_in_process_p50"` // hashing in this process over prover absent
	ProofsRatio       float64 `json:"proofs_ratio"`         // proofs a second under the budget over those of the plain child, whole phases
	Conclusive        bool    `json:"conclusive"`

	// How proofs were checked, and what that does to the median check while nobody proves.
	Verifier   string  `json:"verifier"`            // native or child, of all figures but those of the other way
	NativeMS   float64 `json:"check_native_ms_p50"` //
	ChildMS    float64 `json:"check_child_ms_p50"`
	RatioCheck float64 `json:"check_native_over_child_p50"`

	Tier     string `json:"tier"`      // placement in force
	RealTime bool   `json:"real_time"` // this process ran at real-time priority, but for the phases of the plain child and the hashing
	CPUModel string `json:"cpu_model"`
	Cores    int    `json:"cores"` // that this process may use

	Votes  VotesRatio `json:"votes"`
	Phases []Phase    `json:"phases"`

	doubts []string
	pooled []pooled // one for each kind
}

// VotesRatio compares votes under the budget with those without a prover, beside aggregates one at a time.
type VotesRatio struct {
	RatioP50   float64 `json:"ratio_p50"`
	P99AddedMS float64 `json:"p99_added_ms"`
}

// Phase is one kind of proving in one round.
type Phase struct {
	Round  int  `json:"round"`
	Kind   Kind `json:"kind"`
	Single Part `json:"single"` // aggregates one at a time
	Burst  Part `json:"burst"`  // aggregates in bursts of 10
}

// Part is one pattern of traffic.
type Part struct {
	Seconds float64 `json:"seconds"` // from the first message to the last verdict
	Latency
	ChecksPerSecond float64        `json:"checks_per_second"`
	Late            int            `json:"late"` // checks that waited for the one before
	DropReasons     map[string]int `json:"drop_reasons,omitempty"`
	StageMS         StageMS        `json:"stage_ms"`
	Votes           Latency        `json:"votes"`
	CPUSeconds      CPUSeconds     `json:"cpu_seconds"`
	CollectorCPU    float64        `json:"gc_cpu_s"`        // of the node's seconds: the garbage collector, as of its last round
	Proofs          float64        `json:"proofs"`          // a proof half of which was made in this part counts half
	DispatchP99MS   float64        `json:"dispatch_p99_ms"` // from when a vote was due until it was sent: in no latency
}

// Latency is the distribution of the accepted messages.
type Latency struct {
	Checks int     `json:"checks"`
	Drops  int     `json:"drops"` // not accepted
	P50MS  float64 `json:"p50_ms"`
	P90MS  float64 `json:"p90_ms"`
	P99MS  float64 `json:"p99_ms"`
	MaxMS  float64 `json:"max_ms"`
}

// StageMS is where the mean check of an aggregate spends its time.
type StageMS struct {
	Queue     float64 `json:"queue"`      // submitted until a worker has it
	Decode    float64 `json:"decode"`     // decompression and Screen
	SignerSet float64 `json:"signer_set"` // on the worker, until the proof goes to who checks it
	Pipe      float64 `json:"pipe"`       // the rest of the call to the child: frames, pipes, waiting for its thread; natively nothing
	Check     float64 `json:"check"`      // wall time of the check where it is made
}

// CPUSeconds is processor time.
type CPUSeconds struct {
	Node     float64 `json:"node"` // this process, the hashing in it included
	Verifier float64 `json:"verifier"`
	Prover   float64 `json:"prover"`
}

// machine is what the figures are of.
type machine struct {
	tier, cpuModel string
	realTime       bool // this process ran at real-time priority
	cores          int
	verifier       string // who checks
}

// pooled are the ascending latencies of one kind over all rounds.
type pooled struct {
	kind                 Kind
	single, burst, votes []time.Duration // votes are those beside single aggregates
	proofs, seconds      float64         // of whole phases
	singles, bursts      Part            // sums and means over the rounds
}

// Doubts says why the measurement is not conclusive; empty where it is.
func (r *IsolationReport) Doubts() []string { return r.doubts }

// newIsolationReport pools the phases.
func newIsolationReport(all []*phase, m machine) *IsolationReport {
	r := &IsolationReport{Verifier: m.verifier, Tier: m.tier, RealTime: m.realTime, CPUModel: m.cpuModel, Cores: m.cores, Phases: []Phase{}}
	for _, p := range all {
		r.Phases = append(r.Phases, p.summary())
	}
	for _, k := range Kinds() {
		r.pooled = append(r.pooled, poolKind(k, all))
	}
	absent, budget, plain, inside, other := &r.pooled[0], &r.pooled[1], &r.pooled[2], &r.pooled[3], &r.pooled[4]
	r.RatioP50 = ratio(at(budget.single, 0.5), at(absent.single, 0.5))
	r.RatioP99 = ratio(at(budget.single, 0.99), at(absent.single, 0.99))
	r.RatioPlainP50 = ratio(at(plain.single, 0.5), at(absent.single, 0.5))
	r.RatioInProcessP50 = ratio(at(inside.single, 0.5), at(absent.single, 0.5))
	r.NativeMS, r.ChildMS = absent.singles.P50MS, other.singles.P50MS
	if m.verifier == checkChild {
		r.NativeMS, r.ChildMS = r.ChildMS, r.NativeMS
	}
	r.RatioCheck = ratio(r.NativeMS, r.ChildMS)
	r.ProofsRatio = ratio(budget.rate(), plain.rate())
	r.Votes.RatioP50 = ratio(at(budget.votes, 0.5), at(absent.votes, 0.5))
	r.Votes.P99AddedMS = milliseconds(quantile(budget.votes, 0.99) - quantile(absent.votes, 0.99))
	var idle []time.Duration
	for _, p := range all {
		if p.kind == KindAbsent {
			idle = append(idle, quantile(pool(p.single.accepted()), 0.5))
		}
	}
	least := minPlainRatio
	if m.verifier == checkNative {
		least = minNativeRatio
	}
	r.doubts = doubts(idle, r.RatioPlainP50, least)
	r.Conclusive = len(r.doubts) == 0
	return r
}

// at is a quantile in nanoseconds.
func at(sorted []time.Duration, q float64) float64 { return float64(quantile(sorted, q)) }

// rate is proofs a second.
func (p *pooled) rate() float64 {
	if p.seconds == 0 {
		return 0
	}
	return p.proofs / p.seconds
}

func (p *phase) summary() Phase {
	return Phase{Round: p.round, Kind: p.kind, Single: p.single.summary(), Burst: p.burst.summary()}
}

// accepted returns the latencies of the aggregates that were.
func (t *traffic) accepted() []time.Duration { return latencies(t.aggregates) }

func latencies(passages []*passage) []time.Duration {
	out := make([]time.Duration, 0, len(passages))
	for _, s := range passages {
		if s.reason == wire.ReasonNone {
			out = append(out, s.ended.Sub(s.arrived))
		}
	}
	return out
}

func latencyOf(sorted []time.Duration, sent int) Latency {
	l := Latency{Checks: len(sorted), Drops: sent - len(sorted)}
	l.P50MS, l.P90MS = milliseconds(quantile(sorted, 0.5)), milliseconds(quantile(sorted, 0.9))
	l.P99MS, l.MaxMS = milliseconds(quantile(sorted, 0.99)), milliseconds(quantile(sorted, 1))
	return l
}

func (p *part) summary() Part {
	seconds := p.end.Sub(p.begin).Seconds()
	out := Part{
		Seconds: round3(seconds), Latency: latencyOf(pool(p.accepted()), len(p.aggregates)), Late: p.late,
		StageMS: p.stages(), Votes: latencyOf(pool(latencies(p.votes)), len(p.votes)), Proofs: round3(p.proofs),
		CPUSeconds: CPUSeconds{
			Node: round3(p.used.node.Seconds()), Verifier: round3(p.used.verifier.Seconds()), Prover: round3(p.used.prover.Seconds()),
		},
		CollectorCPU: round3(p.used.collector.Seconds()),
	}
	if seconds > 0 {
		out.ChecksPerSecond = round3(float64(out.Checks) / seconds)
	}
	lag := make([]time.Duration, len(p.votes))
	for i, s := range p.votes {
		lag[i] = s.arrived.Sub(s.due)
	}
	out.DispatchP99MS = milliseconds(quantile(pool(lag), 0.99))
	for _, s := range append(p.aggregates[:len(p.aggregates):len(p.aggregates)], p.votes...) {
		if s.reason != wire.ReasonNone {
			if out.DropReasons == nil {
				out.DropReasons = map[string]int{}
			}
			out.DropReasons[s.reason.String()]++
		}
	}
	return out
}

// stages returns the means over the accepted aggregates.
func (p *part) stages() StageMS {
	var queue, decode, set, call, check time.Duration
	n := 0
	for _, s := range p.aggregates {
		if s.reason != wire.ReasonNone {
			continue
		}
		n++
		decode += s.decoded.Sub(s.arrived)
		queue += s.taken.Sub(s.decoded)
		set += s.asked.Sub(s.taken)
		call += s.answered.Sub(s.asked)
		check += s.computed
	}
	if n == 0 {
		return StageMS{}
	}
	mean := func(d time.Duration) time.Duration { return d / time.Duration(n) }
	return StageMS{
		Queue: milliseconds(mean(queue)), Decode: milliseconds(mean(decode)), SignerSet: milliseconds(mean(set)),
		Pipe: milliseconds(mean(call - check)), Check: milliseconds(mean(check)),
	}
}

// poolKind puts the rounds of a kind together.
func poolKind(k Kind, all []*phase) pooled {
	out := pooled{kind: k}
	var single, burst part
	for _, p := range all {
		if p.kind != k {
			continue
		}
		single.merge(&p.single)
		burst.merge(&p.burst)
	}
	out.single, out.burst, out.votes = pool(single.accepted()), pool(burst.accepted()), pool(latencies(single.votes))
	out.singles, out.bursts = single.summary(), burst.summary()
	out.proofs = single.proofs + burst.proofs
	out.seconds = out.singles.Seconds + out.bursts.Seconds
	return out
}

// merge adds another part of the same kind: what was sent, and the time that it took.
func (p *part) merge(o *part) {
	p.aggregates = append(p.aggregates, o.aggregates...)
	p.votes = append(p.votes, o.votes...)
	p.late += o.late
	p.proofs += o.proofs
	p.used.node += o.used.node
	p.used.verifier += o.used.verifier
	p.used.prover += o.used.prover
	p.used.collector += o.used.collector
	if p.begin.IsZero() {
		p.begin, p.end = o.begin, o.begin
	}
	p.end = p.end.Add(o.end.Sub(o.begin))
}
