package prover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	defaultHelloTimeout = 60 * time.Second       // set-up takes 2.5 s alone and 3 to 17 s under load (lean-pq 0.7.0, 2 cores)
	defaultCallTimeout  = 2 * time.Second        // a check takes 15 ms; ARCHITECTURE.md section 4 point 4
	defaultStopGrace    = 500 * time.Millisecond // ARCHITECTURE.md section 5 point 5
	defaultStuckAfter   = 3 * time.Second        // ARCHITECTURE.md section 5 point 5

	// restartMin and restartMax bound the back-off between a child's end and the next start. It doubles while no call
	// is answered, so that a child which dies at once costs a start each half minute and not a core.
	restartMin = 100 * time.Millisecond
	restartMax = 30 * time.Second

	// maxCalls bounds Config.Calls: each is a thread in the child.
	maxCalls = 64
)

// Config says what a Client runs and how long it waits. The zero value of a field means its default.
type Config struct {
	Command []string // program and arguments of the child; required
	Env     []string // complete environment of the child; nil means an empty one
	Dir     string   // working directory of the child; default: that of this process
	Role    Role     // required
	Scheme  string   // scheme that the child must be for; empty accepts any
	Threads int      // threads of one proof; 0 lets the child take what its process may use
	Calls   int      // concurrent calls of a verifier, 1 to 64; default 1. A prover has one
	// Spare keeps a second, warm child that takes over when the first one ends. A prover's is kept only where Available
	// says that the machine has the memory.
	Spare bool

	// Place readies a command for its place in the system (priority, limits, shim) before it is started. It may change
	// Path, Args and Env. Setpgid and Pdeathsig are set already.
	Place func(*exec.Cmd) error
	// MemoryMax is the limit in bytes that Watch enforces on a child and its descendants; 0 is no limit.
	MemoryMax int64
	// Watch blocks until the process tree of pid holds more than max bytes, then says so; nil once ctx ends. It is called
	// for each child, with a max beyond any machine where there is no limit. Required with MemoryMax.
	Watch func(ctx context.Context, pid int, max int64) error
	// Available returns the bytes that can still be taken before something must go, 0 where that is not known, which is
	// the default.
	Available func() int64
	// RestMemory is how many bytes a prover may hold after a proof; one that holds more twice in a row is replaced.
	// Default: what the child says at hello of set-up and a small proof, at least 256 MiB.
	RestMemory int64

	HelloTimeout time.Duration // from start to ready, set-up included; default 60 s
	CallTimeout  time.Duration // of a check: until its started frame, and again from there; default 2 s
	StopGrace    time.Duration // between end of input, SIGTERM and SIGKILL; default 500 ms
	StuckAfter   time.Duration // a job without CPU progress for this long is killed; default 3 s

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: a private registry
}

func (c *Config) validate() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("prover config: no command")
	case c.Role != RoleProve && c.Role != RoleVerify:
		return fmt.Errorf("prover config: role %d", c.Role)
	case c.Threads < 0 || c.Threads > 1<<10:
		return fmt.Errorf("prover config: %d threads", c.Threads)
	case c.Calls < 0 || c.Calls > maxCalls:
		return fmt.Errorf("prover config: %d calls, limit %d", c.Calls, maxCalls)
	case c.Role == RoleProve && c.Calls > 1:
		return fmt.Errorf("prover config: %d calls, a prover has one", c.Calls)
	case c.RestMemory < 0:
		return fmt.Errorf("prover config: %d bytes at rest", c.RestMemory)
	case c.MemoryMax < 0 || c.MemoryMax > 0 && c.Watch == nil:
		return errors.New("prover config: a memory limit needs Watch")
	case c.HelloTimeout < 0 || c.CallTimeout < 0 || c.StopGrace < 0 || c.StuckAfter < 0:
		return errors.New("prover config: negative duration")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Command, c.Env = slices.Clone(c.Command), slices.Clone(c.Env)
	for _, d := range []struct {
		to  *time.Duration
		def time.Duration
	}{
		{&c.HelloTimeout, defaultHelloTimeout},
		{&c.CallTimeout, defaultCallTimeout},
		{&c.StopGrace, defaultStopGrace},
		{&c.StuckAfter, defaultStuckAfter},
	} {
		if *d.to == 0 {
			*d.to = d.def
		}
	}
	if c.Calls == 0 {
		c.Calls = 1
	}
	if c.Available == nil {
		c.Available = func() int64 { return 0 }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// need estimates the peak memory in bytes of a child in its role.
func (c *Config) need(caps *Capabilities) int64 {
	if c.Role == RoleVerify {
		return caps.SetupMemory
	}
	return caps.MemoryNeed(0, min(2, caps.MaxChildren))
}
