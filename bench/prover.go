package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"aggnode/netconfig/devkeys"
	"aggnode/prover"
	"aggnode/scheduler"
)

// ProverConfig says which proofs are made. Command is required.
type ProverConfig struct {
	Command  []string              // a child that speaks the prover protocol, for scheme keccak and proofs of lean-pq
	Env      []string              // its complete environment
	Place    func(*exec.Cmd) error // at normal priority; may be nil
	Threads  []int                 // a child for each; 0 is what it may use. Default: 0
	Raw      []int                 // raw signatures, at most 64. Default: 1, 2, 4, 8, 16, 32, 64
	Children []int                 // aggregates of 32 signatures each, at most 16. Default: 0, 1, 2
	Repeat   int                   // proofs of each job, of which the median by wall time is reported; default 1
	Progress io.Writer
	Logger   *slog.Logger // default: discard
}

func (c ProverConfig) withDefaults() ProverConfig {
	if len(c.Threads) == 0 {
		c.Threads = []int{0}
	}
	if len(c.Raw) == 0 {
		c.Raw = []int{1, 2, 4, 8, 16, 32, 64}
	}
	if len(c.Children) == 0 {
		c.Children = []int{0, 1, 2}
	}
	c.Repeat = max(c.Repeat, 1)
	return c
}

func (c *ProverConfig) validate() error {
	if len(c.Command) == 0 {
		return errors.New("prover bench: no prover command")
	}
	for _, l := range []struct {
		name      string
		values    []int
		low, high int
	}{
		{"threads", c.Threads, 0, 1024},
		{"raw signatures", c.Raw, 0, devkeys.Validators},
		{"children", c.Children, 0, traceAggregates},
		{"repeats", []int{c.Repeat}, 1, 1000},
	} {
		for _, v := range l.values {
			if v < l.low || v > l.high {
				return fmt.Errorf("prover bench: %d %s, must be %d to %d", v, l.name, l.low, l.high)
			}
		}
	}
	return nil
}

// ProverReport is what proofs cost on a machine. It is the JSON.
type ProverReport struct {
	Backend  string         `json:"backend"`
	Revision string         `json:"revision"`
	Scheme   string         `json:"scheme"`
	CPUModel string         `json:"cpu_model"`
	Cores    int            `json:"cores"`
	Setups   []ProverSetup  `json:"setups"`
	Results  []ProverResult `json:"results"`
}

// ProverSetup is the start of a child.
type ProverSetup struct {
	Threads   int     `json:"threads"` // that a proof uses
	WallMS    float64 `json:"wall_ms"` // from start to ready, a known job proved at hello included
	HelloMS   float64 `json:"hello_prove_ms"`
	PeakBytes int64   `json:"peak_bytes"`
}

// ProverResult is one job. Children are aggregates of 32 signatures; a raw signature that a child covers too is proved
// all the same, so they add up.
type ProverResult struct {
	Threads    int     `json:"threads"`
	Raw        int     `json:"raw"`
	Children   int     `json:"children"`
	WallMS     float64 `json:"wall_ms"`     // of the call, transfer included
	CPUMS      float64 `json:"cpu_ms"`      // in the child, all threads
	PeakBytes  int64   `json:"peak_bytes"`  // resident, of the child during the job; 0 where the system does not say
	ProofBytes int     `json:"proof_bytes"` //
	Skipped    string  `json:"skipped,omitempty"`
}

