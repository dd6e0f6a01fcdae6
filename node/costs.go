package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"aggnode/aggregate"
)

const (
	// costsFile, in the data directory, keeps what the node has learnt about the cost of proofs from one run to the next.
	costsFile = "prover-costs.json"
	// benchFile, in the data directory, is the output of `aggnode bench prover --json` where the operator has put it there:
	// the shape of the costs on this machine instead of that on the machine of the authors.
	benchFile = "prover-bench.json"
)

// loadCosts reads both files. Neither has to be there, and one that does not read is said and left aside: the node then
// starts from the job proved at hello.
func loadCosts(dir string, log *slog.Logger) *aggregate.Costs {
	costs := new(aggregate.Costs)
	for name, read := range map[string]func([]byte) error{costsFile: costs.UnmarshalJSON, benchFile: costs.AddBench} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = read(b)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			log.Warn("prover costs are not used", "file", name, "error", err)
		}
	}
	return costs
}

// saveCosts writes what was learnt, whole or not at all.
func saveCosts(dir string, costs *aggregate.Costs) error {
	b, err := json.MarshalIndent(costs, "", "  ")
	if err != nil {
		return fmt.Errorf("encode prover costs: %w", err)
	}
	path := filepath.Join(dir, costsFile)
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o644); err != nil { //nolint:gosec // measurements, no secret
		return fmt.Errorf("save prover costs: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("save prover costs: %w", err)
	}
	return nil
}

// proverPlace is where the prover runs: its costs hold for that.
func (n *Node) proverPlace() (tier string, cores float64) {
	cores = n.sched.Decision().Cores
	if cores == 0 { // no decision yet
		cores = float64(n.sched.Machine().CPUs)
	}
	return n.sched.Tier().String(), cores
}
