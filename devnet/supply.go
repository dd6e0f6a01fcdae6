package devnet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// supply is what the provers of all aggregators did since the nodes began.
type supply struct {
	busy, useful     float64   // seconds in prover calls, and in which there was something to prove
	toProver, toWire histogram // seconds
}

// histogram counts by upper bound, cumulative as Prometheus writes it.
type histogram map[float64]float64

// readSupply asks all aggregators.
func (r *run) readSupply(ctx context.Context) (supply, error) {
	s := supply{toProver: histogram{}, toWire: histogram{}}
	for i, m := range r.members {
		if m.committee < 0 {
			continue
		}
		err := r.clients[i].scrape(ctx, func(name, labels string, value float64) {
			switch name {
			case "aggnode_prover_busy_seconds_total":
				s.busy += value
			case "aggnode_prover_useful_seconds_total":
				s.useful += value
			case "aggnode_quorum_to_prover_seconds_bucket":
				s.toProver.add(labels, value)
			case "aggnode_proof_to_wire_seconds_bucket":
				s.toWire.add(labels, value)
			}
		})
		if err != nil {
			return supply{}, fmt.Errorf("ask %s about its prover: %w", m.name, err)
		}
	}
	return s, nil
}

// addTo turns what was done since the reading before into figures of the summary.
func (s supply) addTo(sum *Summary, before supply) {
	if useful := s.useful - before.useful; useful > 0 {
		sum.ProverBusyRatio = (s.busy - before.busy) / useful
	}
	sum.QuorumToProverMSp50 = 1000 * s.toProver.since(before.toProver).quantile(0.5)
	sum.ProofToWireMSp50 = 1000 * s.toWire.since(before.toWire).quantile(0.5)
}

// add takes a bucket of one node: labels is `{le="0.5"}`.
func (h histogram) add(labels string, count float64) {
	_, bound, _ := strings.Cut(labels, `le="`)
	bound, _, _ = strings.Cut(bound, `"`)
	if le, err := strconv.ParseFloat(bound, 64); err == nil {
		h[le] += count
	}
}

// since is what came after an earlier reading.
func (h histogram) since(before histogram) histogram {
	d := make(histogram, len(h))
	for le, n := range h {
		d[le] = n - before[le]
	}
	return d
}

// quantile interpolates inside the bucket of the q-quantile; 0 where nothing was counted. What lies above the largest
// finite bound counts as that bound.
func (h histogram) quantile(q float64) float64 {
	var bounds []float64
	for le := range h {
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 || h[bounds[len(bounds)-1]] == 0 {
		return 0
	}
	rank := q * h[bounds[len(bounds)-1]]
	low, below := 0.0, 0.0
	for _, le := range bounds {
		if h[le] >= rank && h[le] > below {
			if math.IsInf(le, 1) {
				return low
			}
			return low + (le-low)*(rank-below)/(h[le]-below)
		}
		low, below = le, h[le]
	}
	return low
}
