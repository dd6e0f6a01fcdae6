package bench

import "aggnode/scheduler"

// meters are what the controller of the budget looks at, fed as in the node. Safe for concurrent use.
type meters struct{ scheduler.Meters }

// Signals answers the controller. The clock of a pass stays in interval 2.
func (m *meters) Signals() scheduler.Signals { return m.Meters.Signals(2) }
