package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"time"

	"aggnode/internal/lanes"
	"aggnode/scheduler"
	"aggnode/xmss"
)

const (
	subtreeLeaves = 512
	batchSize     = 16 // signatures of a batch: what the pipeline drains at most
	leafBatch     = 32 // leaves of one timed call
	shortSearches = 3  // signatures that show what a signature costs besides its search
)

// xmssRig is the key and the signatures that all paths are measured with. The key is nobody's, so signing many messages at one
// epoch gives nothing away.
type xmssRig struct {
	cfg     *XMSSConfig
	began   time.Time
	key     *xmss.SecretKey
	copies  []*xmss.SecretKey // the same key, each with subtrees of its own: as costly as other keys, and cheaply made
	checks  []xmss.Check
	message uint64 // counts the messages signed
	subtree uint32 // counts the subtrees built, so that none is at hand when it is asked for

	keygen        []float64 // seconds on all cores
	keygenOneCore time.Duration
}

// newXMSSRig makes key and signatures on the current path.
func newXMSSRig(ctx context.Context, cfg *XMSSConfig) (*xmssRig, error) {
	r := &xmssRig{cfg: cfg, began: time.Now()}
	var err error
	if r.key, err = r.generate(ctx, 0); err != nil {
		return nil, err
	}
	file, err := r.key.MarshalBinary()
	if err != nil {
		return nil, err
	}
	for range warmKeys {
		k, err := xmss.ParseSecretKey(file)
		if err != nil {
			return nil, err
		}
		r.copies = append(r.copies, k)
	}
	r.checks = make([]xmss.Check, batchSize)
	err = onAllCores(ctx, batchSize, func(ctx context.Context, i int) (err error) {
		c := &r.checks[i]
		c.PublicKey, c.Epoch, c.Message = r.key.PublicKey(), uint32(i), messageOf(uint64(i))
		c.Signature, err = r.key.Sign(ctx, c.Epoch, c.Message)
		return err
	})
	say(cfg.Progress, "key of scheme %s over %d epochs and %d signatures made in %.1f s",
		cfg.Scheme, cfg.epochs, batchSize, r.wall().Seconds())
	r.message = batchSize
	return r, err
}

func (r *xmssRig) generate(ctx context.Context, workers int) (*xmss.SecretKey, error) {
	return xmss.Generate(ctx, r.cfg.Scheme, seedOf("xmss", 0), 0, r.cfg.epochs-1, xmss.GenerateOptions{Workers: workers})
}

func messageOf(n uint64) (m [xmss.MessageSize]byte) {
	binary.LittleEndian.PutUint64(m[:], n)
	return m
}

// measure takes all measurements of one path in one round. The path is in use.
func (r *xmssRig) measure(ctx context.Context, s *pathSamples) error {
	runtime.GC()
	if err := r.measureOneCore(ctx, s); err != nil {
		return err
	}
	return r.warm(ctx, s)
}

func (r *xmssRig) measureOneCore(ctx context.Context, s *pathSamples) error {
	runtime.LockOSThread() // for oneCore
	defer runtime.UnlockOSThread()
	for _, part := range []struct {
		do    func(context.Context, *pathSamples) error
		lanes *lanes.Occupancy
	}{
		{r.sign, &s.signLanes},
		{r.verify1, &s.verify1Lanes},
		{r.verify16, &s.verify16Lanes},
		{r.subtrees, &s.subtreeLanes},
	} {
		s.hash = append(s.hash, r.hash()) // beside each: what slows one slows the other
		before := r.occupancy()
		if err := part.do(ctx, s); err != nil {
			return err
		}
		after := r.occupancy()
		part.lanes.Used += after.Used - before.Used
		part.lanes.Capacity += after.Capacity - before.Capacity
	}
	return nil
}

func (r *xmssRig) occupancy() lanes.Occupancy {
	if r.cfg.Scheme == xmss.Keccak {
		return lanes.KeccakOccupancy()
	}
	return lanes.Blake2sOccupancy()
}

// repeat calls do for a tenth of the search's time, and at least a few times, and returns what the calls took by a clock, each
// divided by items and by unit.
func (r *xmssRig) repeat(
	ctx context.Context, clock func() time.Duration, items int, unit time.Duration, do func() error,
) ([]float64, error) {
	const fewest = 3
	var took []float64
	for began := time.Now(); len(took) < fewest || time.Since(began) < r.cfg.Search/10; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := clock()
		if err := do(); err != nil {
			return nil, err
		}
		took = append(took, float64(clock()-start)/float64(unit)/float64(items))
	}
	return took, nil
}

// oneCore is the clock for work of one core: the processor time of the thread, to which other programs add nothing. On a
// machine that does nothing else it agrees with the wall.
var oneCore = scheduler.ThreadCPU

// wall is the clock for work of all cores.
func (r *xmssRig) wall() time.Duration { return time.Since(r.began) }

