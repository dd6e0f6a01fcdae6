package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"

	"aggnode/leanproof"
	"aggnode/prover"
	"aggnode/scheduler"
)

const (
	// checkLength is how long the rounds of Check go on, and fewestCheckRounds how many there are on a machine so slow that
	// they take longer.
	checkLength       = 75 * time.Second
	fewestCheckRounds = 3

	checkBatch   = 8  // proofs that share a pass over the guest's table
	countedCheck = 16 // checks over which allocations are counted
)

// checkSizes are the proofs that are checked: raw signatures and children. Children are aggregates of 32 signatures.
var checkSizes = []jobSize{{8, 0}, {1, 0}, {32, 0}, {64, 0}, {0, 1}, {0, 2}, {0, 4}}

// CheckConfig says how the two ways of checking a proof are compared. Command is required.
type CheckConfig struct {
	Command  []string              // a child that speaks the prover protocol, for scheme keccak and proofs of lean-pq
	Env      []string              // its complete environment
	Place    func(*exec.Cmd) error // at normal priority; may be nil
	Length   time.Duration         // of the rounds; default 75 s
	Progress io.Writer             // lines for a person; nil prints none
	Logger   *slog.Logger          // default: discard
}

// Check compares the native check of proofs with that of a child, for proofs that the child makes first. Both take turns, proof
// by proof, so that a machine whose speed drifts slows both alike. It blocks for about Length and a minute of set-up and
// proving on two cores; its children have ended when it returns. ctx ends it early, with its error.
func Check(ctx context.Context, cfg CheckConfig) (*CheckReport, error) {
	switch {
	case len(cfg.Command) == 0:
		return nil, errors.New("check bench: no prover command")
	case cfg.Length < 0:
		return nil, fmt.Errorf("check bench: a length of %s", cfg.Length)
	case cfg.Length == 0:
		cfg.Length = checkLength
	}
	t, err := loadTrace()
	if err != nil {
		return nil, err
	}
	base := prover.Config{Command: cfg.Command, Env: cfg.Env, Place: cfg.Place, Scheme: t.profile.Scheme, Logger: cfg.Logger}
	proofs, err := makeProofs(ctx, base, t, cfg.Progress)
	if err != nil {
		return nil, err
	}
	var children children
	defer children.stop()
	base.Role, base.Calls, base.Threads = prover.RoleVerify, 1, 1
	verifier, err := children.start(ctx, cfg.Progress, "verifier", base)
	if err != nil {
		return nil, err
	}
	r, err := newCheckRig(ctx, verifier, proofs)
	if err != nil {
		return nil, err
	}
	if err := r.run(ctx, cfg.Length, cfg.Progress); err != nil {
		return nil, err
	}
	caps, _ := verifier.Capabilities() // it serves, so it has told them
	return r.report(caps.Revision), nil
}

// provedJob is a proof of the comparison, with what both ways are asked about it.
type provedJob struct {
	size  jobSize
	claim prover.Claim
	proof []byte
}

// makeProofs has a child make the proofs, and ends it.
func makeProofs(ctx context.Context, cfg prover.Config, t *trace, progress io.Writer) ([]provedJob, error) {
	var children children
	defer children.stop()
	cfg.Role = prover.RoleProve
	maker, err := children.start(ctx, progress, "prover", cfg)
	if err != nil {
		return nil, err
	}
	caps, _ := maker.Capabilities() // it is ready, so it has told them
	var out []provedJob
	for _, size := range checkSizes {
		if need, have := caps.MemoryNeed(size.raw, size.children), scheduler.AvailableMemory("", ""); have > 0 && need > have {
			return nil, fmt.Errorf("check bench: %s needs %d MiB, the machine has %d MiB to give", size, need>>20, have>>20)
		}
		job := t.job(size.raw, size.children)
		jobCtx, cancel := context.WithTimeout(ctx, jobTimeout)
		made, err := maker.Prove(jobCtx, job)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("prove %s: %w", size, err)
		}
		say(progress, "made the proof of %s, %d bytes", size, len(made.Proof))
		out = append(out, provedJob{size, job.Claim(), made.Proof})
	}
	return out, nil
}

// String names a job in the report.
func (s jobSize) String() string {
	if s.children == 0 {
		return fmt.Sprintf("raw %d", s.raw)
	}
	return fmt.Sprintf("children %d", s.children)
}

