package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"aggnode/node"
	"aggnode/scheduler"
)

// leastMemoryLimit is the least --memory-limit-mib: below it the collector would run most of the time.
const leastMemoryLimit = 64

// limitMemory gives the Go runtime its soft limit: that of the settings, else of GOMEMLIMIT, else of the rule of
// scheduler.SoftLimit. A machine whose memory can not be read has none.
func limitMemory(s *settings, cfg *node.Config, log *slog.Logger) error {
	limit, why := s.MemoryLimit<<20, "--memory-limit-mib"
	switch {
	case s.MemoryLimit != 0 && (s.MemoryLimit < leastMemoryLimit || s.MemoryLimit > 1<<30):
		return fmt.Errorf("--memory-limit-mib %d: must be 0 for the default, or %d to %d", s.MemoryLimit, leastMemoryLimit, 1<<30)
	case s.MemoryLimit != 0:
	case os.Getenv("GOMEMLIMIT") != "":
		limit, why = debug.SetMemoryLimit(-1), "GOMEMLIMIT" // the runtime has read it
	default:
		var err error
		if limit, why, err = scheduler.SoftLimit("", "", cfg.ChildrenMemory()); err != nil {
			log.Warn("no memory limit", "error", err)
			return nil
		}
	}
	debug.SetMemoryLimit(limit)
	log.Info("memory limit", "limit_mib", limit>>20, "why", why)
	return nil
}
