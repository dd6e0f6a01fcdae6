package scheduler

// Cause is who changed what the prover gets. It is the value of the "cause" label, log field and span attribute.
type Cause uint8

// Causes.
const (
	CauseUnknown    Cause = iota
	CauseAPI              // a request to the node's API
	CauseSignal           // SIGHUP
	CauseFile             // a changed settings file
	CauseCalendar         // the interval of the slot
	CauseController       // any other decision of the controller
)

// String returns the name used in logs, metrics and spans.
func (c Cause) String() string {
	switch c {
	case CauseAPI:
		return "api"
	case CauseSignal:
		return "signal"
	case CauseFile:
		return "file"
	case CauseCalendar:
		return "calendar"
	case CauseController:
		return "controller"
	case CauseUnknown:
	}
	return "unknown"
}

// causes are all known ones.
func causes() []Cause {
	return []Cause{CauseAPI, CauseSignal, CauseFile, CauseCalendar, CauseController}
}
