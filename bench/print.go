package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the tables for a person.
func (r *IsolationReport) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := func(title string) {
		_, _ = fmt.Fprintf(t, "\n%s\tp50 ms\tp90 ms\tp99 ms\tmax ms\ta second\tlate\tdrops\t\n", title)
	}
	row := func(name string, l Latency, perSecond float64, late int) {
		_, _ = fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%d\t%d\t\n", name, l.P50MS, l.P90MS, l.P99MS, l.MaxMS, perSecond, late, l.Drops)
	}
	head("aggregate checks, one at a time")
	for i := range r.pooled {
		p := &r.pooled[i]
		row(p.kind.Long(), p.singles.Latency, p.singles.ChecksPerSecond, p.singles.Late)
	}
	head(fmt.Sprintf("aggregate checks, bursts of %d", burstSize))
	for i := range r.pooled {
		p := &r.pooled[i]
		row(p.kind.Long(), p.bursts.Latency, p.bursts.ChecksPerSecond, p.bursts.Late)
	}
	head("votes, beside single aggregates")
	for i := range r.pooled {
		p := &r.pooled[i]
		perSecond := 0.0
		if p.singles.Seconds > 0 {
			perSecond = float64(p.singles.Votes.Checks) / p.singles.Seconds
		}
		row(p.kind.Long(), p.singles.Votes, perSecond, 0)
	}
	_, _ = fmt.Fprintf(t, "\nmean single check, ms\tqueue\tdecode\tsigner set\tpipe\tcheck\tdispatch p99\t\t\n")
	for i := range r.pooled {
		p := &r.pooled[i]
		s := p.singles.StageMS
		_, _ = fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\t\n", p.kind.Long(), s.Queue, s.Decode, s.SignerSet, s.Pipe, s.Check, p.singles.DispatchP99MS)
	}
	_, _ = fmt.Fprintf(t, "\nwhole phases\tproofs\ta minute\tnode CPU s\tof it GC\tverifier\tprover\tof cores\t\n")
	for i := range r.pooled {
		p := &r.pooled[i]
		a, b := p.singles.CPUSeconds, p.bursts.CPUSeconds
		all := a.Node + b.Node + a.Verifier + b.Verifier + a.Prover + b.Prover
		_, _ = fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.2f\t%.1f\t%.1f\t%.0f %%\t\n", p.kind.Long(), p.proofs, 60*p.rate(),
			a.Node+b.Node, p.singles.CollectorCPU+p.bursts.CollectorCPU, a.Verifier+b.Verifier, a.Prover+b.Prover, 100*ratio(all, p.seconds*float64(r.Cores)))
	}
	_, _ = fmt.Fprintf(t, "\n")
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `tier %s, the node at %s priority, %d cores, %s
check p50, prover absent     native %.2f ms, child %.2f ms (%.3f); what follows is of %s checks
check p50 under the budget   %.3f of prover absent (p99 %.3f); plain child %.3f, in this process %.3f
proofs under the budget      %.3f of the plain child's
votes under the budget       p50 %.3f of prover absent, p99 %+.3f ms
`, r.Tier, priorityName(r.RealTime), r.Cores, r.CPUModel, r.NativeMS, r.ChildMS, r.RatioCheck, r.Verifier, r.RatioP50, r.RatioP99, r.RatioPlainP50, r.RatioInProcessP50, r.ProofsRatio, r.Votes.RatioP50, r.Votes.P99AddedMS); err != nil {
		return err
	}
	for _, d := range r.doubts {
		if _, err := fmt.Fprintln(w, "not conclusive:", d); err != nil {
			return err
		}
	}
	return nil
}

// priorityName says at which priority this process ran.
func priorityName(isRealTime bool) string {
	if isRealTime {
		return "real-time"
	}
	return "ordinary"
}
