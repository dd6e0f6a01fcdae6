package signer

import (
	"context"
	"errors"
	"time"

	"aggnode/wire"
	"aggnode/xmss"
)

const (
	// spreadSlots is over how many slots the keys build the subtrees that they
	// will need next: key i builds i mod spreadSlots slots early. With 512
	// positions a subtree that is an eighth of its life, so a key holds the
	// current and the next one and never a third.
	spreadSlots = 64
	// keysPerWorker is the least number of keys for which another goroutine is
	// started (ARCHITECTURE.md section 6).
	keysPerWorker = 4

	// A search for a randomizer makes 29,000 trials on average, exponentially distributed: nine in ten of all trials are among
	// the first 65,536 of their search. Those of the next slot's votes are begun ahead, which takes a third off the time from
	// the duty's timer to the last vote; so many bytes in all are for them, which is 65,536 for each of 32 keys.
	mostBegun   = 1 << 16
	begunMemory = 64 << 20
)

// warmTask is one subtree to have at hand, and how many trials of the search are to be begun; 0 leaves those as they are.
type warmTask struct {
	key    secretKey
	slot   wire.Slot
	trials int
}

// Warm prepares the keys for the first duty that is still ahead, on all processors, and returns when they are ready, when
// that duty's time has come, or when ctx ends. Called before the node joins its topics, so that building subtrees and the
// first burst of messages do not meet. Run goes on with what is left.
func (s *Signer) Warm(ctx context.Context) {
	first := s.firstDuty()
	until := s.clock.IntervalStart(first, 1)
	if !until.After(s.clock.Now()) { // it has begun and is done late, if at all
		until = s.clock.IntervalStart(first, 2)
	}
	ctx, cancel := s.withDeadline(ctx, until)
	defer cancel()
	tasks := s.firstTasks(first)
	start := s.clock.Now()
	s.warm(ctx, tasks, s.cfg.Parallel, time.Time{})
	if took := s.clock.Now().Sub(start); took > time.Millisecond {
		s.log.Info("keys prepared", "slot", uint64(first), "keys", len(tasks), "in_time", ctx.Err() == nil, "duration_ms", took.Milliseconds())
	}
}

// warmFirst prepares in the background what Warm left for the first duty. It does not stand back: the duty is near.
func (s *Signer) warmFirst(ctx context.Context, first wire.Slot) {
	s.inBackground(func() { s.warm(ctx, s.firstTasks(first), s.cfg.Parallel, time.Time{}) })
}

// warmNext prepares the keys for a slot in the background. The proposal comes first, since it is needed first.
func (s *Signer) warmNext(ctx context.Context, slot wire.Slot) {
	s.inBackground(func() {
		tasks := append(s.proposalTasks(slot), s.beginTasks(slot)...)
		s.warm(ctx, append(tasks, s.aheadTasks(slot)...), max(1, s.cfg.Parallel/2), s.clock.SlotStart(slot))
	})
}

// inBackground runs a preparation, unless the one before still runs: they want much the same subtrees.
func (s *Signer) inBackground(prepare func()) {
	if !s.warming.CompareAndSwap(false, true) {
		s.metrics.warmSkipped.Inc()

		return
	}
	s.background.Go(func() {
		defer s.warming.Store(false)
		prepare()
	})
}

// firstTasks are the subtrees that the duties of a slot still need: its votes, and its block unless the time for that is over.
func (s *Signer) firstTasks(first wire.Slot) []warmTask {
	if s.clock.Now().Before(s.clock.IntervalStart(first, 1)) {
		return append(s.proposalTasks(first), s.beginTasks(first)...)
	}

	return s.voteTasks(first)
}

// voteTasks are the subtrees that votes of a slot need.
func (s *Signer) voteTasks(slot wire.Slot) (tasks []warmTask) {
	for i := range s.validators {
		if key := s.validators[i].attestation; key != nil {
			tasks = append(tasks, warmTask{key: key, slot: slot})
		}
	}

	return tasks
}

// beginTasks are voteTasks with the trials that fit into the memory for them.
func (s *Signer) beginTasks(slot wire.Slot) []warmTask {
	tasks := s.voteTasks(slot)
	for i := range tasks {
		tasks[i].trials = min(mostBegun, begunMemory/xmss.BegunTrialSize/len(tasks))
	}

	return tasks
}

// proposalTasks is the subtree that the block of a slot needs, if it is ours.
func (s *Signer) proposalTasks(slot wire.Slot) []warmTask {
	proposer := wire.ValidatorIndex(uint64(slot) % uint64(s.cfg.Validators))
	key := s.byIndex[proposer].proposal
	if key == nil || slot == 0 {
		return nil
	}

	return []warmTask{{key: key, slot: slot}}
}

// aheadTasks are the subtrees that keys build early, so that not all do at once.
func (s *Signer) aheadTasks(slot wire.Slot) []warmTask {
	tasks := s.voteTasks(slot)
	for i := range tasks {
		tasks[i].slot += wire.Slot(i % spreadSlots)
	}

	return tasks
}

// warm prepares the subtrees in at most limit goroutines, the calling one included, and returns when all are done or ctx
// ended. Until needed it stands back while votes wait; the zero time is now. A key whose range does not hold the slot is
// left to the duty, which reports it once a slot.
func (s *Signer) warm(ctx context.Context, tasks []warmTask, limit int, needed time.Time) {
	start := s.clock.Now()
	share(len(tasks), limit, keysPerWorker, func(i int) {
		if ctx.Err() == nil && (s.cfg.Pace == nil || s.cfg.Pace(ctx, needed) == nil) {
			s.prepare(ctx, &tasks[i])
		}
	})
	s.metrics.warm.Observe(s.clock.Now().Sub(start).Seconds())
}

// prepare makes one subtree ready, and begins the trials.
func (s *Signer) prepare(ctx context.Context, task *warmTask) {
	epoch, ok := task.slot.Epoch()
	if !ok {
		return
	}
	err := s.prepareSafely(ctx, task, epoch)
	if err == nil || errors.Is(err, xmss.ErrEpochRange) || ctx.Err() != nil {
		return
	}
	s.metrics.warmFailed.Inc()
	if s.warmWarn.allow(s.clock.Now()) {
		s.log.Error("key can not be prepared", "slot", uint64(task.slot), "error", err.Error())
	}
}

// prepareSafely turns a panic into an error.
func (s *Signer) prepareSafely(ctx context.Context, task *warmTask, epoch wire.Epoch) (err error) {
	defer s.recovered(&err)
	s.cfg.Ordinarily(func() {
		if err = task.key.Prepare(ctx, uint32(epoch)); err == nil && task.trials > 0 {
			err = task.key.Begin(ctx, uint32(epoch), task.trials)
		}
	})

	return err
}
