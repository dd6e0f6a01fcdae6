package bench

import (
	"sync/atomic"

	"aggnode/pipeline"
	"aggnode/scheduler"
)

// meters are what the controller of the budget looks at, fed as in the node. Safe for concurrent use.
type meters struct {
	queueWait scheduler.Window // votes
	check     scheduler.Window // aggregates
	slowdown  scheduler.SlowdownMeter
	pipe      atomic.Pointer[pipeline.Pipeline] // in force
}

// observe takes the measurement of one piece of work. An aggregate waits for the verifier child, so only votes tell the
// slowdown.
func (m *meters) observe(w pipeline.Work) {
	switch w.Class {
	case pipeline.ClassAttestation:
		m.queueWait.Add(w.Wait)
		m.slowdown.Add(w.Wall, w.CPU)
	case pipeline.ClassAggregate:
		m.check.Add(w.Wall)
	case pipeline.ClassUnknown, pipeline.ClassBlock, pipeline.ClassLocal:
	}
}

// Signals answers the controller. The clock of a pass stays in interval 2.
func (m *meters) Signals() scheduler.Signals {
	return scheduler.Signals{QueueWaitP99: m.queueWait.P99(), CheckP99: m.check.P99(), Slowdown: m.slowdown.Slowdown(), Interval: 2}
}

// threads are those of the workers of the pipeline in force.
func (m *meters) threads() []int {
	if p := m.pipe.Load(); p != nil {
		return p.Threads()
	}
	return nil
}
