package devnet

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// minCoverage is the coverage below which a run counts as failed.
const minCoverage = 0.9

// Summary is what a devnet measured, as written by --json. Times are milliseconds; coverage is a share of 1.
type Summary struct {
	Slots               int     `json:"slots"`
	Validators          int     `json:"validators"`
	Committees          int     `json:"committees"`
	Backend             string  `json:"backend"`
	Scheme              string  `json:"scheme"`
	VotesExpected       int     `json:"votes_expected"`
	VotesCovered        int     `json:"votes_covered"`
	Coverage            float64 `json:"coverage"`
	CoverageSlotEnd     float64 `json:"coverage_slot_end"`
	AggregatesPublished int     `json:"aggregates_published"`
	AggregatesVerified  int     `json:"aggregates_verified"`
	AggregatesRejected  int     `json:"aggregates_rejected"`
	PublishMSp50        float64 `json:"publish_ms_p50"`
	PublishMSp99        float64 `json:"publish_ms_p99"`
	CheckMSp50          float64 `json:"check_ms_p50"`
	CheckMSp99          float64 `json:"check_ms_p99"`
	TwoThirdsMSp50      float64 `json:"two_thirds_ms_p50"`
	Errors              int     `json:"errors"`

	CheckMSp50Aggregator float64            `json:"check_ms_p50_aggregator"`
	CheckMSp50Observer   float64            `json:"check_ms_p50_observer"`
	CPUPctByRole         map[string]float64 `json:"cpu_pct_by_role"`   // mean of a node with its children, percent of one core
	VerifierChildren     int                `json:"verifier_children"` // processes below validators and observer, at the end
	// ProverBusyRatio is the share of the time in which there was something to prove that the provers proved.
	ProverBusyRatio float64 `json:"prover_busy_ratio"`
	// QuorumToProverMSp50 is from the moment a job over a slot's own votes was due to the prover beginning it.
	QuorumToProverMSp50 float64 `json:"quorum_to_prover_ms_p50"`
	// ProofToWireMSp50 is from a finished proof to its publication, self-check included.
	ProofToWireMSp50 float64 `json:"proof_to_wire_ms_p50"`

	ErrorLines     []string `json:"error_lines,omitempty"`
	Nodes          int      `json:"nodes"`
	SlotDurationMS int64    `json:"slot_duration_ms"`
	SignMS         float64  `json:"sign_ms"`
}

// Passed says whether the run reached the coverage that a devnet must reach.
func (s *Summary) Passed() bool { return s.Coverage >= minCoverage }

// WriteFile writes the summary as indented JSON.
func (s *Summary) WriteFile(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the summary: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil { //nolint:gosec // a report, not a secret
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

// Print writes the summary for a person.
func (s *Summary) Print(w io.Writer) error {
	verdict := "ok"
	if !s.Passed() {
		verdict = fmt.Sprintf("FAILED: coverage below %.2f", minCoverage)
	}
	_, err := fmt.Fprintf(w, `
%d slots of %.1f s, %d validators in %d committees, backend %s, scheme %s
  coverage before interval 4   %.3f  (%d of %d votes), by the end of the slot %.3f
  aggregates                   %d published, %d verified and %d rejected at the observer
  published into the slot      p50 %.0f ms, p99 %.0f ms
  check at the observer        p50 %.1f ms, p99 %.1f ms (queue included)
  check at the aggregators     p50 %.1f ms
  provers                      busy %.0f%% of the time with work, quorum to prover p50 %.1f ms, proof to wire p50 %.1f ms
  CPU of a node, of one core   aggregator %.0f%%, validator %.0f%%, observer %.0f%%
  processes that only check    %d, below validators and observer
  two thirds of all votes      p50 %.0f ms into the slot
  errors                       %d
%s
`, s.Slots, float64(s.SlotDurationMS)/1000, s.Validators, s.Committees, s.Backend, s.Scheme,
		s.Coverage, s.VotesCovered, s.VotesExpected, s.CoverageSlotEnd,
		s.AggregatesPublished, s.AggregatesVerified, s.AggregatesRejected,
		s.PublishMSp50, s.PublishMSp99, s.CheckMSp50, s.CheckMSp99, s.CheckMSp50Aggregator, 100*s.ProverBusyRatio, s.QuorumToProverMSp50, s.ProofToWireMSp50,
		s.CPUPctByRole["aggregator"], s.CPUPctByRole["validator"], s.CPUPctByRole["observer"], s.VerifierChildren, s.TwoThirdsMSp50, s.Errors, verdict)
	if err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	for _, line := range s.ErrorLines {
		if _, err := fmt.Fprintln(w, "  error:", line); err != nil {
			return fmt.Errorf("print the summary: %w", err)
		}
	}
	return nil
}

// percentile returns the q-quantile of values by the nearest rank; 0 where there is none. It sorts values.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(q*float64(len(values)) + 0.999999)
	return values[min(max(rank, 1), len(values))-1]
}
