package bench

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"aggnode/internal/lanes"
)

// DutyReport is the outcome of Duty. Its exported fields are the JSON, whose names are relied on by scripts. Times are in
// milliseconds and of slots whose votes were all published and verified.
type DutyReport struct {
	CPUModel string `json:"cpu_model"`
	Cores    int    `json:"cores"`
	Path     string `json:"path"` // machine instructions of the hashing
	Scheme   string `json:"scheme"`
	Votes    int    `json:"votes"` // a slot
	Slots    int    `json:"slots"`
	SlotMS   int64  `json:"slot_ms"`

	Incomplete int `json:"incomplete"` // slots that some vote was missing in

	PublishedMSP50 float64 `json:"published_ms_p50"` // from the duty's timer to the last vote, all that follows included
	PublishedMSP99 float64 `json:"published_ms_p99"`
	PublishedMSMax float64 `json:"published_ms_max"`
	BoundaryMSMax  float64 `json:"boundary_ms_max"` // published, of the slots beside the changes of subtrees
	TimerMSP50     float64 `json:"timer_ms_p50"`    // how late the signer begins
	TimerMSP99     float64 `json:"timer_ms_p99"`
	FsyncMSP50     float64 `json:"fsync_ms_p50"` // the one transaction that reserves all positions of the slot
	FsyncMSP99     float64 `json:"fsync_ms_p99"`
	SignMSP50      float64 `json:"sign_ms_p50"` // from the same moment as the fsync, which is beside it, to the last signature
	SignMSP99      float64 `json:"sign_ms_p99"`

	CPUMS float64 `json:"cpu_ms_per_slot"` // of this process: signatures, keys, checks and all

	Load         DutyLoad `json:"load"`
	LoadCores    float64  `json:"load_cores"`     // that the load had
	Proofs       float64  `json:"proofs"`         // that a prover made
	Tier         string   `json:"tier"`           // placement of the load
	BlockAtTimer bool     `json:"block_at_timer"` // and not at the slot's start: nothing was searched for before
	RealTime     bool     `json:"real_time"`      // this process ran at real-time priority, but for searches and preparation
}

// newDutyReport sums up what was seen of the slots.
func newDutyReport(cfg *DutyConfig, slots []dutySlot) *DutyReport {
	r := &DutyReport{
		CPUModel: cpuModel(), Cores: runtime.GOMAXPROCS(0), Path: lanes.Current().String(),
		Scheme: cfg.Scheme, Votes: cfg.Validators, Slots: cfg.Slots, SlotMS: cfg.SlotDuration.Milliseconds(), Load: cfg.Load,
	}
	var published, timer, fsync, sign []time.Duration
	var boundary time.Duration
	for i, s := range slots {
		if s.votes != cfg.Validators || s.verified != cfg.Validators {
			r.Incomplete++
			continue
		}
		published = append(published, s.published)
		timer = append(timer, s.begun)
		fsync = append(fsync, s.reserved-s.begun)
		sign = append(sign, s.signed-s.begun)
		// The last two slots of a subtree and the first two of the next.
		if (int(cfg.firstSlot())+i+2)%subtreeSlots < 4 {
			boundary = max(boundary, s.published)
		}
	}
	r.BoundaryMSMax = milliseconds(boundary)
	for _, m := range []struct {
		values         []time.Duration
		p50, p99, most *float64
	}{
		{published, &r.PublishedMSP50, &r.PublishedMSP99, &r.PublishedMSMax},
		{timer, &r.TimerMSP50, &r.TimerMSP99, nil},
		{fsync, &r.FsyncMSP50, &r.FsyncMSP99, nil},
		{sign, &r.SignMSP50, &r.SignMSP99, nil},
	} {
		slices.Sort(m.values)
		*m.p50, *m.p99 = milliseconds(quantile(m.values, 0.5)), milliseconds(quantile(m.values, 0.99))
		if m.most != nil {
			*m.most = milliseconds(quantile(m.values, 1))
		}
	}
	return r
}

// Print writes the table for a person.
func (r *DutyReport) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(t, "\nfrom the duty's timer, ms\tp50\tp99\tmax\t\n")
	_, _ = fmt.Fprintf(t, "last vote published\t%.2f\t%.2f\t%.2f\t\n", r.PublishedMSP50, r.PublishedMSP99, r.PublishedMSMax)
	_, _ = fmt.Fprintf(t, "at a change of subtrees\t\t\t%.2f\t\n", r.BoundaryMSMax)
	_, _ = fmt.Fprintf(t, "\nof which\t\t\t\t\n")
	_, _ = fmt.Fprintf(t, "timer late\t%.2f\t%.2f\t\t\n", r.TimerMSP50, r.TimerMSP99)
	_, _ = fmt.Fprintf(t, "fsync\t%.2f\t%.2f\t\t\n", r.FsyncMSP50, r.FsyncMSP99)
	_, _ = fmt.Fprintf(t, "signatures, beside it\t%.2f\t%.2f\t\t\n", r.SignMSP50, r.SignMSP99)
	_, _ = fmt.Fprintf(t, "\nCPU of a slot\t%.2f\t\t\t\n\n", r.CPUMS)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `%d votes (%s, %s) in %d slots of %d ms, %d incomplete, blocks known at the %s; the node at %s priority, %d cores, %s
load %s at tier %s had %.2f cores and made %.1f proofs
`, r.Votes, r.Scheme, r.Path, r.Slots, r.SlotMS, r.Incomplete, blockName(r.BlockAtTimer), priorityName(r.RealTime), r.Cores, r.CPUModel, r.Load, r.Tier, r.LoadCores, r.Proofs)
	return err
}

// blockName says when the blocks of the slots were known.
func blockName(atTimer bool) string {
	if atTimer {
		return "votes' timer"
	}
	return "slot's start"
}
