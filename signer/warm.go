package signer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
)

// warmTask is one subtree to have at hand.
type warmTask struct {
	key  secretKey
	slot wire.Slot
}

// Warm prepares the keys for the first duty that is still ahead, and returns when
// they are ready or ctx ends. Called before the node joins its topics, so that
// building subtrees and the first burst of messages do not meet; Run finds the
// work done then.
func (s *Signer) Warm(ctx context.Context) {
	if len(s.validators) > 0 {
		s.warmFirst(ctx, s.firstDuty())
	}
}

// warmFirst prepares the keys of the first duty that is still ahead, and of the
// proposer of that slot and the next.
func (s *Signer) warmFirst(ctx context.Context, first wire.Slot) {
	tasks := append(s.voteTasks(first), s.proposalTasks(first)...)
	start := s.clock.Now()
	s.warm(ctx, append(tasks, s.proposalTasks(first+1)...), s.cfg.Parallel, time.Time{})
	if took := s.clock.Now().Sub(start); took > time.Millisecond {
		s.log.Info("keys prepared", "slot", uint64(first), "keys", len(tasks), "duration_ms", took.Milliseconds())
	}
}

// warmNext prepares the keys for a slot in the background, unless the
// preparation before still runs.
func (s *Signer) warmNext(ctx context.Context, slot wire.Slot) {
	if !s.warming.CompareAndSwap(false, true) {
		s.metrics.warmSkipped.Inc()

		return
	}
	tasks := append(s.voteTasks(slot), s.proposalTasks(slot)...)
	tasks = append(tasks, s.aheadTasks(slot)...)
	s.background.Go(func() {
		defer s.warming.Store(false)
		s.warm(ctx, tasks, max(1, s.cfg.Parallel/2), s.clock.SlotStart(slot))
	})
}

// voteTasks are the subtrees that votes of a slot need.
func (s *Signer) voteTasks(slot wire.Slot) (tasks []warmTask) {
	for i := range s.validators {
		if key := s.validators[i].attestation; key != nil {
			tasks = append(tasks, warmTask{key, slot})
		}
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

	return []warmTask{{key, slot}}
}

// aheadTasks are the subtrees that keys build early, so that not all do at once.
func (s *Signer) aheadTasks(slot wire.Slot) []warmTask {
	tasks := s.voteTasks(slot)
	for i := range tasks {
		tasks[i].slot += wire.Slot(i % spreadSlots)
	}

	return tasks
}

// warm prepares the subtrees in at most workers goroutines and returns when all
// are done or ctx ended. Until needed it stands back while votes wait; the zero
// time is now. A key whose range does not hold the slot is left to the duty to
// report.
func (s *Signer) warm(ctx context.Context, tasks []warmTask, workers int, needed time.Time) {
	start := s.clock.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, (len(tasks)+keysPerWorker-1)/keysPerWorker) {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(tasks) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if s.cfg.Pace != nil && s.cfg.Pace(ctx, needed) != nil {
					return
				}
				s.prepare(ctx, &tasks[n])
			}
		})
	}
	wg.Wait()
	s.metrics.warm.Observe(s.clock.Now().Sub(start).Seconds())
}

// prepare makes one subtree ready.
func (s *Signer) prepare(ctx context.Context, task *warmTask) {
	epoch, ok := task.slot.Epoch()
	if !ok {
		return
	}
	err := s.prepareSafely(ctx, task.key, epoch)
	if err == nil || errors.Is(err, xmss.ErrEpochRange) || ctx.Err() != nil {
		return
	}
	s.metrics.warmFailed.Inc()
	if s.warmWarn.allow(s.clock.Now()) {
		s.log.Error("key can not be prepared", "slot", uint64(task.slot), "error", err.Error())
	}
}

// prepareSafely turns a panic into an error.
func (s *Signer) prepareSafely(ctx context.Context, key secretKey, epoch wire.Epoch) (err error) {
	defer s.recovered(&err)

	return key.Prepare(ctx, uint32(epoch))
}
