package bench

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"aggnode/leanproof"
)

// CheckReport is what a check of a proof costs natively and in a child. It is the JSON, whose names are relied on by scripts.
// The embedded case is that of the proof over 8 raw signatures, with the memory of all.
type CheckReport struct {
	CPUModel string `json:"cpu_model"`
	Cores    int    `json:"cores"`
	Revision string `json:"revision"` // of the child's program
	Rounds   int    `json:"rounds"`
	CheckCase

	Cases []CheckCase `json:"cases"`
}

// CheckCase is one proof, checked many times. Times are medians.
type CheckCase struct {
	Name       string `json:"name"`
	Raw        int    `json:"raw"`
	Children   int    `json:"children"` // aggregates of 32 signatures each
	ProofBytes int    `json:"proof_bytes"`

	ChildMS       float64 `json:"child_ms_p50"`         // of the call, pipe included
	ChildInsideMS float64 `json:"child_inside_ms_p50"`  // as the child reports
	NativeMS      float64 `json:"native_ms_p50"`        //
	BatchMS       float64 `json:"native_batch8_ms"`     // for each proof of a batch of 8
	Speedup       float64 `json:"speedup"`              // child over native
	SpeedupInside float64 `json:"speedup_over_compute"` // the same without the pipe

	StageUS map[string]float64 `json:"stage_us"` // natively, by leanproof's names
	Allocs  float64            `json:"allocs"`   // of a native check
	RSSMiB  float64            `json:"rss_mib"`  // growth of resident memory since before the key was loaded, once this case had run
	Path    string             `json:"path"`     // the instructions in use
}

// report puts the figures together.
func (r *checkRig) report(revision string) *CheckReport {
	report := &CheckReport{CPUModel: cpuModel(), Cores: runtime.GOMAXPROCS(0), Revision: revision, Rounds: r.rounds, Cases: []CheckCase{}}
	for _, c := range r.cases {
		report.Cases = append(report.Cases, c.report())
	}
	if len(report.Cases) > 0 {
		report.CheckCase = report.Cases[0]
		report.RSSMiB = r.rss
	}
	return report
}

func (c *checkCase) report() CheckCase {
	out := CheckCase{
		Name: c.size.String(), Raw: c.size.raw, Children: c.size.children, ProofBytes: len(c.proof),
		ChildMS: median(c.child), ChildInsideMS: median(c.inside), NativeMS: median(c.single), BatchMS: median(c.shared),
		StageUS: map[string]float64{}, Allocs: c.allocs, RSSMiB: c.rss, Path: leanproof.Path(),
	}
	out.Speedup, out.SpeedupInside = ratio(out.ChildMS, out.NativeMS), ratio(out.ChildInsideMS, out.NativeMS)
	for s, us := range c.stages {
		out.StageUS[s.String()] = median(us)
	}
	return out
}

// Print writes the tables for a person.
func (r *CheckReport) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(t, "\nproof of\tbytes\tchild ms\tinside\tnative ms\tof 8\tspeedup\tallocs\t\n")
	for i := range r.Cases {
		c := &r.Cases[i]
		_, _ = fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.3f\t%.3f\t%.2f\t%.1f\t\n",
			c.Name, c.ProofBytes, c.ChildMS, c.ChildInsideMS, c.NativeMS, c.BatchMS, c.Speedup, c.Allocs)
	}
	_, _ = fmt.Fprintf(t, "\nstage of the check of %s\tus\t\n", r.Name)
	for s := leanproof.StageDecode; s <= leanproof.StageTable; s++ {
		if us, ok := r.StageUS[s.String()]; ok {
			_, _ = fmt.Fprintf(t, "%s\t%.0f\t\n", s, us)
		}
	}
	_, _ = fmt.Fprintf(t, "\n")
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s against %s, medians of %d rounds, key and scratch memory %.1f MiB, on %s\n",
		r.Path, r.Revision, r.Rounds, r.RSSMiB, r.CPUModel)
	return err
}
