package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// FaultsReport is the outcome. Its exported fields are the JSON. Latencies are of aggregate checks one at a time, from
// arrival to verdict, pooled over the rounds.
type FaultsReport struct {
	Tier     string        `json:"tier"`
	RealTime bool          `json:"real_time"`
	CPUModel string        `json:"cpu_model"`
	Cores    int           `json:"cores"`
	Faults   []FaultReport `json:"faults"`
}

// FaultReport is one fault.
type FaultReport struct {
	Fault Fault `json:"fault"`
	Latency
	RatioP50 float64        `json:"ratio_p50"` // over prover absent
	RatioP99 float64        `json:"ratio_p99"`
	Jobs     map[string]int `json:"jobs"` // by outcome of the call to the prover

	// Phases after which a proof was made again, of how many, and the longest time from the end of a phase to that proof.
	Served        int     `json:"served"`
	Phases        int     `json:"phases"`
	ServedAgainMS float64 `json:"served_again_ms_max"`
}

func newFaultsReport(all []*faultPhase, m machine) *FaultsReport {
	r := &FaultsReport{Tier: m.tier, RealTime: m.realTime, CPUModel: m.cpuModel, Cores: m.cores}
	for _, f := range FaultKinds() {
		out := FaultReport{Fault: f, Jobs: map[string]int{}}
		var values []time.Duration
		sent := 0
		for _, p := range all {
			if p.fault != f {
				continue
			}
			values = append(values, p.accepted()...)
			sent += len(p.aggregates)
			for outcome, n := range p.jobs {
				out.Jobs[outcome] += n
			}
			out.Phases++
			if p.served {
				out.Served++
			}
			out.ServedAgainMS = max(out.ServedAgainMS, milliseconds(p.again))
		}
		out.Latency = latencyOf(pool(values), sent)
		if f != FaultNone {
			out.RatioP50 = ratio(out.P50MS, r.Faults[0].P50MS)
			out.RatioP99 = ratio(out.P99MS, r.Faults[0].P99MS)
		}
		r.Faults = append(r.Faults, out)
	}
	return r
}

// Print writes the table for a person.
func (r *FaultsReport) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(t, "aggregate checks, one at a time\tp50 ms\tp99 ms\tmax ms\tp50 ratio\tp99 ratio\tdrops\tserves again\tjobs\t\n")
	for i := range r.Faults {
		f := &r.Faults[i]
		again := "-"
		if f.Fault != FaultNone {
			again = fmt.Sprintf("%d of %d, %.1f s", f.Served, f.Phases, f.ServedAgainMS/1000)
		}
		_, _ = fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%d\t%s\t%v\t\n", f.Fault.Long(), f.P50MS, f.P99MS, f.MaxMS, f.RatioP50, f.RatioP99, f.Drops, again, f.Jobs)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "tier %s, the node at %s priority, %d cores, %s\n", r.Tier, priorityName(r.RealTime), r.Cores, r.CPUModel)
	return err
}
