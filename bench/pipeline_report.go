package bench

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"aggnode/xmss"
)

// us is the CPU of one of n votes in microseconds.
func (c cost) us(n int) float64 { return ratio(float64(c.cpu)/float64(time.Microsecond), float64(n)) }

// allocsEach is the number of allocations for one of n votes.
func (c cost) allocsEach(n int) float64 { return ratio(float64(c.allocs), float64(n)) }

// report puts the figures together.
func (r *pipelineRig) report(s *samples) *PipelineReport {
	n := r.total()
	us := func(costs []cost) float64 { return medianOf(costs, func(c cost) float64 { return c.us(n) }) }
	allocs := func(costs []cost) float64 { return medianOf(costs, func(c cost) float64 { return c.allocsEach(n) }) }
	slices.Sort(s.verdicts)
	slices.Sort(s.delays)
	slices.Sort(s.verdictsDirect)
	pairs := make([]float64, len(s.node))
	for i := range pairs {
		pairs[i] = ratio(s.node[i].us(n), s.bare[i].us(n))
	}
	return &PipelineReport{
		CPUModel: cpuModel(), Cores: runtime.GOMAXPROCS(0), Scheme: xmss.Blake2s.String(),
		Validators: r.cfg.Validators, Passes: r.cfg.Passes, Rounds: r.cfg.Rounds, Rate: r.cfg.Rate,

		BareUS: us(s.bare), NodeUS: us(s.node), RatioToBare: median(pairs),
		VotesPerS:    medianOf(s.spans, func(d time.Duration) float64 { return ratio(float64(n), d.Seconds()) }),
		VerdictP50MS: milliseconds(quantile(s.verdicts, 0.50)), VerdictP99MS: milliseconds(quantile(s.verdicts, 0.99)),
		DelayP50MS: milliseconds(quantile(s.delays, 0.50)), DelayP99MS: milliseconds(quantile(s.delays, 0.99)),
		Batch: median(s.batches), Dropped: r.cfg.Rounds*n - len(s.verdicts), Reasons: s.lost,
		Allocs: allocs(s.node), BareAllocs: allocs(s.bare), BareDropped: r.cfg.Rounds*n - s.acceptedByBare,
		SenderUS: medianOf(s.senderCPU, func(d time.Duration) float64 { return cost{cpu: d}.us(n) }),

		Direct: DirectReport{
			US: us(s.direct), VotesPerS: medianOf(s.direct, func(c cost) float64 { return ratio(float64(n), c.wall.Seconds()) }),
			VerdictP50MS: milliseconds(quantile(s.verdictsDirect, 0.50)), VerdictP99MS: milliseconds(quantile(s.verdictsDirect, 0.99)),
			Batch: median(s.batchesDirect), Dropped: r.cfg.Rounds*n - len(s.verdictsDirect), Allocs: allocs(s.direct), InFlight: directInFlight,
		},
		QueueUS: us(s.queue), QueueAllocs: allocs(s.queue),
	}
}

// medianOf is the median of what f says of each.
func medianOf[T any](items []T, f func(T) float64) float64 {
	values := make([]float64, len(items))
	for i, item := range items {
		values[i] = f(item)
	}
	return median(values)
}

// median returns the middle value, the mean of the middle two where there are two, 0 of none. It sorts values.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return 0
	}
	return round3((values[(n-1)/2] + values[n/2]) / 2)
}

// Print writes the table for a person.
func (r *PipelineReport) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(t, "\nvotes of scheme %s\tCPU us\tallocations\ta second\tverdict p50 ms\tp99 ms\tdropped\t\n", r.Scheme)
	_, _ = fmt.Fprintf(t, "bare gossip over QUIC\t%.2f\t%.1f\t\t\t\t%d\t\n", r.BareUS, r.BareAllocs, r.BareDropped)
	_, _ = fmt.Fprintf(t, "node over QUIC\t%.2f\t%.1f\t%.0f\t%.2f\t%.2f\t%d\t\n",
		r.NodeUS, r.Allocs, r.VotesPerS, r.VerdictP50MS, r.VerdictP99MS, r.Dropped)
	_, _ = fmt.Fprintf(t, "node without a network\t%.2f\t%.1f\t%.0f\t%.2f\t%.2f\t%d\t\n",
		r.Direct.US, r.Direct.Allocs, r.Direct.VotesPerS, r.Direct.VerdictP50MS, r.Direct.VerdictP99MS, r.Direct.Dropped)
	_, _ = fmt.Fprintf(t, "queue and verdict alone\t%.2f\t%.1f\t\t\t\t\t\n", r.QueueUS, r.QueueAllocs)
	_, _ = fmt.Fprintf(t, "sending process\t%.2f\t\t\t\t\t\t\n\n", r.SenderUS)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `node over bare gossip %.3f; due at the sender to verdict p50 %.1f ms, p99 %.1f ms
votes checked together: %.1f over QUIC, %.1f without a network
%d rounds of %d x %d votes at %d a second; %d cores, %s
`, r.RatioToBare, r.DelayP50MS, r.DelayP99MS, r.Batch, r.Direct.Batch, r.Rounds, r.Passes, r.Validators, r.Rate, r.Cores, r.CPUModel)
	if err != nil {
		return err
	}
	for reason, n := range r.Reasons {
		if _, err := fmt.Fprintf(w, "dropped as %s: %d\n", reason, n); err != nil {
			return err
		}
	}
	return nil
}