// Prover measures what proofs cost. It blocks until its children have ended; a job takes up to 7 s on two cores with four
// children (lean-pq 0.7.0). A job for which the machine has not the memory is skipped and says so.
func Prover(ctx context.Context, cfg ProverConfig) (*ProverReport, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t, err := loadTrace()
	if err != nil {
		return nil, err
	}
	r := &ProverReport{CPUModel: cpuModel(), Cores: runtime.GOMAXPROCS(0), Setups: []ProverSetup{}, Results: []ProverResult{}}
	for _, threads := range cfg.Threads {
		if err := r.measure(ctx, &cfg, t, threads); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// measure makes all proofs in one child.
func (r *ProverReport) measure(ctx context.Context, cfg *ProverConfig, t *trace, threads int) error {
	var children children
	defer children.stop()
	began := time.Now()
	client, err := children.start(ctx, cfg.Progress, "prover", prover.Config{
		Command: cfg.Command, Env: cfg.Env, Role: prover.RoleProve, Scheme: t.profile.Scheme, Threads: threads, Place: cfg.Place, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	caps, _ := client.Capabilities() // it is ready, so it has told them
	pid := client.Stats().PID
	r.Backend, r.Revision, r.Scheme = caps.Backend, caps.Revision, caps.Scheme
	setup := ProverSetup{Threads: caps.Threads, WallMS: milliseconds(time.Since(began)), HelloMS: milliseconds(caps.HelloProve)}
	setup.PeakBytes, _ = peakMemory(pid) // 0 where the system does not say
	r.Setups = append(r.Setups, setup)
	for _, job := range jobs(cfg, &caps) {
		result := ProverResult{Threads: caps.Threads, Raw: job.raw, Children: job.children}
		need, have := caps.MemoryNeed(job.raw, job.children), scheduler.AvailableMemory("", "")
		if have > 0 && need > have {
			result.Skipped = fmt.Sprintf("needs %d MiB, the machine has %d MiB to give", need>>20, have>>20)
		} else if err := result.prove(ctx, client, pid, t.job(job.raw, job.children), cfg.Repeat); err != nil {
			return fmt.Errorf("prove %d raw signatures and %d children: %w", job.raw, job.children, err)
		}
		r.Results = append(r.Results, result)
		say(cfg.Progress, "%s", result)
	}
	return nil
}

// String is the line of a table.
func (p ProverResult) String() string {
	line := fmt.Sprintf("threads %2d  raw %3d  children %2d", p.Threads, p.Raw, p.Children)
	if p.Skipped != "" {
		return line + "  skipped: " + p.Skipped
	}
	return line + fmt.Sprintf("  wall %7.0f ms  cpu %7.0f ms  peak %5d MiB  proof %6d bytes", p.WallMS, p.CPUMS, p.PeakBytes>>20, p.ProofBytes)
}

type jobSize struct{ raw, children int }

// jobs lists what the child can prove, small jobs first. With children a job of no raw signature is added.
func jobs(cfg *ProverConfig, caps *prover.Capabilities) []jobSize {
	var list []jobSize
	for _, children := range cfg.Children {
		sizes := cfg.Raw
		if children > 0 && !slices.Contains(sizes, 0) {
			sizes = append([]int{0}, sizes...)
		}
		for _, raw := range sizes {
			if raw+children < max(1, caps.MinInputs) || raw > caps.MaxRaw || children > caps.MaxChildren {
				continue
			}
			list = append(list, jobSize{raw, children})
		}
	}
	return list
}

// prove makes the proof repeat times.
func (p *ProverResult) prove(ctx context.Context, client *prover.Client, pid int, job prover.Job, repeat int) error {
	isReset := resetPeak(pid) == nil // without it the peak is that of all jobs so far
	var runs []prover.Result
	for range repeat {
		jobCtx, cancel := context.WithTimeout(ctx, jobTimeout)
		result, err := client.Prove(jobCtx, job)
		cancel()
		if err != nil {
			return err
		}
		runs = append(runs, result)
	}
	if isReset {
		p.PeakBytes, _ = peakMemory(pid) // 0 where the system does not say
	}
	slices.SortFunc(runs, func(a, b prover.Result) int { return cmp.Compare(a.Wall, b.Wall) })
	median := runs[len(runs)/2]
	p.WallMS, p.CPUMS, p.ProofBytes = milliseconds(median.Wall), milliseconds(median.CPU), len(median.Proof)
	return nil
}
