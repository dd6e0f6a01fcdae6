// Package devnet runs a whole network of aggnode processes on one machine and
// measures what it did.
//
// It goes no way that a user could not go: it writes an ordinary network folder
// with the code behind `aggnode genesis`, starts `aggnode run` once per node
// with public flags, and reads the HTTP API of those processes. The first
// Committees nodes are the aggregators of one committee each, all nodes share
// the validators' keys evenly, and one more process without keys only observes.
// What the observer verified, and when, is the measurement.
//
// Path of one run: plan (validators and slot length that this machine can bear,
// from one measured signature) -> network folder -> processes -> one row a slot
// -> Summary.
//
// Slots 0 and 1 are warm-up and are in no figure. A vote counts as covered when
// an aggregate that contains it was verified at the observer before interval 4
// of its slot.
//
// Concurrency: Run owns every goroutine and process and returns when all of
// them have ended. Processes are forked from one locked operating system thread
// that lives as long as the run, with a parent-death signal, so that even a
// killed devnet leaves no process behind.
//
// Failure policy: a process that exits by itself, and every log line of level
// error, is counted in Summary.Errors and printed; the run goes on with the
// rest. Folders of devnets whose process is gone are removed at the next start.
package devnet