// hash is the time of one hash in the fastest kernel with all lanes used, in ns.
func (r *xmssRig) hash() float64 {
	const calls = 64
	timed := func(hashes int, do func()) float64 {
		took, err := r.repeat(context.Background(), oneCore, calls*hashes, time.Nanosecond, func() error {
			for range calls {
				do()
			}
			return nil
		})
		if err != nil {
			return 0 // can not be: neither ends with an error
		}
		return median(took)
	}
	if r.cfg.Scheme == xmss.Keccak {
		const blocks = 8
		var a lanes.KeccakWide
		var in [blocks]lanes.KeccakWide64
		var out [blocks]lanes.KeccakWideDigest
		permute := timed(lanes.KeccakLanes, func() { lanes.PermuteWide(&a, lanes.KeccakLanes) })
		short := timed(blocks*lanes.KeccakLanes, func() { lanes.Keccak64Wide(out[:], in[:], blocks*lanes.KeccakLanes) })
		return min(permute, short)
	}
	const steps = 16
	b := lanes.NewBlake2s()
	defer b.Done()
	var m lanes.Blake2sWide
	var out lanes.Blake2sOutcome
	var t lanes.Blake2sTrials
	var begun lanes.Blake2sStates
	walk := timed(steps*lanes.Blake2sWidth, func() { b.Walk(&m, steps, lanes.FirstLanes(lanes.Blake2sWidth)) })
	try := timed(2*lanes.Blake2sWidth, func() { b.Try(&out, &t, &begun) })
	return min(walk, try)
}

// sign searches for randomizers, and signs what was found soonest: there the search hides least of the rest.
func (r *xmssRig) sign(ctx context.Context, s *pathSamples) error {
	if err := r.key.Prepare(ctx, 0); err != nil {
		return err
	}
	var round []search
	for began := time.Now(); time.Since(began) < r.cfg.Search || len(round) < shortSearches; {
		x := search{message: r.message}
		r.message++
		start := oneCore()
		n, err := r.key.Trials(ctx, 0, messageOf(x.message))
		if err != nil {
			return err
		}
		x.trials, x.took = n, oneCore()-start
		round = append(round, x)
		s.searched += x.took
		s.trials += n
	}
	s.searches = append(s.searches, round...)
	slices.SortFunc(round, func(a, b search) int { return a.trials - b.trials })
	for _, x := range round[:shortSearches] {
		took, err := r.repeat(ctx, oneCore, 1, time.Microsecond, func() error {
			_, err := r.key.Sign(ctx, 0, messageOf(x.message))
			return err
		})
		if err != nil {
			return err
		}
		s.rest = append(s.rest, max(0, median(took)-float64(x.trials)*s.trialUS()))
	}
	return nil
}

// verify1 checks the signatures one by one.
func (r *xmssRig) verify1(ctx context.Context, s *pathSamples) error {
	took, err := r.repeat(ctx, oneCore, batchSize, time.Microsecond, func() error {
		for i := range r.checks {
			if err := r.check(r.checks[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	})
	s.verify1 = append(s.verify1, took...)
	return err
}

// verify16 checks them all at once, a few times for each look at the clock, which costs as much as half a check.
func (r *xmssRig) verify16(ctx context.Context, s *pathSamples) error {
	const batches = 8
	took, err := r.repeat(ctx, oneCore, batches*batchSize, time.Microsecond, func() error {
		for range batches {
			if err := r.check(r.checks); err != nil {
				return err
			}
		}
		return nil
	})
	s.verify16 = append(s.verify16, took...)
	return err
}

// check verifies; every signature of the rig is valid.
func (r *xmssRig) check(checks []xmss.Check) error {
	var answers [batchSize]xmss.Answer
	r.cfg.Scheme.VerifyBatch(checks, answers[:])
	for i := range checks {
		if answers[i].Err != nil {
			return fmt.Errorf("check signature of epoch %d: %w", checks[i].Epoch, answers[i].Err)
		}
	}
	return nil
}

// subtrees computes leaves and whole subtrees on one core.
func (r *xmssRig) subtrees(ctx context.Context, s *pathSamples) error {
	took, err := r.repeat(ctx, oneCore, leafBatch, time.Microsecond, func() error { return r.key.Leaves(0, leafBatch-1) })
	if err != nil {
		return err
	}
	s.leaf = append(s.leaf, took...)
	took, err = r.repeat(ctx, oneCore, 1, time.Millisecond, func() error { return r.key.Prepare(ctx, r.nextSubtree()) })
	s.subtree = append(s.subtree, took...)
	return err
}

// nextSubtree is an epoch of a subtree that no key has at hand: each keeps the two used last.
func (r *xmssRig) nextSubtree() uint32 {
	r.subtree++
	return r.subtree * subtreeLeaves % r.cfg.epochs
}

// warm prepares the same subtree of all copies on all cores, and then once more when it is at hand.
func (r *xmssRig) warm(ctx context.Context, s *pathSamples) error {
	epoch := r.nextSubtree()
	pass := func() error {
		return onAllCores(ctx, len(r.copies), func(ctx context.Context, i int) error { return r.copies[i].Prepare(ctx, epoch) })
	}
	start := r.wall()
	if err := pass(); err != nil {
		return err
	}
	s.warm = append(s.warm, float64(r.wall()-start)/float64(time.Millisecond))
	took, err := r.repeat(ctx, r.wall, 1, time.Microsecond, pass)
	s.allWarm = append(s.allWarm, took...)
	return err
}

// measureKeygen makes keys on the current path.
func (r *xmssRig) measureKeygen(ctx context.Context) error {
	for range keygens {
		start := r.wall()
		if _, err := r.generate(ctx, 0); err != nil {
			return err
		}
		r.keygen = append(r.keygen, (r.wall() - start).Seconds())
	}
	start := r.wall()
	if _, err := r.generate(ctx, 1); err != nil {
		return err
	}
	r.keygenOneCore = r.wall() - start
	say(r.cfg.Progress, "key generation over %d epochs: %.2f s on all cores, %.2f s on one",
		r.cfg.epochs, median(r.keygen), r.keygenOneCore.Seconds())
	return nil
}
