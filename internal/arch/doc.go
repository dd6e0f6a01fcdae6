// Package arch holds the test of the module's import rules.
//
// The table in arch_test.go is the only place where the direction of imports
// between our own packages is written down. A new package gets a row there
// before it gets code; a new edge is a design decision and is reviewed as one.
// The test lists the packages with the go command, so it sees what the compiler
// sees, test files excluded.
//
// The package has no code of its own and nothing imports it.
package arch
