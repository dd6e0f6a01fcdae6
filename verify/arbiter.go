package verify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/prover"
)

const (
	// compareEvery is how many checks there are for one that both make. The child takes 20 ms for it and 64 native checks some
	// 200, so it costs a tenth more. The number itself is a guess: a fault of either would show in almost every proof.
	compareEvery = 64

	// heldComparisons bounds what waits for the child's answer. One that finds no room is left out: the next will do.
	heldComparisons = 4
)

// judge checks proofs and says what a check cost where it was made. Native and prover.Client are judges. Safe for concurrent
// use.
type judge interface {
	Check(ctx context.Context, claim prover.Claim, proof []byte) (prover.Verdict, error)
}

// sharingJudge is one that checks several proofs in less time than one by one. Native is.
type sharingJudge interface {
	judge
	CheckBatch(ctx context.Context, checks []ProofCheck) (prover.Verdict, []error)
}

// ArbiterConfig says who checks proofs.
type ArbiterConfig struct {
	// Compare has the first check made by both judges, with an answer when both have given theirs, and one in 64 later ones
	// again by the child, while the answer is that of the native check. Run must run.
	Compare bool

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
}

// Arbiter has proofs checked natively as long as nothing speaks against it, and by a child from then on for the rest of the
// run. Safe for concurrent use.
type Arbiter struct {
	native  sharingJudge // immutable; nil where there is none
	child   judge        // immutable; nil where there is none
	compare bool         // immutable
	log     *slog.Logger
	metrics *arbiterMetrics

	isAgreed atomic.Bool // the first comparison found the same
	checks   atomic.Uint64
	held     chan comparison // see heldComparisons

	childOnly chan struct{} // closed when the child takes over
	once      sync.Once     // of closing it
	why       atomic.Value  // string: why it did; set before childOnly is closed
}

// comparison is a native verdict that waits for the child's.
type comparison struct {
	ProofCheck
	answer error
}

// NewArbiter makes an arbiter over one judge or two. Without native the child checks from the start; without child nobody
// can take over.
func NewArbiter(cfg ArbiterConfig, native *Native, child *prover.Client) *Arbiter {
	var n sharingJudge // a nil pointer in an interface is not nil
	var c judge
	if native != nil {
		n = native
	}
	if child != nil {
		c = child
	}
	return newArbiter(cfg, n, c)
}

func newArbiter(cfg ArbiterConfig, native sharingJudge, child judge) *Arbiter {
	a := &Arbiter{
		native: native, child: child, compare: cfg.Compare && native != nil && child != nil,
		log: cfg.Logger, metrics: newArbiterMetrics(cfg.Registerer),
		held: make(chan comparison, heldComparisons), childOnly: make(chan struct{}),
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if native == nil {
		a.useChild("")
	} else {
		a.metrics.native.Set(1)
	}
	return a
}

// ChildOnly is closed once the child alone checks. Until then nobody but a comparison asks it.
func (a *Arbiter) ChildOnly() <-chan struct{} { return a.childOnly }

// IsNative reports whether proofs are checked in this process.
func (a *Arbiter) IsNative() bool {
	select {
	case <-a.childOnly:
		return false
	default:
		return true
	}
}

// Why says why the child took over; empty while it has not, and where it was so from the start.
func (a *Arbiter) Why() string {
	why, _ := a.why.Load().(string)
	return why
}

// UseChild has the child check from now on, and logs why. It reports false, and changes nothing, where there is no child.
func (a *Arbiter) UseChild(why string) bool {
	if a.child == nil {
		return false
	}
	if a.IsNative() {
		a.log.Warn("proofs are checked by a child from now on", "why", why)
	}
	a.useChild(why)
	return true
}

func (a *Arbiter) useChild(why string) {
	a.once.Do(func() {
		a.why.Store(why)
		a.metrics.native.Set(0)
		close(a.childOnly)
	})
}

// Check answers as Native.Check and prover.Client.Check do.
func (a *Arbiter) Check(ctx context.Context, claim prover.Claim, proof []byte) (prover.Verdict, error) {
	if !a.IsNative() {
		return a.byChild(ctx, claim, proof)
	}
	v, err := a.native.Check(ctx, claim, proof)
	a.metrics.checks[judgeNative].Observe(v.Wall.Seconds())
	return v, a.second(ctx, ProofCheck{claim, proof}, err)
}

// CheckBatch is Check of several proofs, with what all of them cost.
func (a *Arbiter) CheckBatch(ctx context.Context, checks []ProofCheck) (prover.Verdict, []error) {
	if !a.IsNative() {
		return a.byChildInTurn(ctx, checks)
	}
	v, errs := a.native.CheckBatch(ctx, checks)
	for i, err := range errs {
		a.metrics.checks[judgeNative].Observe((v.Wall / time.Duration(len(checks))).Seconds())
		errs[i] = a.second(ctx, checks[i], err)
	}
	return v, errs
}

// second takes a native answer, has it compared where it is its turn, and returns the answer that counts.
func (a *Arbiter) second(ctx context.Context, check ProofCheck, answer error) error {
	if !a.compare || !isVerdict(answer) {
		return answer
	}
	c := comparison{check, answer}
	switch {
	case !a.isAgreed.Load() || !a.IsNative(): // the latter in the rest of a batch
		if _, second := a.byChild(ctx, check.Claim, check.Proof); !a.settle(c, second) {
			return second
		}
	case a.checks.Add(1)%compareEvery == 0:
		select {
		case a.held <- c:
		default:
		}
	}
	return answer
}

func (a *Arbiter) byChild(ctx context.Context, claim prover.Claim, proof []byte) (prover.Verdict, error) {
	v, err := a.child.Check(ctx, claim, proof)
	if v.Wall > 0 {
		a.metrics.checks[judgeChild].Observe(v.Wall.Seconds())
	}
	return v, err
}

func (a *Arbiter) byChildInTurn(ctx context.Context, checks []ProofCheck) (total prover.Verdict, errs []error) {
	errs = make([]error, len(checks))
	for i, c := range checks {
		v, err := a.byChild(ctx, c.Claim, c.Proof)
		total.Wall, total.CPU, errs[i] = total.Wall+v.Wall, total.CPU+v.CPU, err
	}
	return total, errs
}

// Run makes the comparisons that nobody waits for, one at a time, until ctx ends.
func (a *Arbiter) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-a.held:
			_, second := a.byChild(ctx, c.Claim, c.Proof) // it has a deadline of its own
			a.settle(c, second)
		}
	}
}

// settle compares the two answers. After a disagreement, for which it returns false, the child is believed. Where the child
// gave no answer nothing was learnt.
func (a *Arbiter) settle(c comparison, second error) bool {
	if !isVerdict(second) {
		return true
	}
	a.metrics.comparisons.Inc()
	if (c.answer == nil) == (second == nil) {
		a.isAgreed.Store(true)
		return true
	}
	a.metrics.disagreements.Inc()
	a.log.Error("the native check and the verifier child disagree about a proof: the child checks from now on",
		"native", answerText(c.answer), "child", answerText(second), "participants", c.Claim.Signers(), "proof_bytes", len(c.Proof))
	a.useChild("the native check and the child disagreed about a proof")
	return false
}

// isVerdict tells answers about the bytes from those about the judge.
func isVerdict(err error) bool {
	return err == nil || !errors.Is(err, prover.ErrUnavailable) &&
		(errors.Is(err, prover.ErrBadProof) || errors.Is(err, prover.ErrClaimMismatch))
}

func answerText(err error) string {
	if err == nil {
		return "valid"
	}
	return err.Error()
}