// checkRig compares the child with a native verifier over proofs. Owned by one goroutine.
type checkRig struct {
	child  proofChecker
	native *leanproof.Verifier
	cases  []*checkCase
	rounds int
	rss    float64 // MiB that resident memory grew by, from before the key was loaded, when all proofs had been checked
}

// checkCase is one proof and what its checks took.
type checkCase struct {
	provedJob
	want  leanproof.Claims
	batch []leanproof.Item // copies of the proof, each in memory of its own

	child, inside, single, shared []float64 // ms: at the caller and inside the child, natively alone and in a batch, for a proof
	stages                        map[leanproof.Stage][]float64
	allocs, rss                   float64
}

// newCheckRig loads the verification key and checks each proof both ways for the first time, with an eye on memory.
func newCheckRig(ctx context.Context, child proofChecker, proofs []provedJob) (*checkRig, error) {
	r := &checkRig{child: child}
	for _, p := range proofs {
		c := &checkCase{provedJob: p, stages: map[leanproof.Stage][]float64{}}
		for i := range p.claim.Signers() {
			c.want.XMSS = append(c.want.XMSS, leanproof.Claim{PublicKey: [32]byte(p.claim.Key(i)), Message: p.claim.Message})
		}
		for range checkBatch {
			c.batch = append(c.batch, leanproof.Item{Proof: bytes.Clone(p.proof), Want: c.want})
		}
		r.cases = append(r.cases, c)
		if _, err := child.Check(ctx, c.claim, c.proof); err != nil { // also for the memory that it takes here
			return nil, fmt.Errorf("check %s in the child: %w", c.size, err)
		}
	}
	debug.FreeOSMemory() // collects; what the proofs left behind is not the verifier's
	before, err := residentMemory()
	if err != nil {
		return nil, err
	}
	if r.native, err = leanproof.New(); err != nil {
		return nil, err
	}
	for _, c := range r.cases {
		if err := r.warm(ctx, c); err != nil {
			return nil, fmt.Errorf("check %s natively: %w", c.size, err)
		}
		now, err := residentMemory()
		if err != nil {
			return nil, err
		}
		c.rss = round3(float64(now-before) / (1 << 20))
		r.rss = max(r.rss, c.rss)
	}
	return r, nil
}

// warm checks natively until scratch memory is there, and counts what a check allocates after that.
func (r *checkRig) warm(ctx context.Context, c *checkCase) error {
	if err := errors.Join(r.native.VerifyBatch(ctx, c.batch)...); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range countedCheck {
		if err := r.native.Verify(ctx, c.proof, c.want); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	c.allocs = round3(float64(after.Mallocs-before.Mallocs) / countedCheck)
	return nil
}

// residentMemory returns the bytes of this process that are in memory.
func residentMemory() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read resident memory: %w", err)
	}
	return kibibytes(b, "VmRSS"), nil
}

// run measures until the time is over, and a few rounds at least.
func (r *checkRig) run(ctx context.Context, length time.Duration, progress io.Writer) error {
	say(progress, "rounds of %d proofs for %s", len(r.cases), length)
	for began := time.Now(); r.rounds < fewestCheckRounds || time.Since(began) < length; r.rounds++ {
		for i := range r.cases {
			c := r.cases[(i+r.rounds)%len(r.cases)]
			if err := r.measure(ctx, c); err != nil {
				return fmt.Errorf("check %s, round %d: %w", c.size, r.rounds+1, err)
			}
		}
	}
	return nil
}

// measure checks one proof each way.
func (r *checkRig) measure(ctx context.Context, c *checkCase) error {
	began := time.Now()
	v, err := r.child.Check(ctx, c.claim, c.proof)
	if err != nil {
		return err
	}
	c.child, c.inside = append(c.child, msOf(time.Since(began))), append(c.inside, msOf(v.Wall))

	began = time.Now()
	if err := r.native.Verify(ctx, c.proof, c.want); err != nil {
		return err
	}
	c.single = append(c.single, msOf(time.Since(began)))

	began = time.Now()
	if err := errors.Join(r.native.VerifyBatch(ctx, c.batch)...); err != nil {
		return err
	}
	c.shared = append(c.shared, msOf(time.Since(began))/checkBatch)

	times, err := r.native.Time(ctx, c.proof)
	if err != nil {
		return err
	}
	for s, took := range times {
		if took > 0 {
			c.stages[leanproof.Stage(s)] = append(c.stages[leanproof.Stage(s)], 1000*msOf(took))
		}
	}
	return nil
}

func msOf(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
