// Package node assembles one node from its configuration and runs it.
//
// It is the only package that knows both sides of the interfaces that the
// others declare. It holds no policy of its own: what is decided here is which
// parts there are, in which order they start and in which order they stop.
//
// Start: the parts are made (New starts nothing), then Run starts one goroutine
// for each, the HTTP servers first so that /livez answers while children set up.
// Stop, in the order of the list in stages.go: intake, duties, pipeline,
// session, prover, p2p, api; telemetry is closed by the caller, last. Each stage
// has a deadline; a stage that does not end in time is named in the log and the
// stop goes on, so one stuck part cannot keep the process alive.
//
// Path of an inbound message: p2p -> intake (this package adds a record of
// verified aggregates for the API) -> pipeline -> verify -> aggregate.
//
// Failure policy: a part that ends by itself ends the node with its error; a
// child process that dies does not, its client restarts it.
package node
