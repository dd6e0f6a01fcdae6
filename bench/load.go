package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/sha3"

	"aggnode/prover"
	"aggnode/scheduler"
)

const (
	// jobVotes is the size of the jobs: what a subnet of a small network has in a slot. Eight signatures take 0.6 s on two
	// cores (lean-pq 0.7.0), so a phase has some twenty proofs.
	jobVotes = 8
	// jobTimeout ends a measurement whose prover hangs; a job took at most 17 s on the busiest machine seen.
	jobTimeout = 60 * time.Second
	// hashesPerLook is how many hashes of about 0.5 us are made between two looks at ctx.
	hashesPerLook = 512
)

// load proves until ctx ends, and returns when each proof was made. It finishes the proof that it is at.
type load func(ctx context.Context) ([]span, error)

// unisolated is a load beside which this process has no precedence either, as no other client has.
func unisolated(sched *scheduler.Scheduler, l load) load {
	return func(ctx context.Context) ([]span, error) {
		defer sched.SuspendRealTime()()
		return l(ctx)
	}
}

// noLoad is the absent prover.
func noLoad(ctx context.Context) ([]span, error) {
	<-ctx.Done()
	return nil, nil
}

// proveJobs keeps a child at one job after the other. grant is asked before each, as the node's session does; nil asks
// nobody. run outlives ctx: the end of a phase must not kill the child.
func proveJobs(run context.Context, maker proofMaker, job prover.Job, grant func(context.Context) (func(), error)) load {
	return func(ctx context.Context) ([]span, error) {
		var spans []span
		for ctx.Err() == nil {
			s, err := proveOnce(run, maker, job, grant)
			if err != nil {
				return spans, err
			}
			spans = append(spans, s)
		}
		return spans, nil
	}
}

func proveOnce(run context.Context, maker proofMaker, job prover.Job, grant func(context.Context) (func(), error)) (span, error) {
	ctx, cancel := context.WithTimeout(run, jobTimeout)
	defer cancel()
	if grant != nil {
		release, err := grant(ctx)
		if err != nil {
			return span{}, err
		}
		defer release()
	}
	s := span{start: time.Now()}
	if _, err := maker.Prove(ctx, job); err != nil {
		return span{}, fmt.Errorf("prove: %w", err)
	}
	s.end = time.Now()
	return s, nil
}

// hashInProcess does in goroutines what a prover in the node's own process would do to it: hashing on every processor,
// which the runtime shares out in slices of 10 ms.
func hashInProcess(ctx context.Context) ([]span, error) {
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			h := sha3.NewLegacyKeccak256()
			var block [32]byte
			for ctx.Err() == nil {
				for range hashesPerLook {
					h.Reset()
					_, _ = h.Write(block[:]) // a hash never fails
					h.Sum(block[:0])
				}
			}
		})
	}
	wg.Wait()
	return nil, nil
}
