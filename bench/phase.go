package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"
)

// phase is one kind of proving in one round.
type phase struct {
	round         int
	kind          Kind
	single, burst part
}

// part is what one pattern of traffic showed.
type part struct {
	traffic
	used   usage
	proofs float64
}

// phase runs one kind of a length of its share in length. The proof that is running at the end is finished before it returns, unmeasured.
func (r *rig) phase(ctx context.Context, round int, kind Kind, length time.Duration) (p *phase, err error) {
	length = kind.length(length)
	if kind == KindOtherWay {
		defer func(c proofChecker) { r.checks.checker = c }(r.checks.checker)
		r.checks.checker = r.otherWay
	}
	runtime.GC() // what the last phase left is not this one's to collect
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	stopProfile, err := r.startProfile(round, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()

	loadCtx, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	type proofs struct {
		spans []span
		err   error
	}
	loaded := make(chan proofs, 1) // one value
	go func() {
		spans, err := r.loads[kind](loadCtx)
		if err != nil {
			stopLoad() // the other way round: the traffic ends too
		}
		loaded <- proofs{spans, err}
	}()
	p = &phase{round: round, kind: kind}
	single := length * singleParts / phaseParts
	err = r.part(loadCtx, &p.single, oneAtATime, single)
	if err == nil {
		err = r.part(loadCtx, &p.burst, inBursts, length-single)
	}
	stopLoad()
	made := <-loaded
	if made.err != nil {
		return nil, made.err
	}
	if err != nil {
		return nil, err
	}
	for _, part := range []*part{&p.single, &p.burst} {
		part.proofs = share(made.spans, part.begin, part.end)
	}
	return p, nil
}

func (r *rig) part(ctx context.Context, p *part, how pattern, length time.Duration) error {
	before := r.usage()
	t, err := r.send(ctx, how, length)
	if err != nil {
		return err
	}
	after := r.usage()
	p.traffic = *t
	p.used = usage{
		node: after.node - before.node, verifier: after.verifier - before.verifier, prover: after.prover - before.prover,
		collector: after.collector - before.collector,
	}
	return nil
}

// startProfile begins the CPU profile of a phase.
func (r *rig) startProfile(round int, kind Kind) (stop func() error, err error) {
	if r.profile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(r.profile, fmt.Sprintf("round-%02d-%s.pprof", round, kind)))
	if err != nil {
		return nil, fmt.Errorf("create CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start CPU profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
