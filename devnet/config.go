package devnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

const (
	// warmupSlots are not measured: slot 0 is genesis and has no block, and in slot 1 the meshes still form.
	warmupSlots = 2

	// maxValidators is the number of devnet keys that ship with the program.
	maxValidators = 64

	// minSlotDuration is the shortest slot that the network's clients accept (protocol: MILLISECONDS_PER_SLOT).
	minSlotDuration = 4 * time.Second
)

// Config says what to run. Zero values of Validators and SlotDuration are chosen from the measured signature time.
type Config struct {
	Executable   string        // the aggnode binary; required
	Nodes        int           // nodes with keys, at least Committees; default 4
	Committees   int           // default 2
	Validators   int           // 1..64; 0: what the machine can bear
	Slots        int           // measured slots; default 8
	SlotDuration time.Duration // multiple of 5 ms, at least 4 s; 0: what the machine can bear
	Backend      string        // "lean-pq" or "bundle"; required
	Scheme       string        // "keccak" or "blake2s"; required
	Profile      string        // wire profile; required
	Dir          string        // where the network folder goes; empty: a temporary folder, removed at the end
	ProverDir    string        // environment of the prover; empty: the default
	Verifier     string        // who checks proofs, as --aggregate-verifier has it; empty: the nodes' default
	LogLevel     string        // of the nodes; default info
	OTLP         string        // collector URL handed to the nodes; empty: no traces
	ProverClass  string        // "default" (lowest priority) or "plain" (like the node itself, to see what that costs)
	SaveProofs   string        // folder for the proofs that the observer verified; empty: none
	ExtraArgs    []string      // more flags for every node

	// MeasureSign makes one signature of the scheme and says how long it took on one core.
	MeasureSign func(ctx context.Context) (time.Duration, error)

	Out   io.Writer // progress and table; required
	Plain bool      // no cursor movement: one line a slot
}

func (c *Config) validate() error {
	if c.Executable == "" || c.Out == nil || c.Backend == "" || c.Scheme == "" || c.Profile == "" {
		return errors.New("devnet: executable, output, backend, scheme and profile are required")
	}
	setDefault(&c.Nodes, 4)
	setDefault(&c.Committees, 2)
	setDefault(&c.Slots, 8)
	if c.ProverClass == "" {
		c.ProverClass = "default"
	}
	if c.LogLevel == "" {
		c.LogLevel = "info"
	}
	switch {
	case c.Committees < 1 || c.Committees > maxValidators:
		return fmt.Errorf("--committees %d: must be 1 to %d", c.Committees, maxValidators)
	case c.Nodes < c.Committees:
		return fmt.Errorf("--nodes %d: must be at least the number of committees, %d, because each committee has an aggregator of its own", c.Nodes, c.Committees)
	case c.Validators < 0 || c.Validators > maxValidators:
		return fmt.Errorf("--validators %d: must be 1 to %d, the number of devnet keys in this program", c.Validators, maxValidators)
	case c.Validators > 0 && c.Validators < 2*c.Committees:
		return fmt.Errorf("--validators %d: at least two a committee are needed (%d), a single vote is never aggregated", c.Validators, 2*c.Committees)
	case c.Slots < 1:
		return fmt.Errorf("--slots %d: must be at least 1", c.Slots)
	case c.SlotDuration != 0 && c.SlotDuration < minSlotDuration:
		return fmt.Errorf("--slot-duration %v: must be at least %v", c.SlotDuration, minSlotDuration)
	case c.SlotDuration%(5*time.Millisecond) != 0:
		return fmt.Errorf("--slot-duration %v: must be a multiple of 5ms, a slot has five intervals", c.SlotDuration)
	}
	return nil
}

func setDefault(v *int, def int) {
	if *v == 0 {
		*v = def
	}
}

// load describes what a devnet asks of the machine in one slot.
type load struct {
	validators   int
	slotDuration time.Duration
}

// choose picks validators and slot length so that a slot's signatures take at most half of an interval times the
// cores, leaving the rest of the slot to proofs. With real proofs a slot must also hold one proof per committee before
// interval 4: about 1 s of CPU for up to 32 raw signatures, and the children of all nodes share the cores.
func (c *Config) choose(sign time.Duration) load {
	l := load{validators: c.Validators, slotDuration: c.SlotDuration}
	cores := time.Duration(runtime.NumCPU())
	if l.slotDuration == 0 {
		l.slotDuration = minSlotDuration
		if c.Backend != "bundle" {
			l.slotDuration = max(8*time.Second, roundUp(time.Duration(c.Committees)*proofCPU*5/2/cores, time.Second))
			if cores < 4 {
				l.slotDuration = max(l.slotDuration, 12*time.Second)
			}
		}
	}
	if l.validators == 0 {
		room := l.slotDuration / 5 * cores / 2 // signing CPU that fits half an interval
		fit := int(room / max(sign, time.Microsecond))
		l.validators = min(max(fit, 2*c.Committees), maxValidators)
		if c.Backend != "bundle" {
			l.validators = min(l.validators, max(8, 2*c.Committees))
		}
	}
	return l
}

// proofCPU is the CPU of one lean-pq proof over up to 32 raw signatures (1.0 to 1.3 s on one core of an AMD EPYC,
// November 2026), rounded up for slower machines.
const proofCPU = 2 * time.Second

func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// startAllowance is how long before genesis the processes are started. Real children take 3 to 4 s of CPU each to set up, hello
// included, all sharing the cores: a prover and its spare on aggregators and, where proofs are not checked natively, a verifier
// and its spare everywhere.
func (c *Config) startAllowance() time.Duration {
	if c.Backend == "bundle" {
		return 6 * time.Second
	}
	children := 2 * c.Committees
	if c.Verifier != "" && c.Verifier != "native" {
		children += 2 * (c.Nodes + 1)
	}
	return 12*time.Second + time.Duration(children)*4*time.Second/time.Duration(runtime.NumCPU())
}
