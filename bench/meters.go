package bench

import (
	"sync/atomic"

	"aggnode/pipeline"
	"aggnode/scheduler"
)

// meters are what the controller of the budget looks at, fed as in the node. Safe for concurrent use.
type meters struct {
	scheduler.Meters
	pipe atomic.Pointer[pipeline.Pipeline] // in force
}

// Signals answers the controller. The clock of a pass stays in interval 2.
func (m *meters) Signals() scheduler.Signals { return m.Meters.Signals(2) }

// threads are those of the workers of the pipeline in force.
func (m *meters) threads() []int {
	if p := m.pipe.Load(); p != nil {
		return p.Threads()
	}
	return nil
}
