package devnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// pollInterval is how often the nodes are asked for new aggregates. The times in the figures are the nodes' own.
const pollInterval = 250 * time.Millisecond

// run is the state of one devnet. It is owned by the goroutine of Run.
type run struct {
	cfg     Config
	load    load
	sign    time.Duration
	members []member
	clients []*client // one per member
	genesis time.Time
	tally   *tally
	table   *table
	errors  *errorLog
	saver   *saver
	procs   []*process // one per member
	cpu     *cpuMeter  // nil before the measured slots
	supply  supply     // of the provers when the first measured slot began
}

// Run runs a devnet to its end and returns what it measured. A cancelled ctx ends it early with the error of ctx.
func Run(ctx context.Context, cfg Config) (*Summary, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	sign, err := cfg.MeasureSign(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure one signature: %w", err)
	}
	r := &run{cfg: cfg, sign: sign, load: cfg.choose(sign), errors: &errorLog{}, table: &table{out: cfg.Out, plain: cfg.Plain}}
	if r.members, err = cfg.members(); err != nil {
		return nil, err
	}
	for _, m := range r.members {
		r.clients = append(r.clients, newClient(m.ports))
	}
	r.tally = newTally(r.load.validators, r.load.slotDuration, cfg.Slots)
	if cfg.SaveProofs != "" {
		if r.saver, err = newSaver(cfg.SaveProofs, cfg.Scheme); err != nil {
			return nil, err
		}
	}
	dir, remove, err := makeFolder(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s, err := r.inFolder(ctx, dir)
	if len(r.errors.texts()) > 0 && cfg.Dir == "" {
		r.table.line("logs are kept for a look: " + filepath.Join(dir, "data"))
		return s, err
	}
	return s, errors.Join(err, remove())
}

// inFolder starts the processes, follows them to the last measured slot and stops them.
func (r *run) inFolder(ctx context.Context, dir string) (*Summary, error) {
	cfg := &r.cfg
	r.genesis = time.Now().Add(cfg.startAllowance()).Truncate(time.Second).Add(time.Second)
	genesisDir := filepath.Join(dir, "genesis")
	if err := cfg.writeNetwork(genesisDir, r.load, r.members, r.genesis); err != nil {
		return nil, err
	}
	total := r.genesis.Add(r.load.slotDuration * time.Duration(warmupSlots+cfg.Slots))
	r.table.line(fmt.Sprintf("devnet: %d nodes + 1 observer, %d validators in %d committees, backend %s, scheme %s, one signature %v",
		cfg.Nodes, r.load.validators, cfg.Committees, cfg.Backend, cfg.Scheme, r.sign.Round(10*time.Microsecond)))
	r.table.line(fmt.Sprintf("%d slots of %v after %d of warm-up (w), network folder %s, done at %s",
		cfg.Slots, r.load.slotDuration, warmupSlots, genesisDir, total.Format(time.TimeOnly)))

	fork := newForker()
	defer fork.stop()
	defer func() {
		// ctx may be cancelled already; the nodes still get their time to drain.
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace+time.Second)
		defer cancel()
		stopAll(stopCtx, r.procs)
	}()
	for _, m := range r.members {
		dataDir := filepath.Join(dir, "data", m.name)
		p, err := startProcess(fork, cfg.Executable, m.name, dataDir, cfg.runArgs(genesisDir, dataDir, m), cfg.environ(dataDir, m), r.errors)
		if err != nil {
			return nil, err
		}
		r.procs = append(r.procs, p)
	}
	if err := r.untilGenesis(ctx, r.procs); err != nil {
		return nil, err
	}
	if err := r.follow(ctx, total); err != nil {
		return nil, err
	}
	rejected, err := r.observer().counter(ctx, "aggnode_pipeline_verdicts_total", `class="aggregate"`, `verdict="reject"`)
	if err != nil {
		return nil, fmt.Errorf("ask the observer for its verdicts: %w", err)
	}
	s := r.tally.summary()
	if err := r.addLoad(ctx, &s); err != nil {
		return nil, err
	}
	stopAll(ctx, r.procs)
	s.Committees, s.Backend, s.Scheme, s.Nodes = cfg.Committees, cfg.Backend, cfg.Scheme, cfg.Nodes
	s.AggregatesRejected = int(rejected)
	s.Errors, s.ErrorLines = int(r.errors.count.Load()), r.errors.texts()
	s.SignMS = float64(r.sign.Microseconds()) / 1000
	return &s, nil
}

