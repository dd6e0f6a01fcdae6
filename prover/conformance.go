package prover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Report is what a conformance test found.
type Report struct {
	Capabilities Capabilities // what the prove role said at hello
	Checks       []CheckReport
}

// CheckReport is one line of a report. Err is nil where the backend behaved.
type CheckReport struct {
	Name    string
	Skipped string // why it does not apply, empty where it was run
	Took    time.Duration
	Err     error
}

// Failures counts the checks that failed.
func (r *Report) Failures() int {
	n := 0
	for i := range r.Checks {
		if r.Checks[i].Err != nil {
			n++
		}
	}
	return n
}

// errNotConforming is the error of a test that ran to its end with failures.
var errNotConforming = errors.New("the backend does not conform")

// patience is how many times StopGrace the checks give a child to end. They ask whether it ends by itself, not how soon a busy
// machine lets it: a child in the middle of native code of its set-up was seen to take 518 ms of the default 500.
const patience = 4

// Conformance runs the backend of cfg (its Role and Calls are not looked at) through everything that this package
// relies on, in both roles: agreement, jobs, refusals, broken frames, kills. It knows nothing about the backend but what
// it says itself; signatures are known ones of its scheme or made by it. Each check is a line on out. The error tells of
// a backend that fails, or of a test that could not go on; the report holds what was found until then.
//
// Checks of how a child ends allow it four times Config.StopGrace.
//
// It takes five set-ups and some ten proofs: about 40 s with lean-pq on two cores.
func Conformance(ctx context.Context, cfg Config, out io.Writer) (Report, error) {
	cfg.Role, cfg.Calls, cfg.Spare = RoleProve, 0, false
	if err := cfg.validate(); err != nil {
		return Report{}, err
	}
	if out == nil {
		out = io.Discard
	}
	t := &conformance{cfg: cfg.withDefaults(), say: newProgress(out), forker: newForker()}
	t.cfg.StopGrace *= patience
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); t.forker.run(quit) }()
	defer func() { close(quit); <-done }()

	for _, session := range []func(context.Context) error{t.proverSession, t.verifierSession, t.endOfInput, t.brokenFrames, t.clientSession} {
		if err := session(ctx); err != nil {
			return t.report, err
		}
	}
	if n := t.report.Failures(); n > 0 {
		return t.report, fmt.Errorf("%w: %d of %d checks failed", errNotConforming, n, len(t.report.Checks))
	}
	t.say.line("%s %s conforms: %d checks", t.report.Capabilities.Backend, t.report.Capabilities.Revision, len(t.report.Checks))
	return t.report, nil
}

// conformance is one run. Its sessions go one after the other on one goroutine.
type conformance struct {
	cfg    Config
	say    *progressWriter
	forker *forker
	report Report

	job   Job    // raw signatures to prove
	proof []byte // of the first two of them
}

// check runs one check; the error is in the report and does not end the test.
func (t *conformance) check(ctx context.Context, name string, timeout time.Duration, f func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := t.say.heartbeat("     " + name)
	began := time.Now()
	err := f(ctx)
	stop()
	took := time.Since(began)
	t.report.Checks = append(t.report.Checks, CheckReport{Name: name, Took: took, Err: err})
	if err != nil {
		t.say.line("FAIL %s (%.2f s): %v", name, took.Seconds(), err)
		return false
	}
	t.say.line("ok   %s (%.2f s)", name, took.Seconds())
	return true
}

func (t *conformance) skip(name, why string) {
	t.report.Checks = append(t.report.Checks, CheckReport{Name: name, Skipped: why})
	t.say.line("-    %s: %s", name, why)
}

// start brings a child of a role through hello. An error ends the test: nothing more can be asked.
func (t *conformance) start(ctx context.Context, role Role, calls int) (*process, error) {
	cfg := t.cfg
	cfg.Role, cfg.Calls = role, calls
	var p *process
	name := "hello as " + role.String()
	ok := t.check(ctx, name, cfg.HelloTimeout, func(ctx context.Context) error {
		var err error
		if p, err = startProcess(ctx, t.forker, &cfg); err != nil {
			return err
		}
		p.caps, err = p.greet(ctx)
		return err
	})
	if !ok {
		if p != nil {
			p.kill(errStopped)
			<-p.done
		}
		return nil, fmt.Errorf("%w: %s: %w", errNotConforming, name, t.report.Checks[len(t.report.Checks)-1].Err)
	}
	return p, nil
}

func (t *conformance) end(p *process) {
	p.kill(errStopped)
	<-p.done
}

// jobTimeout leaves a job twenty times what the first one took.
func (t *conformance) jobTimeout() time.Duration {
	return max(30*time.Second, 20*t.report.Capabilities.HelloProve)
}

// refused says that err is a refusal of one of the codes, about the given input.
func refused(err error, index int, codes ...Code) error {
	var r *RefusedError
	if err == nil {
		return errors.New("it was accepted")
	}
	if !errors.As(err, &r) {
		return fmt.Errorf("no refusal but: %w", err)
	}
	for _, c := range codes {
		if r.Code == c {
			if index >= 0 && r.Index != index {
				return fmt.Errorf("refused as %s, but it names input %d and not %d", r.Code, r.Index, index)
			}
			return nil
		}
	}
	return fmt.Errorf("refused as %s (%q), must be one of %v", r.Code, r.Text, codes)
}
