// Package leanmetricstest checks a metric registry against the shared metric list of Lean Ethereum clients
// (github.com/leanEthereum/leanMetrics), whose dashboards query exact names, labels and bucket edges.
//
// Use: read telemetry/testdata/leanmetrics.tsv and pass it with the gatherer of an assembled node to CheckLeanMetrics in
// a test; it answers one sentence for each deviation. A component can check its own rows in the same way. A metric must
// exist from the start: a dashboard can not tell a counter that is missing from one at zero, so a labelled metric with a
// closed set of values must have all its series.
//
// Path of one row: parsed from its line, looked up among the gathered families, compared by type, label names, label
// values (unless the set is open, as for client names) and bucket edges.
//
// It does not check values; whether they are real is for the tests of the components. It holds no state and is safe for
// concurrent use. It is support for tests and imported by nothing else. A list that does not parse is itself one
// deviation, so that a broken file can not pass for a clean registry.
package leanmetricstest
