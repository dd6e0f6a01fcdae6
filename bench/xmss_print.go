package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the table for a person.
func (r *XMSSReport) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	const columns = "hash ns\tsign ms\tverify us\tof 16\tleaf us\tsubtree ms\t64 of them\tall warm us\tlanes used\t"
	_, _ = fmt.Fprintf(t, "\n%s\t%s\n", r.Scheme, columns)
	for i := range r.Paths {
		p := &r.Paths[i]
		_, _ = fmt.Fprintf(t, "%s\t%.1f\t%.3f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f %%\t\n",
			p.Path, p.HashNS, p.SignMS, p.VerifyUS1, p.VerifyUS16, p.LeafUS, p.SubtreeMS, p.Warm64MS, p.AllWarm64U, 100*p.LaneOccupancy)
	}
	_, _ = fmt.Fprintf(t, "\n")
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `%s against portable code: sign %.1f, verify %.1f, leaf %.1f times
over the time of the hashes alone: verify %.2f, sign %.2f, subtree %.2f; 64 subtrees over their share of the cores %.2f
key over 2^16 epochs: %.2f s on %d cores, %.2f s on one; %s
`, r.Path, r.SpeedupSign, r.SpeedupVerify, r.SpeedupLeaf, r.VerifyEff, r.SignEff, r.SubtreeEff, r.WarmEff,
		r.KeygenS, r.Cores, r.KeygenOneCoreS, r.CPUModel)
	return err
}
