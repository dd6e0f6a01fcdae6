package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"aggnode/wire"
)

// defaults and limits of PipelineConfig.
const (
	defaultValidators = wire.DefaultRegistryLimit
	defaultPasses     = 30 // 4.9 s at the default rate
	defaultPairs      = 5
	defaultRate       = 25_000

	// longestStream keeps all votes, and the time that a sender takes to connect, within the window of their slot, which
	// closes 14.4 s after voteClock's begin.
	longestStream = 10 * time.Second
	// quiet is how long the last votes may take after the sender has published them, before they count as dropped.
	quiet = 3 * time.Second
)

// PipelineConfig says how the way of a vote from bytes to verdict is measured. Sender is required.
type PipelineConfig struct {
	// Sender is a command that calls SendVotes with the configuration of the flags --capture, --to, --passes and --rate.
	Sender     []string
	Validators int // votes of a pass; default 4,096, the limit of a registry
	Passes     int // of one stream; default 30
	Rounds     int // streams to the bare library and to the node each; default 5
	Rate       int // votes a second over QUIC; default 25,000
	Workers    int // of the pipeline; default GOMAXPROCS

	CPUProfiles string    // folder for a CPU profile of this process during each stream; empty writes none
	Progress    io.Writer // lines for a person; nil prints none
}

func (c PipelineConfig) withDefaults() PipelineConfig {
	c.Validators = cmp.Or(c.Validators, defaultValidators)
	c.Passes = cmp.Or(c.Passes, defaultPasses)
	c.Rounds = cmp.Or(c.Rounds, defaultPairs)
	c.Rate = cmp.Or(c.Rate, defaultRate)
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	return c
}

func (c *PipelineConfig) validate() error {
	switch {
	case len(c.Sender) == 0:
		return errors.New("pipeline bench: no sender command")
	case c.Validators < 1 || c.Validators > wire.DefaultRegistryLimit:
		return fmt.Errorf("pipeline bench: %d validators, must be 1 to %d", c.Validators, wire.DefaultRegistryLimit)
	case c.Passes < 1 || c.Rounds < 1 || c.Rate < 1 || c.Workers < 1:
		return errors.New("pipeline bench: passes, rounds, rate and workers must be positive")
	case atRate(c.Passes*c.Validators, c.Rate) > longestStream:
		return fmt.Errorf("pipeline bench: %d passes of %d votes at %d a second are more than %s, when their slot is over",
			c.Passes, c.Validators, c.Rate, longestStream)
	}
	return nil
}

// PipelineReport is what a vote costs from bytes to verdict. It is the JSON. CPU is that of this process, kernel included,
// and its figures are medians over the rounds; times are pooled over them.
type PipelineReport struct {
	CPUModel   string `json:"cpu_model"`
	Cores      int    `json:"cores"`
	Scheme     string `json:"scheme"`
	Validators int    `json:"validators"` // votes of a pass
	Passes     int    `json:"passes"`     // of one stream
	Rounds     int    `json:"rounds"`     // streams to each receiver
	Rate       int    `json:"rate"`       // votes a second of the sender

	// Over loopback QUIC, from a second process on the same machine.
	BareUS       float64        `json:"bare_us_per_vote"` // a receiver that accepts everything
	NodeUS       float64        `json:"node_us_per_vote"`
	RatioToBare  float64        `json:"ratio_to_bare"` // node over bare of one round each, the median over the rounds
	VotesPerS    float64        `json:"votes_per_s"`   // accepted by the node, from when the first was due to the last verdict
	VerdictP50MS float64        `json:"verdict_ms_p50"`
	VerdictP99MS float64        `json:"verdict_ms_p99"` // from stage 1 to the verdict
	DelayP50MS   float64        `json:"delay_ms_p50"`   // from when the vote was due at the sender to the verdict
	DelayP99MS   float64        `json:"delay_ms_p99"`
	Batch        float64        `json:"votes_per_check"`
	Dropped      int            `json:"dropped"` // sent and not accepted by the node, wherever it was lost
	Reasons      map[string]int `json:"dropped_by_reason"`
	Allocs       float64        `json:"allocs_per_vote"` // of the whole node process, the library included
	BareAllocs   float64        `json:"bare_allocs_per_vote"`
	BareDropped  int            `json:"bare_dropped"`
	SenderUS     float64        `json:"sender_us_per_vote"` // CPU of the sending process

	// In this process, without a network: message id, decompression, and the whole pipeline with its checks, as fast as it goes.
	Direct DirectReport `json:"in_process"`

	// The pipeline between stage 1 and the verdict with signatures taken for valid: queue, dedupe and verdict alone.
	QueueUS     float64 `json:"queue_us_per_vote"`
	QueueAllocs float64 `json:"queue_allocs_per_vote"`
}

// DirectReport is the measurement without a network.
type DirectReport struct {
	US           float64 `json:"us_per_vote"`
	VotesPerS    float64 `json:"votes_per_s"`
	VerdictP50MS float64 `json:"verdict_ms_p50"` // with InFlight votes on their way at any time
	VerdictP99MS float64 `json:"verdict_ms_p99"`
	Batch        float64 `json:"votes_per_check"`
	Dropped      int     `json:"dropped"`
	Allocs       float64 `json:"allocs_per_vote"`
	InFlight     int     `json:"in_flight"`
}

// Pipeline measures what a vote costs from bytes to verdict: in this process, and over loopback QUIC from a second process
// beside a receiver that is the bare gossip library. It signs the votes first. It blocks until all that it started has ended;
// with defaults that takes under two minutes. ctx ends it early, with its error.
func Pipeline(ctx context.Context, cfg PipelineConfig) (*PipelineReport, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "aggnode-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if cfg.CPUProfiles != "" {
		if err := os.MkdirAll(cfg.CPUProfiles, 0o755); err != nil {
			return nil, fmt.Errorf("make folder for CPU profiles: %w", err)
		}
	}
	v, err := makeSlotVotes(ctx, cfg.Validators, cfg.Progress)
	if err != nil {
		return nil, err
	}
	r := &pipelineRig{cfg: &cfg, votes: v}
	if r.capture, err = v.save(dir, cfg.Rate); err != nil {
		return nil, err
	}
	if r.verifier, err = newVoteVerifier(v); err != nil {
		return nil, err
	}
	if err := r.warmUp(ctx); err != nil {
		return nil, err
	}
	s := &samples{lost: make(map[string]int)}
	for round := range cfg.Rounds {
		if err := r.round(ctx, round, s); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return r.report(s), nil
}
