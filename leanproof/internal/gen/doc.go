// Command gen writes the verification key of a lean-pq prover: the guest's file and the layout's Go data in package key. It is
// run by hand when a new prover version is taken up; its output is committed.
//
// It reads two files that an installed prover writes when it is set up with two variables in its environment:
//
//	DBG_DISASM=listing.txt DBG_PLACEHOLDERS=constants.txt python -c 'import py_lean_pq; py_lean_pq.setup()'
//	go run ./leanproof/internal/gen -listing listing.txt -constants constants.txt
//
// The python that `aggnode prover install` sets up will do. The guest's table must have the seed that the prover's transcripts
// start with, else nothing is written: the seed covers every instruction, so nothing in the listing can be misread without
// notice. The constants are covered by no hash; those that follow from others are checked, and a wrong one makes genuine
// proofs fail.
//
// For another version: find its seed (-seed "" prints the one of the listing; the prover has it in its memory), add a row to
// the key's table of versions, and see whether genuine proofs are accepted. A layout of another shape is refused.
package main
