// Package api serves HTTP: what a monitoring system, the shared devnet tools and an operator ask a node.
//
// Two servers, so that each port can be opened to whom it is for. The metrics port: /metrics, /livez (the process is
// alive), /readyz (named checks, 503 when one fails; ?verbose lists them all), /lean/v0/health and /v0/health (the same
// checks in the form that the other clients use, but able to fail). The API port: both health paths, /aggnode/v1/status,
// /aggnode/v1/aggregates, and the two administrative pairs GET, POST /lean/v0/admin/aggregator and
// /aggnode/v1/admin/log_level, whose POST is answered to the same machine only. /aggnode/v1/budget is read from the same
// machine and changed, by PATCH, with the token that the node keeps in its data directory.
//
// It owns no state of the node but AggregateLog, a ring of what was verified and published lately, which the assembly
// fills. Everything else is read through small interfaces, whose methods must return within a millisecond from
// snapshots: a request never waits for a lock that a worker holds during work.
//
// Path of a request: bounded listener (a connection above 128 is closed at once), header and body limits and time-outs,
// counting and panic guard, handler, JSON in snake_case. Errors have the form {"error": "…"}.
//
// Concurrency: New binds both ports, so that a port in use is an error before anything else runs; Run serves and
// returns when ctx ends and all requests are done, at most two seconds later. AggregateLog is safe for concurrent use.
//
// Failure policy: a client's fault is a 4xx with its cause; a panic of a handler is a 500, logged, and ends only that
// request. A server that fails ends Run with its error.
package api