func (r *run) observer() *client { return r.clients[len(r.clients)-1] }

// untilGenesis counts down and says how many nodes are ready. A process that ends before genesis ends the run: the
// flags or the machine are at fault, and waiting would hide it.
func (r *run) untilGenesis(ctx context.Context, procs []*process) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	ready := 0
	for {
		for i, p := range procs {
			select {
			case <-p.exited:
				return fmt.Errorf("%s ended before genesis: %v\n%s", p.name, p.cmd.ProcessState, logTail(r.members[i].name, p))
			default:
			}
		}
		left := time.Until(r.genesis)
		if left <= 0 {
			r.table.line(fmt.Sprintf("genesis: %d of %d nodes ready", ready, len(procs)))
			return nil
		}
		if ready < len(procs) {
			ready = 0
			for _, c := range r.clients {
				if c.ready(ctx) {
					ready++
				}
			}
		}
		text := fmt.Sprintf("genesis in %2.0f s, %d of %d nodes ready", left.Seconds(), ready, len(procs))
		if r.table.plain && int(left.Seconds())%5 == 0 {
			r.table.line(text)
		}
		r.table.liveLine(text)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// follow polls the nodes until the end and draws a row a slot.
func (r *run) follow(ctx context.Context, end time.Time) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	drawn := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		r.collect(ctx)
		now := time.Now()
		slot := uint64(max(now.Sub(r.genesis), 0) / r.load.slotDuration)
		for ; drawn < slot && drawn <= r.tally.last; drawn++ {
			r.table.row(drawn, r.tally.slot(drawn), r.tally, true)
		}
		if now.After(end) {
			return nil
		}
		if r.cpu == nil && slot >= r.tally.first {
			if err := r.startMeter(ctx); err != nil {
				return err
			}
		}
		r.table.row(slot, r.tally.slot(slot), r.tally, false)
	}
}

// collect asks all nodes once. A node that does not answer is not an error here: if it ended, its exit is counted.
func (r *run) collect(ctx context.Context) {
	for i, m := range r.members {
		if m.committee < 0 && !m.isObserver {
			continue
		}
		records, err := r.clients[i].aggregates(ctx)
		if err != nil {
			continue
		}
		for _, rec := range records {
			switch {
			case m.isObserver:
				r.tally.observe(rec)
				if r.saver != nil {
					if err := r.saver.save(ctx, r.clients[i], rec); err != nil {
						r.errors.add(m.name, err.Error())
					}
				}
			case rec.Source == "own":
				r.tally.publish(rec)
			default:
				r.tally.checked(rec)
			}
		}
	}
}

// startMeter notes what the nodes have used before the measured slots.
func (r *run) startMeter(ctx context.Context) error {
	first, _, err := r.readCPU()
	if err != nil {
		return err
	}
	r.cpu = &cpuMeter{began: time.Now(), first: first}
	r.supply, err = r.readSupply(ctx)
	return err
}

// addLoad adds what the roles used over the measured slots.
func (r *run) addLoad(ctx context.Context, s *Summary) error {
	if r.cpu == nil {
		return nil
	}
	now, children, err := r.readCPU()
	if err != nil {
		return err
	}
	s.VerifierChildren = children
	at := time.Now()
	made, err := r.readSupply(ctx)
	if err != nil {
		return err
	}
	s.CPUPctByRole = r.cpu.byRole(r.members, now, at)
	made.addTo(s, r.supply)
	return nil
}

// logTail is the end of a process's log, for an error message.
func logTail(name string, p *process) string {
	path := filepath.Join(p.dataDir, "stdout.log")
	b, err := os.ReadFile(path)
	if err != nil {
		return name + ": " + err.Error()
	}
	const most = 2000
	return string(b[max(0, len(b)-most):])
}
