// Package script runs the scripts by which tests tell a machine what comes to it and read what it made of that.
//
// A script is a file testdata/NAME.txt: steps with an empty line between them, each of command lines, a line of four dashes
// and what happened. Lines that begin with # are comments. The test executes the commands, writes the same file with what
// happens this time, and compares the two; with -update it keeps the new one, which is read before it is committed. What the
// commands mean is the test's affair, and so is time: a script runs in virtual time or without any.
//
// For tests only. A file that cannot be read ends the test; nothing here is safe for concurrent use, but scripts run beside
// each other.
package script
