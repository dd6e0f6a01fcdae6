package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"aggnode/internal/lanes"
	"aggnode/netconfig/devkeys"
	"aggnode/scheduler"
	"aggnode/wire"
	"aggnode/xmss"
)

const (
	// subtreeSlots is how many slots of a key's subtree there are: keys change theirs at every multiple.
	subtreeSlots = 512
	// leadSlots are lived through before the first that is measured, so that no start is in the figures.
	leadSlots = 3
	// minDutySlot is the shortest slot by default. What a duty leaves over is for the preparation of keys, as in a real slot.
	minDutySlot = 250 * time.Millisecond
	// dutyShare is how many times the signatures alone a slot lasts by default: votes begin after a fifth of it, and have
	// until three fifths before they are a waste.
	dutyShare = 8
	// maxDutySlots keeps a measurement within the range of the embedded keys.
	maxDutySlots = 1 << 15
)

// DutyConfig says how signing duties are measured. The zero value of a field means its default.
type DutyConfig struct {
	Scheme       string        // of the keys. Default: blake2s
	Validators   int           // that vote, 1 to 64. Default: 32
	Slots        int           // that are measured, over a change of subtrees in their middle. Default: 200
	SlotDuration time.Duration // a multiple of 5 ms. Default: eight times what the signatures alone take, at least 250 ms
	DataDir      string        // where the journal's folder is made and removed: the disk whose fsync counts. Default: os.TempDir
	Load         DutyLoad      // beside the duties. Default: none
	Command      []string      // prover of DutyLoadProver, which speaks the prover protocol for scheme keccak
	Env          []string      // its complete environment
	// BlockAtTimer has the slot's block come with the timer of the votes, so that nothing can be searched for before. Default:
	// at the slot's start.
	BlockAtTimer bool
	// OrdinaryPriority keeps this process at ordinary priority also where the system allows more.
	OrdinaryPriority bool
	Progress         io.Writer
	Logger           *slog.Logger // default: discard
}

func (c DutyConfig) withDefaults() DutyConfig {
	c.Scheme = cmp.Or(c.Scheme, wire.SchemeBlake2s)
	c.Validators = cmp.Or(c.Validators, 32)
	c.Slots = cmp.Or(c.Slots, 200)
	c.Load = cmp.Or(c.Load, DutyLoadNone)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *DutyConfig) validate() error {
	switch {
	case c.Validators < 1 || c.Validators > devkeys.Validators:
		return fmt.Errorf("duty bench: %d validators, must be 1 to %d", c.Validators, devkeys.Validators)
	case c.Slots < 1 || c.Slots > maxDutySlots:
		return fmt.Errorf("duty bench: %d slots, must be 1 to %d", c.Slots, maxDutySlots)
	case c.SlotDuration < 0 || c.SlotDuration%(wire.IntervalsPerSlot*time.Millisecond) != 0:
		return fmt.Errorf("duty bench: slot of %v, must be a multiple of %d ms", c.SlotDuration, wire.IntervalsPerSlot)
	case c.Load == DutyLoadProver && len(c.Command) == 0:
		return errors.New("duty bench: no prover command")
	}
	return nil
}

// firstSlot is the first slot that is measured: the next change of subtrees is half of the slots away.
func (c *DutyConfig) firstSlot() wire.Slot {
	half := c.Slots / 2
	boundary := subtreeSlots * (1 + (half+leadSlots+1)/subtreeSlots) // leaves room for what is before the first
	return wire.Slot(boundary - half)
}

// Duty measures the votes of a slot from the duty's timer to the last that is published: the node's signer with real keys,
// a real journal, and a real pipeline that checks each vote; a slot is short, and the network is a sink that encodes what it
// gets. It blocks until everything it started has ended. A slot whose votes are not all published in time is counted and in
// no latency.
func Duty(ctx context.Context, cfg DutyConfig) (report *DutyReport, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n, err := newDutyNetwork(&cfg)
	if err != nil {
		return nil, err
	}
	if cfg.SlotDuration == 0 {
		if cfg.SlotDuration, err = n.slotDuration(ctx, cfg.firstSlot()); err != nil {
			return nil, err
		}
	}
	sched, stop, err := startScheduler(ctx, scheduler.Tier0, !cfg.OrdinaryPriority, new(meters), cfg.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	load, err := startDutyLoad(ctx, &cfg, sched)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, load.stop()) }()

	dir, err := os.MkdirTemp(cfg.DataDir, "aggnode-bench-duty-")
	if err != nil {
		return nil, fmt.Errorf("make folder for the journal: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	say(cfg.Progress, "%d votes (%s, %s) in each of %d slots of %v, load %s",
		cfg.Validators, cfg.Scheme, lanes.Current(), cfg.Slots, cfg.SlotDuration, cfg.Load)
	runtime.GC() // what the start left is not the first slot's to collect
	load.mark()
	before := ownCPU()
	seen, err := n.run(ctx, &cfg, dir, sched)
	if err != nil {
		return nil, err
	}
	report = newDutyReport(&cfg, seen)
	report.CPUMS = milliseconds((ownCPU() - before) / time.Duration(leadSlots+cfg.Slots))
	report.BlockAtTimer = cfg.BlockAtTimer
	report.Tier, report.RealTime = sched.Tier().String(), sched.RealTime()
	report.LoadCores, report.Proofs = load.used()
	return report, nil
}

// slotDuration signs once with each key, as a duty does, and derives how long a slot should be. The slot that it signs for
// is before all that are lived through.
func (n *dutyNetwork) slotDuration(ctx context.Context, first wire.Slot) (time.Duration, error) {
	epoch := uint32(first - leadSlots - 1)
	each := func(f func(*xmss.SecretKey) error) error {
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for _, k := range n.keys {
			group.Go(func() error { return f(k.Attestation) })
		}
		return group.Wait()
	}
	if err := each(func(k *xmss.SecretKey) error { return k.Prepare(ctx, epoch) }); err != nil {
		return 0, err
	}
	start := time.Now()
	err := each(func(k *xmss.SecretKey) error {
		_, err := k.Sign(ctx, epoch, [xmss.MessageSize]byte{})
		return err
	})
	const unit = wire.IntervalsPerSlot * time.Millisecond
	return max(minDutySlot, dutyShare*time.Since(start)).Truncate(unit), err
}
